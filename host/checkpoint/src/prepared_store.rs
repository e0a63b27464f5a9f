//! What a sink with two phases holds ready, by batch.
//!
//! Written after the sink has prepared a batch and before the commit log has it; removed when the sink has committed or
//! aborted it. The commit log is the authority: a batch that it has is committed with what its entry says; one that it has
//! not is aborted with what stands here.
//!
//! Rule of its life: there is at most one entry, of the last batch; an attempt writes over that of the attempt before.

use crate::CheckpointError;
use crate::batch_log::{BatchEntry, BatchLog};
use crate::document::DocumentKind;
use millstream_common::{BatchId, DurableFiles};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a batch has prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedEntry {
    /// The batch.
    pub batch: BatchId,
    /// JSON that only the sink reads.
    pub sink: serde_json::Value,
}

impl BatchEntry for PreparedEntry {
    const FOLDER: &'static str = PreparedStore::FOLDER;
    const KIND: DocumentKind = DocumentKind { word: "prepared", version: 1, oldest: 1 };
    fn batch(&self) -> BatchId {
        self.batch
    }
}

/// The folder `prepared`.
#[derive(Debug, Clone)]
pub struct PreparedStore(BatchLog<PreparedEntry>);

impl PreparedStore {
    /// The folder's name.
    pub(crate) const FOLDER: &'static str = "prepared";

    /// The prepared batches of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self(BatchLog::new(files))
    }

    /// Says that a batch is prepared, in place of an earlier attempt at it.
    ///
    /// # Errors
    /// The files' own.
    pub fn put(&self, entry: &PreparedEntry) -> Result<(), CheckpointError> {
        self.0.put(entry)
    }

    /// All that is not known to have come to an end, oldest first.
    ///
    /// # Errors
    /// When the folder cannot be listed or an entry not be read.
    pub fn all(&self) -> Result<Vec<PreparedEntry>, CheckpointError> {
        let mut entries = Vec::new();
        for batch in self.0.batches()? {
            entries.extend(self.0.get(batch)?);
        }
        Ok(entries)
    }

    /// The entry of a batch; `None` when it has come to its end.
    ///
    /// # Errors
    /// When the file is torn, foreign, of another release or of another batch.
    pub fn get(&self, batch: BatchId) -> Result<Option<PreparedEntry>, CheckpointError> {
        self.0.get(batch)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.0.names()
    }

    /// Says that a batch has come to an end.
    ///
    /// # Errors
    /// The files' own; safe to call again.
    pub fn remove(&self, batch: BatchId) -> Result<(), CheckpointError> {
        self.0.remove(batch)
    }
}
