//! Manifests: the commits of the file sink, and who may write them.
//!
//! A manifest is a header line with a checksum and one JSON object: query, batch, rows, and per file its name, rows
//! and bytes.

use super::log::Added;
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
    /// Its files, in the order of the rows.
    pub files: Vec<CommittedFile>,
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
    numbers(files)?.into_iter().map(|batch| read(files, batch)).collect()
}

/// The newest batch in the output.
pub(super) fn latest(files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
    Ok(numbers(files)?.last().copied())
}

fn numbers(files: &dyn DurableFiles) -> Result<Vec<BatchId>, SinkError> {
    let names = files.list(FOLDER).map_err(|error| open_error(files, "list", FOLDER, error))?;
    let mut numbers: Vec<BatchId> =
        names.iter().filter_map(|name| name.strip_suffix(".manifest")?.parse().ok()).map(BatchId).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn path(batch: BatchId) -> String {
    format!("{FOLDER}/{batch}.manifest")
}

/// Reads the manifest of a batch.
pub(super) fn read(files: &dyn DurableFiles, batch: BatchId) -> Result<CommittedBatch, SinkError> {
    let path = path(batch);
    let manifest: CommittedBatch = read_sealed(files, &path)?;
    if manifest.batch != batch {
        return Err(corrupt(files, &path, "it is the manifest of another batch"));
    }
    Ok(manifest)
}

/// Writes the manifest of a batch: afterwards the batch is in the output.
pub(super) fn add(files: &dyn DurableFiles, manifest: &CommittedBatch) -> Result<Added, SinkError> {
    let path = path(manifest.batch);
    match files.put_new(&path, seal(manifest)) {
        Ok(()) => Ok(Added::Now),
        Err(DurableError::Exists { .. }) => {
            let earlier = read(files, manifest.batch)?;
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
    let body = serde_json::to_string(value).expect("ids, names and numbers always have a JSON form");
    Bytes::from(format!("{HEADER}{:08x}\n{body}\n", crc32fast::hash(body.as_bytes())))
}

fn read_sealed<T: DeserializeOwned>(files: &dyn DurableFiles, path: &str) -> Result<T, SinkError> {
    let bytes = files.get(path).map_err(|error| open_error(files, "read", path, error))?;
    let body = std::str::from_utf8(&bytes).ok().and_then(|text| {
        let (header, body) = text.strip_suffix('\n')?.split_once('\n')?;
        let sum = u32::from_str_radix(header.strip_prefix(HEADER)?, 16).ok()?;
        (sum == crc32fast::hash(body.as_bytes())).then_some(body)
    });
    let body = body.ok_or_else(|| corrupt(files, path, "its checksum does not match"))?;
    serde_json::from_str(body).map_err(|error| corrupt(files, path, &error.to_string()))
}

fn full(files: &dyn DurableFiles, path: &str) -> String {
    format!("{}/{path}", files.location().trim_end_matches('/'))
}

fn corrupt(files: &dyn DurableFiles, path: &str, reason: &str) -> SinkError {
    SinkError::Corrupt { sink: "file".to_owned(), place: full(files, path), reason: reason.to_owned() }
}

/// A [`SinkError::Open`] about a file of the output.
pub(super) fn open_error(files: &dyn DurableFiles, action: &'static str, path: &str, error: DurableError) -> SinkError {
    SinkError::Open { sink: "file".to_owned(), action, place: full(files, path), source: Box::new(error) }
}
