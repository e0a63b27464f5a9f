//! The log of the file source in the checkpoint: which files offset N stands for.
//!
//! File `N` holds the files of N; every tenth file is `N.compact` instead and holds all files up to N, so that
//! a restart reads few files. Each line is an object with `path`, `timestamp` (modification, milliseconds)
//! and `batchId` (the N). Files are sealed with a checksum and written once; the ones that a compacted file
//! replaces are deleted.

use crate::SourceError;
use crate::sealed;
use millstream_common::DurableFiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Every how many entries the log is compacted.
const COMPACT_INTERVAL: i64 = 10;

/// A file of an offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub(super) path: String,
    /// When the file was last modified, in milliseconds since 1970.
    pub(super) timestamp: i64,
    /// The offset that took it.
    #[serde(rename = "batchId")]
    pub(super) batch_id: i64,
}

/// The log, whole in memory.
#[derive(Debug)]
pub(super) struct FileLog {
    name: String,
    files: Arc<dyn DurableFiles>,
    entries: BTreeMap<i64, Vec<FileEntry>>,
    latest: i64,
}

impl FileLog {
    /// Reads the log.
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>) -> Result<Self, SourceError> {
        let names = files.list("").map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
        let numbers = |suffix: &str| {
            let mut found: Vec<i64> =
                names.iter().filter_map(|file| file.strip_suffix(suffix)?.parse().ok()).filter(|n| *n >= 0).collect();
            found.sort_unstable();
            found
        };
        let compacted = numbers(".compact").last().copied();
        let mut log = Self { name: name.to_owned(), files, entries: BTreeMap::new(), latest: -1 };
        if let Some(number) = compacted {
            log.load(&format!("{number}.compact"), 0..=number)?;
            log.latest = number;
        }
        for number in numbers("").into_iter().filter(|number| compacted.is_none_or(|compacted| *number > compacted)) {
            let path = number.to_string();
            if number != log.latest + 1 {
                let reason = format!("entry {} before it is missing", log.latest + 1);
                return Err(sealed::damaged(name, log.files.as_ref(), &path, &reason));
            }
            log.load(&path, number..=number)?;
            log.latest = number;
        }
        Ok(log)
    }

    fn load(&mut self, path: &str, range: std::ops::RangeInclusive<i64>) -> Result<(), SourceError> {
        let damaged = |reason: &str| sealed::damaged(&self.name, self.files.as_ref(), path, reason);
        let body = sealed::read(&self.name, self.files.as_ref(), path)?.ok_or_else(|| damaged("it vanished"))?;
        for line in body.lines() {
            let entry: FileEntry = serde_json::from_str(line).map_err(|error| damaged(&error.to_string()))?;
            if !range.contains(&entry.batch_id) {
                return Err(damaged("it holds an entry of another offset"));
            }
            self.entries.entry(entry.batch_id).or_default().push(entry);
        }
        Ok(())
    }

    /// The newest offset in the log; -1 when it is empty.
    pub(super) fn latest(&self) -> i64 {
        self.latest
    }

    /// All entries, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &FileEntry> {
        self.entries.values().flatten()
    }

    /// The files of offset `number`.
    pub(super) fn get(&self, number: i64) -> Option<&[FileEntry]> {
        self.entries.get(&number).map(Vec::as_slice)
    }

    /// Takes files below one folder for those of the same names below another one. Nothing is written.
    pub(super) fn relocate(&mut self, from: &Path, to: &Path) {
        for entry in self.entries.values_mut().flatten() {
            if let Ok(below) = Path::new(&entry.path).strip_prefix(from) {
                entry.path = to.join(below).to_string_lossy().into_owned();
            }
        }
    }

    /// Writes the entry after the newest one; answers its offset.
    pub(super) fn add(&mut self, files: impl Iterator<Item = (String, i64)>) -> Result<i64, SourceError> {
        let number = self.latest + 1;
        let entry: Vec<FileEntry> =
            files.map(|(path, timestamp)| FileEntry { path, timestamp, batch_id: number }).collect();
        let compacts = (number + 1) % COMPACT_INTERVAL == 0;
        let body = if compacts { body(self.all().chain(&entry)) } else { body(entry.iter()) };
        let path = if compacts { format!("{number}.compact") } else { number.to_string() };
        sealed::write(&self.name, self.files.as_ref(), &path, &body)?;
        self.entries.insert(number, entry);
        self.latest = number;
        if compacts {
            self.delete_before(number);
        }
        Ok(number)
    }

    /// Deletes the files that `number.compact` replaces. One that stays is skipped by the next start.
    fn delete_before(&self, number: i64) {
        let previous = number - COMPACT_INTERVAL;
        let names = (previous + 1..number).map(|n| n.to_string());
        for name in names.chain((previous >= 0).then(|| format!("{previous}.compact"))) {
            if let Err(error) = self.files.delete(&name) {
                tracing::warn!(source = self.name, file = name, %error, "a replaced log file could not be deleted");
            }
        }
    }
}

fn body<'a>(entries: impl Iterator<Item = &'a FileEntry>) -> String {
    let mut body = String::new();
    for entry in entries {
        body.push_str(&serde_json::to_string(entry).expect("text and numbers always have a JSON form"));
        body.push('\n');
    }
    body
}
