//! Spark's own log of a file sink, so that Spark reads what was committed and nothing else.
//!
//! ```text
//!   _spark_metadata/8            v1, then one JSON object per file of batch 8
//!   _spark_metadata/9.compact    v1, then those of batches 0 to 9: every 10th batch is written so
//! ```
//!
//! Spark finds the files of an output by the newest entry whose end is `.compact` and all numbers after it, so no number
//! may be left out: a batch that the query did not hand over gets an entry without files. Paths are absolute, as URIs; the
//! output must not be moved. How entries are read: the client's file log.
//!
//! Small files that were put together leave the log with a `.compact`, whose line of the one that replaces them names them;
//! between two of those Spark has no word for it.
//!
//! Rule of its life: an entry is written once, by put-if-absent, in ascending order. Entries before the last but one
//! `.compact` are deleted; Spark's readers look again when an entry goes away below them.

use super::log::Added;
use super::manifest::names;
use crate::SinkError;
use bytes::Bytes;
use millstream_client::file_log::{
    CommittedBatch, FileLogError, SparkFile, parse_spark_line, spark_entries as entries, spark_entry_path as path,
    spark_lines as read, spark_lines_up_to as lines_up_to, unquote,
};
use millstream_common::{BatchId, Clock, DurableError, DurableFiles};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

const VERSION: &str = "v1";
/// What Spark says of a file of this machine.
const BLOCK_SIZE: u64 = 32 << 20;

/// How Spark's log is written.
#[derive(Debug, Clone)]
pub(super) struct SparkLog {
    /// Every how many batches an entry holds all before it.
    pub(super) interval: u64,
    /// How old a file may be to stay in the log.
    pub(super) retention_ms: Option<i64>,
    pub(super) clock: Arc<dyn Clock>,
}

impl SparkLog {
    /// The newest batch in the output.
    pub(super) fn latest(files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
        Ok(entries(files)?.last().map(|(number, _)| BatchId(*number)))
    }

    /// Puts a batch behind `latest` into the log, and empty ones for the numbers between.
    pub(super) fn add(
        &self,
        files: &dyn DurableFiles,
        latest: Option<BatchId>,
        batch: &CommittedBatch,
    ) -> Result<Added, SinkError> {
        for skipped in latest.map_or(0, |latest| latest.0 + 1)..batch.batch.0 {
            // Somebody may have written it in an attempt that died.
            self.write(files, skipped, &[], &HashSet::new())?;
        }
        let root = root_uri(files);
        let line = |name: &str, size: u64, modification_time: i64| SparkFile {
            path: format!("{root}/{}", quote(name)),
            size,
            is_dir: false,
            modification_time,
            block_replication: 1,
            block_size: BLOCK_SIZE,
            action: "add".to_owned(),
            replaced: Vec::new(),
            replaced_at: None,
        };
        let plain = batch.files.iter().map(|file| line(&file.name, file.bytes, batch.committed_ms));
        let merged = batch.merged.iter().map(|merged| SparkFile {
            replaced: merged.replaced.clone(),
            replaced_at: Some(batch.committed_ms),
            ..line(&merged.file.name, merged.file.bytes, merged.committed_ms())
        });
        let lines = plain
            .chain(merged)
            .map(|file| serde_json::to_string(&file).expect("strings and numbers always have a JSON form"));
        let lines: Vec<String> = lines.collect();
        let replaced = batch.merged.iter().flat_map(|merged| &merged.replaced);
        let replaced = replaced.map(|file| format!("{root}/{}", quote(&file.name))).collect();
        if self.write(files, batch.batch.0, &lines, &replaced)? {
            return Ok(Added::Now);
        }
        let there = self.names(files, batch.batch)?;
        let ours = names(batch);
        // The first attempt may have arrived although its answer did not.
        Ok(if there == ours { Added::Now } else { Added::Before(there) })
    }

