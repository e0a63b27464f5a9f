//! Small files put together: fewer files for whoever reads, at a border between batches.
//!
//! ```text
//!   part-0 … part-99 (small)  ──►  one file, written with batch 100  ──►  the log entry of batch 100: it stands for them
//!                                                                              │
//!                                   after `compactRetention`: part-0 … part-99 are deleted
//! ```
//!
//! [`choose`] says which files, [`merge()`] makes their rows one file. The entry of the batch that comes anyway
//! commits the exchange, so a crash leaves either all of it or a file that nobody knows.
//!
//! Rule of its life: rows are written once more at most, for a file that was put together is never taken again. A batch
//! rewrites no more than one target file has bytes. What cannot be put together stays as it is, with a warning; no batch
//! fails for it.
//!
//! It does not touch files of another ending, of another folder, or of columns other than those beside them.

mod choice;
mod merge;
#[cfg(test)]
mod tests;

use super::config::{CompactionConfig, FileConfig};
use super::log::FileLog;
use crate::SinkError;
use choice::{Small, choose, folder_of};
use millstream_client::file_log::{
    CommittedBatch, CommittedBatches, CommittedFile, MergedFile, ReplacedFile, read_spark_log,
};
use millstream_common::DurableFiles;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

pub(super) use merge::MergedBytes;
use merge::{Trouble, merge};

/// How many files one batch deletes at most.
const DELETED_AT_ONCE: usize = 1_000;

/// What is known of the small files of an output.
#[derive(Debug)]
pub(super) struct Compaction {
    config: CompactionConfig,
    /// How names end of files that may be put together.
    ending: String,
    /// By folder, oldest first.
    small: BTreeMap<String, VecDeque<Small>>,
    /// Files that another one stands for, and since when; those that are still there.
    replaced: VecDeque<(i64, String)>,
}

/// Files that are to become one.
#[derive(Debug)]
pub(super) struct Group {
    /// `k=v/…/`, or empty.
    pub(super) folder: String,
    files: Vec<Small>,
}

impl Compaction {
    /// What the log of an output says; also every file that another one stands for, and since when.
    pub(super) fn load(
        config: &CompactionConfig,
        ending: String,
        files: &dyn DurableFiles,
        log: &FileLog,
    ) -> Result<(Self, HashMap<String, i64>), SinkError> {
        let mut this = Self { config: config.clone(), ending, small: BTreeMap::new(), replaced: VecDeque::new() };
        match log {
            FileLog::Manifests(_) => {
                for batch in CommittedBatches::new(files)? {
                    this.see(&batch?);
                }
            }
            FileLog::Spark(log) => {
                for file in read_spark_log(files)? {
                    let Some(name) = log.name_of(files, &file.path) else { continue };
                    let since_ms = file.replaced_at.unwrap_or(file.modification_time);
                    match file.replaced.is_empty() {
                        // How many rows it has is not in the log.
                        true => this.see_file(name, 0, file.size, file.modification_time),
                        false => this.see_replaced(&file.replaced, since_ms),
                    }
                }
            }
        }
        let known = std::mem::take(&mut this.replaced).into_iter().map(|(since_ms, name)| (name, since_ms)).collect();
        Ok((this, known))
    }

    /// Takes note of a batch that is in the log.
    pub(super) fn see(&mut self, batch: &CommittedBatch) {
        for CommittedFile { name, rows, bytes } in &batch.files {
            self.see_file(name.clone(), *rows, *bytes, batch.committed_ms);
        }
        for merged in &batch.merged {
            self.see_replaced(&merged.replaced, batch.committed_ms);
        }
    }

    fn see_file(&mut self, name: String, rows: u64, bytes: u64, committed_ms: i64) {
        if bytes < self.config.target_bytes / 2 && name.ends_with(&format!(".{}", self.ending)) {
            let folder = folder_of(&name).to_owned();
            let small = Small { file: ReplacedFile { name, bytes, committed_ms }, rows };
            self.small.entry(folder).or_default().push_back(small);
        }
    }

    fn see_replaced(&mut self, files: &[ReplacedFile], since_ms: i64) {
        let names: HashSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
        if let Some(first) = files.first()
            && let Some(small) = self.small.get_mut(folder_of(&first.name))
        {
            small.retain(|small| !names.contains(small.file.name.as_str()));
        }
        self.replaced.extend(files.iter().map(|file| (since_ms, file.name.clone())));
    }

    /// Says that a file that another one stands for is still there.
    pub(super) fn is_there(&mut self, name: String, since_ms: i64) {
        let at = self.replaced.partition_point(|(since, _)| *since <= since_ms);
        self.replaced.insert(at, (since_ms, name));
    }

    /// What is to be put together with the next batch.
    pub(super) fn choose(&self) -> Vec<Group> {
        choose(&self.small, self.config.after_files, self.config.target_bytes)
    }

    /// Makes one file of a group, or of the first ones of it that fit together.
    pub(super) fn merge(
        &mut self,
        files: &dyn DurableFiles,
        config: &FileConfig,
        header: &[u8],
        group: &Group,
    ) -> Option<MergedBytes> {
        match merge(files, config, header, &group.files) {
            Ok(merged) => Some(merged),
            Err(Trouble::Storage(error)) => {
                tracing::warn!(
                    output = files.location(), folder = group.folder, %error,
                    "small files could not be put together now"
                );
                None
            }
            Err(Trouble::Unfit { at, reason }) => {
                let name = group.files.get(at).map(|small| small.file.name.clone()).unwrap_or_default();
                tracing::warn!(
                    output = files.location(),
                    file = name,
                    reason,
                    "a small file cannot be put together with others, and stays as it is"
                );
                if let Some(small) = self.small.get_mut(&group.folder) {
                    small.retain(|small| small.file.name != name);
                }
                None
            }
        }
    }

    /// Deletes what was replaced long enough ago. What cannot be deleted now is tried again with the next batch.
    pub(super) fn delete_old(&mut self, files: &dyn DurableFiles, now_ms: i64) {
        for _ in 0..DELETED_AT_ONCE {
            let Some((since_ms, name)) = self.replaced.front() else { return };
            if now_ms.saturating_sub(*since_ms) < self.config.retention_ms {
                return;
            }
            if let Err(error) = files.delete(name) {
                tracing::warn!(file = name, %error, "a file that another one stands for could not be removed");
                return;
            }
            self.replaced.pop_front();
        }
    }

    /// Goes on from another look at the log: a batch got there that this run did not know of.
    pub(super) fn reload(&mut self, files: &dyn DurableFiles, log: &FileLog, now_ms: i64) -> Result<(), SinkError> {
        let (mut now, known) = Self::load(&self.config, self.ending.clone(), files, log)?;
        let mut there: HashMap<String, i64> =
            std::mem::take(&mut self.replaced).into_iter().map(|(since_ms, name)| (name, since_ms)).collect();
        // What is older was looked for when the query started.
        let young = known.into_iter().filter(|(_, since)| now_ms.saturating_sub(*since) < self.config.retention_ms);
        there.extend(young);
        for (name, since_ms) in there {
            now.is_there(name, since_ms);
        }
        *self = now;
        Ok(())
    }
}

impl Group {
    /// The entry of the file that stands for the first `merged.count` of these.
    pub(super) fn entry(&self, name: String, merged: &MergedBytes) -> MergedFile {
        let file = CommittedFile { name, rows: merged.rows, bytes: merged.bytes.len() as u64 };
        MergedFile { file, replaced: self.files.iter().take(merged.count).map(|small| small.file.clone()).collect() }
    }
}
