//! Manifests: the commits of the file sink, and who may write them. Which files they are in is the business of
//! [`segments`]; their form, and how they are read, is the client's ([`millstream_client::file_log`]).

use super::log::Added;
use super::segments;
use crate::SinkError;
use millstream_client::file_log::{
    CommittedBatch, CommittedBatches, CommittedFile, FileLogError, OWNER, SPARK_FOLDER, Segment, live_files,
    read_sealed, seal,
};
use millstream_common::{BatchId, DurableError, DurableFiles, QueryId};
use serde::{Deserialize, Serialize};

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
    read_committed_in(open(location)?.as_ref())
}

/// As [`read_committed`], of an open folder.
///
/// # Errors
/// As [`read_committed`].
pub fn read_committed_in(files: &dyn DurableFiles) -> Result<Vec<CommittedBatch>, SinkError> {
    check_form(files)?;
    Ok(CommittedBatches::new(files)?.collect::<Result<_, _>>()?)
}

/// The files that a reader of the whole output at an open folder reads: each committed row is in exactly one of them, also
/// where small files were put together.
///
/// # Errors
/// As [`read_committed`].
pub fn read_live_files(files: &dyn DurableFiles) -> Result<Vec<CommittedFile>, SinkError> {
    check_form(files)?;
    Ok(live_files(files)?)
}

fn open(location: &str) -> Result<std::sync::Arc<dyn DurableFiles>, SinkError> {
    millstream_checkpoint::open_files(location, &[]).map_err(|source| SinkError::Open {
        sink: "file".to_owned(),
        action: "open",
        place: location.to_owned(),
        source: Box::new(source),
    })
}

fn check_form(files: &dyn DurableFiles) -> Result<(), SinkError> {
    let listed = files.list(SPARK_FOLDER).map_err(|error| open_error(files, "list", SPARK_FOLDER, error))?;
    match listed.is_empty() {
        true => Ok(()),
        false => Err(corrupt(files, SPARK_FOLDER, "the output has its batches in Spark's log; read that")),
    }
}

/// Writes the manifest of a batch: afterwards the batch is in the output.
pub(super) fn add(files: &dyn DurableFiles, manifest: &CommittedBatch) -> Result<Added, SinkError> {
    let path = of_one(manifest.batch).path();
    match files.put_new(&path, seal(manifest)) {
        Ok(()) => Ok(Added::Now),
        Err(DurableError::Exists { .. }) => {
            let earlier = segments::find(files, manifest.batch)?;
            if earlier.query != manifest.query {
                let (place, owner) = (files.location(), earlier.query);
                return Err(SinkError::Foreign { sink: "file".to_owned(), place, owner, query: manifest.query });
            }
            // The first attempt may have arrived although its answer did not.
            let there = names(&earlier);
            Ok(if there == names(manifest) { Added::Now } else { Added::Before(there) })
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

/// The names of the files that came with a batch.
pub(super) fn names(batch: &CommittedBatch) -> Vec<String> {
    let merged = batch.merged.iter().map(|merged| &merged.file);
    batch.files.iter().chain(merged).map(|file| file.name.clone()).collect()
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

impl From<FileLogError> for SinkError {
    fn from(error: FileLogError) -> Self {
        let sink = "file".to_owned();
        match error {
            FileLogError::Storage { action, place, source } => {
                Self::Open { sink, action, place, source: Box::new(source) }
            }
            FileLogError::Damaged { place, reason } => Self::Corrupt { sink, place, reason },
            other => Self::Corrupt { sink, place: "the log of the output".to_owned(), reason: other.to_string() },
        }
    }
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

/// The file of the log that has one batch.
pub(super) fn of_one(batch: BatchId) -> Segment {
    Segment { first: batch.0, last: batch.0, level: 0 }
}
