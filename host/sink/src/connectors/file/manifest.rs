//! Manifests: the commits of the file sink, and who may write them. Which files they are in is the business of [`segments`].
//!
//! A manifest is a header line with a checksum and one JSON object: query, batch, rows, and per file its name, rows
//! and bytes.

use super::log::Added;
use super::segments::{self, CommittedBatches};
use super::spark_log;
use crate::SinkError;
use bytes::Bytes;
use millstream_common::{BatchId, DurableError, DurableFiles, QueryId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The folder of manifests below the output.
pub(super) const FOLDER: &str = "_millstream";
const HEADER: &str = "millstream-sink 1 crc32 ";
const OWNER: &str = "_millstream/owner";

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

/// A batch that is in the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedBatch {
    /// The query that wrote it.
    pub query: QueryId,
    /// The batch.
    pub batch: BatchId,
    /// How many rows it has.
    pub rows: u64,
    /// Its files, in the order of the rows; none when they are older than the output's retention.
    pub files: Vec<CommittedFile>,
    /// When it was committed, in milliseconds; 0 when that was not written down.
    #[serde(default)]
    pub committed_ms: i64,
}

/// Who owns the output.
#[derive(Serialize, Deserialize)]
struct Owner {
    query: QueryId,
}

/// The batches that are in the output at `location`, a path or URL, ascending.
///
/// # Errors
/// When the place cannot be read, or a manifest is damaged.
pub fn read_committed(location: &str) -> Result<Vec<CommittedBatch>, SinkError> {
    let files = millstream_checkpoint::open_files(location, &[]).map_err(|source| SinkError::Open {
        sink: "file".to_owned(),
        action: "open",
        place: location.to_owned(),
        source: Box::new(source),
    })?;
    read_committed_in(files.as_ref())
}

/// As [`read_committed`], of an open folder.
///
/// # Errors
/// As [`read_committed`].
pub fn read_committed_in(files: &dyn DurableFiles) -> Result<Vec<CommittedBatch>, SinkError> {
    if !files.list(spark_log::FOLDER).map_err(|error| open_error(files, "list", spark_log::FOLDER, error))?.is_empty() {
        return Err(corrupt(files, spark_log::FOLDER, "the output has its batches in Spark's log; read that"));
    }
    CommittedBatches::new(files)?.collect()
}

fn path(batch: BatchId) -> String {
    format!("{FOLDER}/{batch}.manifest")
}

/// Writes the manifest of a batch: afterwards the batch is in the output.
pub(super) fn add(files: &dyn DurableFiles, manifest: &CommittedBatch) -> Result<Added, SinkError> {
    let path = path(manifest.batch);
    match files.put_new(&path, seal(manifest)) {
        Ok(()) => Ok(Added::Now),
        Err(DurableError::Exists { .. }) => {
            let earlier = segments::find(files, manifest.batch)?;
            if earlier.query != manifest.query {
                let (place, owner) = (files.location(), earlier.query);
                return Err(SinkError::Foreign { sink: "file".to_owned(), place, owner, query: manifest.query });
            }
            Ok(Added::Before(earlier.files.into_iter().map(|file| file.name).collect()))
        }
        Err(error) => Err(SinkError::Unavailable {
            sink: "file".to_owned(),
            action: "write",
            place: full(files, &path),
            batch: manifest.batch,
            source: Box::new(error),
        }),
    }
}

/// Whether a query has the output.
pub(super) fn is_owned(files: &dyn DurableFiles) -> Result<bool, SinkError> {
    match files.get(OWNER) {
        Ok(_) => Ok(true),
        Err(DurableError::Missing { .. }) => Ok(false),
        Err(error) => Err(open_error(files, "read", OWNER, error)),
    }
}

/// Takes the output for `query`, or finds that it has it.
pub(super) fn claim(files: &dyn DurableFiles, format: &str, query: QueryId) -> Result<(), SinkError> {
    match files.put_new(OWNER, seal(&Owner { query })) {
        Ok(()) => return Ok(()),
        Err(DurableError::Exists { .. }) => {}
        Err(error) => return Err(open_error(files, "claim", OWNER, error)),
    }
    let Owner { query: owner } = read_sealed(files, OWNER)?;
    if owner == query {
        return Ok(());
    }
    Err(SinkError::Foreign { sink: format.to_owned(), place: files.location(), owner, query })
}

fn seal(value: &impl Serialize) -> Bytes {
    seal_text(&serde_json::to_string(value).expect("ids, names and numbers always have a JSON form"))
}

/// The bytes of a file around `body`.
pub(super) fn seal_text(body: &str) -> Bytes {
    Bytes::from(format!("{HEADER}{:08x}\n{body}\n", crc32fast::hash(body.as_bytes())))
}

/// The value in a file that tells whether it is whole.
pub(super) fn read_sealed<T: DeserializeOwned>(files: &dyn DurableFiles, path: &str) -> Result<T, SinkError> {
    let body = read_sealed_text(files, path)?;
    serde_json::from_str(&body).map_err(|error| corrupt(files, path, &error.to_string()))
}

/// The body of such a file.
pub(super) fn read_sealed_text(files: &dyn DurableFiles, path: &str) -> Result<String, SinkError> {
    let bytes = files.get(path).map_err(|error| open_error(files, "read", path, error))?;
    let body = std::str::from_utf8(&bytes).ok().and_then(|text| {
        let (header, body) = text.strip_suffix('\n')?.split_once('\n')?;
        let sum = u32::from_str_radix(header.strip_prefix(HEADER)?, 16).ok()?;
        (sum == crc32fast::hash(body.as_bytes())).then_some(body)
    });
    body.map(str::to_owned).ok_or_else(|| corrupt(files, path, "its checksum does not match"))
}

fn full(files: &dyn DurableFiles, path: &str) -> String {
    format!("{}/{path}", files.location().trim_end_matches('/'))
}

/// A [`SinkError::Corrupt`] about a file of the output.
pub(super) fn corrupt(files: &dyn DurableFiles, path: &str, reason: &str) -> SinkError {
    SinkError::Corrupt { sink: "file".to_owned(), place: full(files, path), reason: reason.to_owned() }
}

/// A [`SinkError::Open`] about a file of the output.
pub(super) fn open_error(files: &dyn DurableFiles, action: &'static str, path: &str, error: DurableError) -> SinkError {
    SinkError::Open { sink: "file".to_owned(), action, place: full(files, path), source: Box::new(error) }
}
