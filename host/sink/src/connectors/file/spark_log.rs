//! Spark's own log of a file sink, so that Spark reads what was committed and nothing else.
//!
//! ```text
//!   _spark_metadata/8            v1, then one JSON object per file of batch 8
//!   _spark_metadata/9.compact    v1, then those of batches 0 to 9: every 10th batch is written so
//! ```
//!
//! Spark finds the files of an output by the newest entry whose end is `.compact` and all numbers after it, so no number
//! may be left out: a batch that the query did not hand over gets an entry without files. Paths are absolute, as URIs; the
//! output must not be moved.
//!
//! Rule of its life: an entry is written once, by put-if-absent, in ascending order. Entries before the last but one
//! `.compact` are deleted; Spark's readers look again when an entry goes away below them.

use super::log::Added;
use super::manifest::{CommittedBatch, open_error};
use crate::SinkError;
use bytes::Bytes;
use millstream_common::{BatchId, Clock, DurableError, DurableFiles};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// The folder of the log below the output.
pub(super) const FOLDER: &str = "_spark_metadata";
const VERSION: &str = "v1";
const COMPACT: &str = ".compact";
/// What Spark says of a file of this machine.
const BLOCK_SIZE: u64 = 32 << 20;

/// A file in Spark's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SparkFile {
    /// The whole path, as a URI.
    pub path: String,
    /// How long the file is.
    pub size: u64,
    /// Always false.
    pub is_dir: bool,
    /// When it was committed, in milliseconds.
    pub modification_time: i64,
    /// What HDFS has to say.
    pub block_replication: i32,
    /// What HDFS has to say.
    pub block_size: u64,
    /// `add`.
    pub action: String,
}

