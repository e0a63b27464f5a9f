//! What the log says of a batch, and the form of its files.
//!
//! A file of the log is a header line with a checksum and one JSON object per line: query, batch, rows, and per file its
//! name, rows and bytes; then the files that were put together with this batch, and from what.

use super::{CommittedBatches, FileLogError};
use bytes::Bytes;
use millstream_common::{BatchId, DurableFiles, QueryId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The folder of manifests below the output.
pub const FOLDER: &str = "_millstream";
/// The file that says whose the output is; it is there before any data.
pub const OWNER: &str = "_millstream/owner";
const HEADER: &str = "millstream-sink 1 crc32 ";

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedFile {
    /// The name, relative to the output.
    pub name: String,
    /// How many rows it holds.
    pub rows: u64,
    /// How long it is.
    pub bytes: u64,
}

/// A file that another one stands for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedFile {
    /// The name, relative to the output.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// When its rows were committed, in milliseconds.
    pub committed_ms: i64,
}

/// A file with the rows of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedFile {
    /// The file.
    pub file: CommittedFile,
    /// Those it stands for, in the order of the rows; they are deleted after a while.
    pub replaced: Vec<ReplacedFile>,
}

impl MergedFile {
    /// When the newest of its rows were committed, in milliseconds.
    pub fn committed_ms(&self) -> i64 {
        self.replaced.iter().map(|file| file.committed_ms).max().unwrap_or(0)
    }
}

/// A batch that is in the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedBatch {
    /// The query that wrote it.
    pub query: QueryId,
    /// The batch.
    pub batch: BatchId,
    /// How many rows it has.
    pub rows: u64,
    /// Its files, in the order of the rows; none when they are older than the output's retention. Some may be replaced by
    /// those in `merged` of a later batch.
    pub files: Vec<CommittedFile>,
    /// Files with rows of earlier batches, which were put together with this batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedFile>,
    /// When it was committed, in milliseconds; 0 when that was not written down.
    #[serde(default)]
    pub committed_ms: i64,
}

/// Whether a name is one of a file below the output: whoever writes a log must not make readers read what is elsewhere.
pub(super) fn is_below(name: &str) -> bool {
    name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

impl CommittedBatch {
    /// All names that the entry has.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let replaced = self.merged.iter().flat_map(|merged| &merged.replaced).map(|file| file.name.as_str());
        let merged = self.merged.iter().map(|merged| &merged.file);
        self.files.iter().chain(merged).map(|file| file.name.as_str()).chain(replaced)
    }
}

/// The files that a reader of the whole output reads now: each committed row is in exactly one of them.
///
/// # Errors
/// When the place cannot be read, or its log is damaged.
pub fn live_files(files: &dyn DurableFiles) -> Result<Vec<CommittedFile>, FileLogError> {
    let mut live = Vec::new();
    let mut replaced: HashSet<String> = HashSet::new();
    for batch in CommittedBatches::new(files)? {
        let batch = batch?;
        live.extend(batch.files);
        for merged in batch.merged {
            live.push(merged.file);
            replaced.extend(merged.replaced.into_iter().map(|file| file.name));
        }
    }
    live.retain(|file| !replaced.contains(&file.name));
    Ok(live)
}

/// The bytes of a file around a value.
pub fn seal(value: &impl Serialize) -> Bytes {
    seal_text(&serde_json::to_string(value).expect("ids, names and numbers always have a JSON form"))
}

/// The bytes of a file around `body`.
pub fn seal_text(body: &str) -> Bytes {
    Bytes::from(format!("{HEADER}{:08x}\n{body}\n", crc32fast::hash(body.as_bytes())))
}

/// The value in a file that tells whether it is whole.
///
/// # Errors
/// When it cannot be read or is damaged.
pub fn read_sealed<T: DeserializeOwned>(files: &dyn DurableFiles, path: &str) -> Result<T, FileLogError> {
    let body = read_sealed_text(files, path)?;
    serde_json::from_str(&body).map_err(|error| FileLogError::damaged(files, path, error.to_string()))
}

/// The body of such a file.
///
/// # Errors
/// As [`read_sealed`].
pub fn read_sealed_text(files: &dyn DurableFiles, path: &str) -> Result<String, FileLogError> {
    let bytes = files.get(path).map_err(|error| FileLogError::storage(files, "read", path, error))?;
    let body = std::str::from_utf8(&bytes).ok().and_then(|text| {
        let (header, body) = text.strip_suffix('\n')?.split_once('\n')?;
        let sum = u32::from_str_radix(header.strip_prefix(HEADER)?, 16).ok()?;
        (sum == crc32fast::hash(body.as_bytes())).then_some(body)
    });
    body.map(str::to_owned).ok_or_else(|| FileLogError::damaged(files, path, "its checksum does not match"))
}
