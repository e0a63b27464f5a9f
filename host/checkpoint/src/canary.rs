//! A canary as the logs have it: what it is, what it has shown, and in which batch its candidate was given up.
//!
//! What it is stands in the offset entry of each of its batches, so that a batch that is run again has the same slice in the
//! same code; what it has shown so far stands in the commit entries, so that a restart decides about it as the run before
//! would have. A batch in which the candidate failed is run again without it before anything goes out: that is said by a
//! file of its own, because its offset entry is written already.

use crate::CheckpointError;
use crate::batch_log::{BatchEntry, BatchLog};
use crate::document::DocumentKind;
use millstream_common::{BatchId, Digest, DurableFiles};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The folder of the batches whose candidate was given up.
pub(crate) const FOLDER: &str = "fallbacks";

/// What a canary is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryPin {
    /// The component that computes the slice.
    pub candidate: Digest,
    /// The share of the keys, in ten-thousandths.
    pub share: u32,
    /// Its first batch.
    pub first: BatchId,
    /// After so many batches that had keys of the slice the candidate takes over.
    pub batches: u64,
    /// Whether an answer that differs from the running code's is a failure.
    pub expect_same: bool,
    /// How many times the CPU time of the running code the candidate may take, in percent.
    pub cost_percent: u32,
}

/// What a canary has shown since its first batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryTally {
    /// Batches that had keys of the slice.
    pub batches: u64,
    /// Rows of the slice.
    pub rows: u64,
    /// CPU time of the candidate, in microseconds.
    pub candidate_us: u64,
    /// CPU time of the running code for the same, in microseconds.
    pub current_us: u64,
    /// Rows, groups and keys at which the two answered otherwise.
    pub differing: u64,
    /// One of them, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// Why the candidate was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// That a batch is run without its candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FallbackEntry {
    /// The batch.
    pub batch: BatchId,
    /// The plugin.
    pub plugin: String,
    /// The component that failed.
    pub candidate: Digest,
    /// What it did.
    pub reason: String,
}

impl BatchEntry for FallbackEntry {
    const FOLDER: &'static str = FOLDER;
    const KIND: DocumentKind = DocumentKind { word: "fallback", version: 1, oldest: 1 };
    fn batch(&self) -> BatchId {
        self.batch
    }
}

/// The folder `fallbacks`.
#[derive(Debug, Clone)]
pub struct FallbackLog(BatchLog<FallbackEntry>);

impl FallbackLog {
    /// The fallbacks of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self(BatchLog::new(files))
    }

    /// Says that a batch is run without its candidate, before anything of it goes out.
    ///
    /// # Errors
    /// The files' own.
    pub fn put(&self, entry: &FallbackEntry) -> Result<(), CheckpointError> {
        self.0.put(entry)
    }

    /// The entry of a batch; `None` when its candidate did not fail.
    ///
    /// # Errors
    /// When the file is torn, foreign, of another release or of another batch.
    pub fn get(&self, batch: BatchId) -> Result<Option<FallbackEntry>, CheckpointError> {
        self.0.get(batch)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.0.names()
    }

    pub(crate) fn purge(&self, before: BatchId) -> Result<usize, CheckpointError> {
        self.0.purge(before)
    }
}