/// How Spark's log is written.
#[derive(Debug, Clone)]
pub(super) struct SparkLog {
    /// Every how many batches an entry holds all before it.
    pub(super) interval: u64,
    /// How old a file may be to stay in the log.
    pub(super) retention_ms: Option<i64>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The entries that there are, ascending; true for those that hold all before them.
fn entries(files: &dyn DurableFiles) -> Result<Vec<(u64, bool)>, SinkError> {
    let names = files.list(FOLDER).map_err(|error| open_error(files, "list", FOLDER, error))?;
    let mut entries: Vec<(u64, bool)> = names
        .iter()
        .filter_map(|name| match name.strip_suffix(COMPACT) {
            Some(number) => Some((number.parse().ok()?, true)),
            None => Some((name.parse().ok()?, false)),
        })
        .collect();
    entries.sort_unstable();
    Ok(entries)
}

fn path((number, compact): (u64, bool)) -> String {
    format!("{FOLDER}/{number}{}", if compact { COMPACT } else { "" })
}

fn corrupt(files: &dyn DurableFiles, path: &str, reason: impl Into<String>) -> SinkError {
    let place = format!("{}/{path}", files.location().trim_end_matches('/'));
    SinkError::Corrupt { sink: "file".to_owned(), place, reason: reason.into() }
}

/// The lines of an entry.
fn read(files: &dyn DurableFiles, entry: (u64, bool)) -> Result<Vec<String>, SinkError> {
    let path = path(entry);
    let bytes = files.get(&path).map_err(|error| open_error(files, "read", &path, error))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt(files, &path, error.to_string()))?;
    let mut lines = text.lines();
    if lines.next() != Some(VERSION) {
        return Err(corrupt(files, &path, format!("it does not begin with `{VERSION}`")));
    }
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// The lines that a reader sees whose newest entry is `last`.
fn lines_up_to(files: &dyn DurableFiles, entries: &[(u64, bool)], last: u64) -> Result<Vec<String>, SinkError> {
    let compact = entries.iter().rev().find(|(number, compact)| *compact && *number <= last);
    let mut lines = match compact {
        Some(entry) => read(files, *entry)?,
        None => Vec::new(),
    };
    let first = compact.map_or(0, |(number, _)| number + 1);
    for number in first..=last {
        if !entries.contains(&(number, false)) {
            return Err(corrupt(files, &path((number, false)), "it is missing"));
        }
        lines.extend(read(files, (number, false))?);
    }
    Ok(lines)
}

fn parse(files: &dyn DurableFiles, line: &str) -> Result<SparkFile, SinkError> {
    serde_json::from_str(line).map_err(|error| corrupt(files, FOLDER, error.to_string()))
}

/// The files that Spark's log of the output names, in the order of their batches.
///
/// # Errors
/// When the place cannot be read, or the log is damaged.
pub fn read_spark_log(files: &dyn DurableFiles) -> Result<Vec<SparkFile>, SinkError> {
    let entries = entries(files)?;
    let Some((last, _)) = entries.last() else { return Ok(Vec::new()) };
    lines_up_to(files, &entries, *last)?.iter().map(|line| parse(files, line)).collect()
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
            self.write(files, skipped, &[])?;
        }
        let root = root_uri(files);
        let now = self.clock.now_ms();
        let lines = batch.files.iter().map(|file| {
            let entry = SparkFile {
                path: format!("{root}/{}", quote(&file.name)),
                size: file.bytes,
                is_dir: false,
                modification_time: now,
                block_replication: 1,
                block_size: BLOCK_SIZE,
                action: "add".to_owned(),
            };
            serde_json::to_string(&entry).expect("strings and numbers always have a JSON form")
        });
        let lines: Vec<String> = lines.collect();
        if self.write(files, batch.batch.0, &lines)? {
            return Ok(Added::Now);
        }
        Ok(Added::Before(self.names(files, batch.batch)?))
    }

    /// The names of the files of a batch: entries do not tell batches apart, names of files do.
    pub(super) fn names(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<Vec<String>, SinkError> {
        let entry = entries(files)?.into_iter().find(|(number, _)| *number == batch.0);
        let entry = entry.ok_or_else(|| corrupt(files, &path((batch.0, false)), "it is missing"))?;
        let root = format!("{}/", root_uri(files));
        let mut names = Vec::new();
        for line in read(files, entry)? {
            let path = parse(files, &line)?.path;
            if let Some(name) = path.strip_prefix(&root).map(unquote)
                && super::sink::batch_of(&name) == Some(batch)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Writes an entry; false when it is there.
    fn write(&self, files: &dyn DurableFiles, number: u64, lines: &[String]) -> Result<bool, SinkError> {
        let entries = entries(files)?;
        if entries.iter().any(|(there, _)| *there == number) {
            return Ok(false);
        }
        let compact = (number + 1).is_multiple_of(self.interval_of(&entries));
        let mut text = VERSION.to_owned();
        if compact && number > 0 {
            for line in lines_up_to(files, &entries, number - 1)? {
                if self.retains(files, &line)? {
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

    fn retains(&self, files: &dyn DurableFiles, line: &str) -> Result<bool, SinkError> {
        let Some(retention) = self.retention_ms else { return Ok(true) };
        Ok(self.clock.now_ms().saturating_sub(parse(files, line)?.modification_time) <= retention)
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
        None => files.location().trim_end_matches('/').to_owned(),
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

/// What was quoted; text that is no path within a URI comes back as far as it is one.
pub(super) fn unquote(quoted: &str) -> String {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::CommittedFile;
    use super::*;
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
            committed_ms: 0,
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
        assert!(matches!(log.add(&files, latest, &batch(34)), Ok(Added::Before(names)) if names.len() == 1));
    }

    #[test]
    fn files_that_are_too_old_leave_the_log_when_it_is_compacted() {
        let files = MemoryFiles::default();
        let (log, clock) = log(3, Some(5_000));
        for number in 0..6_u64 {
            let latest = number.checked_sub(1).map(BatchId);
            log.add(&files, latest, &batch(number)).unwrap_or_else(|error| panic!("{error}"));
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
        assert!(error.to_string().ends_with("_spark_metadata/2`: it is missing"), "{error}");
        files.put_new("_spark_metadata/2", "v9".into()).unwrap();
        assert!(read_spark_log(&files).unwrap_err().to_string().contains("`v1`"));
    }
}
