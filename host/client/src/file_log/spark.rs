//! Spark's own form of the log: `_spark_metadata`.
//!
//! ```text
//!   _spark_metadata/8            v1, then one JSON object per file of batch 8
//!   _spark_metadata/9.compact    v1, then those of batches 0 to 9
//! ```
//!
//! A reader takes the newest entry whose end is `.compact` and all numbers after it. A line of a file that stands for others
//! has `replaced` beside what Spark knows; Spark passes over that.
//!
//! Rule of its life: entries before an older `.compact` go away below a reader, which then looks again.

use super::entry::{ReplacedFile, is_below};
use super::error::FileLogError;
use millstream_common::DurableFiles;
use serde::{Deserialize, Serialize};

/// The folder of Spark's log below the output.
pub const SPARK_FOLDER: &str = "_spark_metadata";
const VERSION: &str = "v1";
const COMPACT: &str = ".compact";
/// How often a reader looks again before it says that an entry is missing.
const LOOKS: usize = 5;

/// A file in Spark's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SparkFile {
    /// The whole path, as a URI.
    pub path: String,
    /// How long the file is.
    pub size: u64,
    /// Always false.
    #[serde(default)]
    pub is_dir: bool,
    /// When it was committed, in milliseconds.
    pub modification_time: i64,
    /// What HDFS has to say.
    #[serde(default)]
    pub block_replication: i32,
    /// What HDFS has to say.
    #[serde(default)]
    pub block_size: u64,
    /// `add`; `delete` in logs of old versions of Spark.
    pub action: String,
    /// The files that it stands for; nothing that Spark knows of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedFile>,
    /// When it took their place, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_at: Option<i64>,
}

/// The entries that there are, ascending; true for those that hold all before them.
///
/// # Errors
/// When the place cannot be listed.
pub fn spark_entries(files: &dyn DurableFiles) -> Result<Vec<(u64, bool)>, FileLogError> {
    let names = files.list(SPARK_FOLDER).map_err(|error| FileLogError::storage(files, "list", SPARK_FOLDER, error))?;
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

/// The file of an entry, relative to the output.
pub fn spark_entry_path((number, compact): (u64, bool)) -> String {
    format!("{SPARK_FOLDER}/{number}{}", if compact { COMPACT } else { "" })
}

/// The lines of an entry.
///
/// # Errors
/// When it cannot be read, or has another form.
pub fn spark_lines(files: &dyn DurableFiles, entry: (u64, bool)) -> Result<Vec<String>, FileLogError> {
    let path = spark_entry_path(entry);
    let bytes = files.get(&path).map_err(|error| FileLogError::storage(files, "read", &path, error))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| FileLogError::damaged(files, &path, error.to_string()))?;
    let mut lines = text.lines();
    if lines.next() != Some(VERSION) {
        return Err(FileLogError::damaged(files, &path, format!("it does not begin with `{VERSION}`")));
    }
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// The lines that a reader sees whose newest entry is `last`, of `entries`.
///
/// # Errors
/// As [`spark_lines`], and when a number is missing.
pub fn spark_lines_up_to(
    files: &dyn DurableFiles,
    entries: &[(u64, bool)],
    last: u64,
) -> Result<Vec<String>, FileLogError> {
    let compact = entries.iter().rev().find(|(number, compact)| *compact && *number <= last);
    let mut lines = match compact {
        Some(entry) => spark_lines(files, *entry)?,
        None => Vec::new(),
    };
    let first = compact.map_or(0, |(number, _)| number + 1);
    for number in first..=last {
        if !entries.contains(&(number, false)) {
            return Err(FileLogError::damaged(files, &spark_entry_path((number, false)), "it is missing"));
        }
        lines.extend(spark_lines(files, (number, false))?);
    }
    Ok(lines)
}

/// What a line says.
///
/// # Errors
/// When it has another form.
pub fn parse_spark_line(files: &dyn DurableFiles, line: &str) -> Result<SparkFile, FileLogError> {
    let file: SparkFile =
        serde_json::from_str(line).map_err(|error| FileLogError::damaged(files, SPARK_FOLDER, error.to_string()))?;
    match file.replaced.iter().all(|file| is_below(&file.name)) {
        true => Ok(file),
        false => Err(FileLogError::damaged(files, SPARK_FOLDER, "it names a file that is not below the output")),
    }
}

/// The files that Spark's log of an output names, in the order of their batches.
///
/// # Errors
/// When the place cannot be read, or the log is damaged.
pub fn read_spark_log(files: &dyn DurableFiles) -> Result<Vec<SparkFile>, FileLogError> {
    let mut looks = 0;
    loop {
        match read_once(files) {
            // An entry has gone while it was read, or the listing saw old ones go before it saw what replaces them.
            Err(error) if looks < LOOKS && (error.is_missing() || is_gap(&error)) => looks += 1,
            result => return result,
        }
    }
}

fn is_gap(error: &FileLogError) -> bool {
    matches!(error, FileLogError::Damaged { reason, .. } if reason == "it is missing")
}

fn read_once(files: &dyn DurableFiles) -> Result<Vec<SparkFile>, FileLogError> {
    let entries = spark_entries(files)?;
    let Some((last, _)) = entries.last() else { return Ok(Vec::new()) };
    let mut named: Vec<SparkFile> = Vec::new();
    let mut has_deletes = false;
    for line in spark_lines_up_to(files, &entries, *last)? {
        let file = parse_spark_line(files, &line)?;
        match file.action.as_str() {
            "add" => {}
            "delete" => has_deletes = true,
            other => {
                return Err(FileLogError::damaged(files, SPARK_FOLDER, format!("it has the unknown action `{other}`")));
            }
        }
        named.push(file);
    }
    if has_deletes {
        let deleted = named.iter().filter(|file| file.action == "delete").map(|file| file.path.clone());
        let deleted: std::collections::HashSet<String> = deleted.collect();
        named.retain(|file| !deleted.contains(&file.path));
    }
    Ok(named)
}

/// The text behind a URI's escapes; text that is no path within a URI comes back as far as it is one.
pub fn unquote(quoted: &str) -> String {
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