    /// Whether the entry of a batch will hold all before it: only such a one can leave files out for others.
    pub(super) fn holds_all(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<bool, SinkError> {
        Ok(self.is_compact(batch.0, &entries(files)?))
    }

    fn is_compact(&self, number: u64, entries: &[(u64, bool)]) -> bool {
        (number + 1).is_multiple_of(self.interval_of(entries))
    }

    /// The names of the files of a batch: entries do not tell batches apart, names of files do.
    pub(super) fn names(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<Vec<String>, SinkError> {
        let entry = entries(files)?.into_iter().find(|(number, _)| *number == batch.0);
        let entry = entry.ok_or_else(|| FileLogError::damaged(files, &path((batch.0, false)), "it is missing"))?;
        let mut names = Vec::new();
        for line in read(files, entry)? {
            let path = parse_spark_line(files, &line)?.path;
            if let Some(name) = self.name_of(files, &path)
                && super::sink::batch_of(&name) == Some(batch)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The name, relative to the output, of a file that the log names; `None` for one that is elsewhere.
    pub(super) fn name_of(&self, files: &dyn DurableFiles, path: &str) -> Option<String> {
        path.strip_prefix(&format!("{}/", root_uri(files))).map(unquote)
    }

    /// Writes an entry; false when it is there.
    fn write(
        &self,
        files: &dyn DurableFiles,
        number: u64,
        lines: &[String],
        replaced: &HashSet<String>,
    ) -> Result<bool, SinkError> {
        let entries = entries(files)?;
        if entries.iter().any(|(there, _)| *there == number) {
            return Ok(false);
        }
        let compact = self.is_compact(number, &entries);
        let mut text = VERSION.to_owned();
        if compact && number > 0 {
            for line in lines_up_to(files, &entries, number - 1)? {
                if self.retains(files, &line, replaced)? {
                    text.push('\n');
                    text.push_str(&line);
                }
            }
        }
        for line in lines {
            text.push('\n');
            text.push_str(line);
        }
        let path = path((number, compact));
        match files.put_new(&path, Bytes::from(text)) {
            Ok(()) => {}
            Err(DurableError::Exists { .. }) => return Ok(false),
            Err(error) => {
                return Err(SinkError::Unavailable {
                    sink: "file".to_owned(),
                    action: "write",
                    place: format!("{}/{path}", files.location().trim_end_matches('/')),
                    batch: BatchId(number),
                    source: Box::new(error),
                });
            }
        }
        if compact {
            forget(files, &entries);
        }
        Ok(true)
    }

    fn retains(&self, files: &dyn DurableFiles, line: &str, replaced: &HashSet<String>) -> Result<bool, SinkError> {
        if self.retention_ms.is_none() && replaced.is_empty() {
            return Ok(true);
        }
        let file = parse_spark_line(files, line)?;
        let age = self.clock.now_ms().saturating_sub(file.modification_time);
        Ok(!replaced.contains(&file.path) && self.retention_ms.is_none_or(|retention| age <= retention))
    }

    /// Spark's rule: what the entries that are there say counts more than what was asked for.
    fn interval_of(&self, entries: &[(u64, bool)]) -> u64 {
        let mut compact = entries.iter().rev().filter(|(_, compact)| *compact).map(|(number, _)| *number);
        match (compact.next(), compact.next()) {
            (Some(last), Some(before)) => last - before,
            (Some(only), None) => only + 1,
            _ => self.interval.max(1),
        }
    }
}

/// Deletes the entries before the newest `.compact` among `entries`, which another one has followed.
fn forget(files: &dyn DurableFiles, entries: &[(u64, bool)]) {
    let Some((kept, _)) = entries.iter().rev().find(|(_, compact)| *compact) else { return };
    for entry in entries.iter().filter(|(number, _)| number < kept) {
        if let Err(error) = files.delete(&path(*entry)) {
            tracing::warn!(entry = path(*entry), %error, "an old entry of the log could not be removed");
        }
    }
}

/// The output as Spark names it.
fn root_uri(files: &dyn DurableFiles) -> String {
    match files.local_folder() {
        Some(folder) => format!("file://{}", quote(folder.to_string_lossy().trim_end_matches('/'))),
        None => quote(files.location().trim_end_matches('/')),
    }
}

/// A path within a URI.
fn quote(path: &str) -> String {
    let mut quoted = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()/:@&=+$,".contains(&byte) {
            quoted.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(quoted, "%{byte:02X}");
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_client::file_log::{CommittedFile, read_spark_log};
    use millstream_common::{ManualClock, MemoryFiles, QueryId};
    use std::time::Duration;

    fn log(interval: u64, retention_ms: Option<i64>) -> (SparkLog, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(1_000));
        (SparkLog { interval, retention_ms, clock: Arc::clone(&clock) as _ }, clock)
    }

    fn batch(number: u64) -> CommittedBatch {
        let name = format!("k=a%3Ab c/part-{number}-0-0f5bd4e1-7f4e-4a51-9a4b-111111111111.parquet");
        let query = QueryId(uuid::Uuid::from_u128(1));
        CommittedBatch {
            query,
            batch: BatchId(number),
            rows: 1,
            files: vec![CommittedFile { name, rows: 1, bytes: 7 }],
            merged: vec![],
            committed_ms: 1_000,
        }
    }

    fn numbers(files: &dyn DurableFiles) -> Vec<u64> {
        let files = read_spark_log(files).unwrap();
        files.iter().map(|file| unquote(&file.path)).map(|path| number(&path)).collect()
    }

    fn number(path: &str) -> u64 {
        let (_, name) = path.rsplit_once("part-").unwrap();
        name.split('-').next().unwrap().parse().unwrap()
    }

    #[test]
    fn entries_have_sparks_form() {
        let files = MemoryFiles::default();
        let (log, _) = log(10, None);
        log.add(&files, None, &batch(0)).unwrap_or_else(|error| panic!("{error}"));
        let text = files.get("_spark_metadata/0").unwrap();
        let root = files.location();
        let path = format!(
            "{}/k=a%253Ab%20c/part-0-0-0f5bd4e1-7f4e-4a51-9a4b-111111111111.parquet",
            root.trim_end_matches('/')
        );
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            format!(
                "v1\n{{\"path\":\"{path}\",\"size\":7,\"isDir\":false,\"modificationTime\":1000,\
                 \"blockReplication\":1,\"blockSize\":33554432,\"action\":\"add\"}}"
            )
        );
        assert_eq!(log.names(&files, BatchId(0)).unwrap(), [batch(0).files[0].name.clone()]);
    }

    #[test]
    fn every_tenth_entry_holds_all_and_numbers_that_were_left_out_are_filled() {
        let files = MemoryFiles::default();
        let (log, _) = log(10, None);
        let mut latest = None;
        let given: Vec<u64> = (0..35).filter(|number| ![3, 4, 9, 29].contains(number)).collect();
        for number in &given {
            log.add(&files, latest, &batch(*number)).unwrap_or_else(|error| panic!("{error}"));
            latest = Some(BatchId(*number));
        }
        assert_eq!(numbers(&files), given);
        let names: Vec<String> = entries(&files).unwrap().into_iter().map(path).collect();
        let expected: Vec<String> = std::iter::once("_spark_metadata/19.compact".to_owned())
            .chain((20..29).map(|number| format!("_spark_metadata/{number}")))
            .chain(["_spark_metadata/29.compact".to_owned()])
            .chain((30..35).map(|number| format!("_spark_metadata/{number}")))
            .collect();
        assert_eq!(names, expected);
        assert!(matches!(log.add(&files, latest, &batch(34)), Ok(Added::Now)), "it had arrived");
        let mut other = batch(34);
        other.files[0].name = other.files[0].name.replace("1111", "2222");
        assert!(
            matches!(log.add(&files, latest, &other), Ok(Added::Before(names)) if names == [batch(34).files[0].name.clone()])
        );
    }

    #[test]
    fn files_that_are_too_old_leave_the_log_when_it_is_compacted() {
        let files = MemoryFiles::default();
        let (log, clock) = log(3, Some(5_000));
        for number in 0..6_u64 {
            let latest = number.checked_sub(1).map(BatchId);
            let written = CommittedBatch { committed_ms: clock.now_ms(), ..batch(number) };
            log.add(&files, latest, &written).unwrap_or_else(|error| panic!("{error}"));
            clock.advance(Duration::from_secs(2));
        }
        assert_eq!(numbers(&files), [3, 4, 5]);
    }

    #[test]
    fn a_missing_entry_is_named() {
        let files = MemoryFiles::default();
        let (log, _) = log(10, None);
        for number in 0..4_u64 {
            log.add(&files, number.checked_sub(1).map(BatchId), &batch(number))
                .unwrap_or_else(|error| panic!("{error}"));
        }
        files.delete("_spark_metadata/2").unwrap();
        let error = read_spark_log(&files).unwrap_err();
        assert!(error.to_string().ends_with("_spark_metadata/2` is damaged: it is missing"), "{error}");
        files.put_new("_spark_metadata/2", "v9".into()).unwrap();
        assert!(read_spark_log(&files).unwrap_err().to_string().contains("`v1`"));
    }
}
