//! The commit log: which batches are done, written after sink and state are.
//!
//! The last durable write of a batch. It names the state files of every partition, so it is the one point at
//! which a version of the state becomes true.
//!
//! Rule of its life: entry N is written once, after `offsets/N`, after the sink has the rows and the state files
//! are durable.
//!
//! It does not understand state manifests: they are JSON that only the state store reads.

use crate::batch_log::{BatchEntry, BatchLog};
use crate::document::DocumentKind;
use crate::{CanaryTally, CheckpointError, json_lines};
use millstream_common::{BatchId, DurableFiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that a batch gave or read, to be compared when it is run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPin {
    /// The number of rows.
    pub rows: u64,
    /// A digest of their columns.
    pub digest: String,
}

/// A batch is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitEntry {
    /// The batch.
    pub batch: BatchId,
    /// The watermark that the next batch evicts with; `None` for a query without watermark.
    pub next_watermark_ms: Option<i64>,
    /// The state after the batch: per operator the manifests of its partitions, in order.
    pub state: BTreeMap<String, Vec<serde_json::Value>>,
    /// What it gave out; `None` where digests are off, for a batch that gives nothing, and in an entry of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputPin>,
    /// What it read of sources of which it is only their word that a range gives the same rows again, by stream; empty where
    /// digests are off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, OutputPin>,
    /// What a sink with two phases has prepared, to be committed now that the batch is done; JSON that only the sink reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<serde_json::Value>,
    /// What its canary has shown so far; `None` without one. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryTally>,
}

/// A [`CommitEntry`] that is about to be written.
#[derive(Serialize)]
struct Fresh<'a, S> {
    batch: BatchId,
    next_watermark_ms: Option<i64>,
    state: &'a S,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a OutputPin>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: &'a BTreeMap<String, OutputPin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<&'a CanaryTally>,
}

impl BatchEntry for CommitEntry {
    const FOLDER: &'static str = "commits";
    const KIND: DocumentKind = DocumentKind { word: "commit-log", version: 2, oldest: 1 };
    fn batch(&self) -> BatchId {
        self.batch
    }
}

/// The folder `commits`.
#[derive(Debug, Clone)]
pub struct CommitLog(BatchLog<CommitEntry>);

impl CommitLog {
    /// The commit log of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self(BatchLog::new(files))
    }

    /// Says that a batch is done.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`] when another process has said so; the files' own errors.
    pub fn add(&self, entry: &CommitEntry) -> Result<(), CheckpointError> {
        self.0.add(entry)
    }

    /// Says that a batch is done whose state is still in the form that the state store gives it: `state` has the JSON of
    /// [`CommitEntry::state`].
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_state(
        &self,
        batch: BatchId,
        next_watermark_ms: Option<i64>,
        state: &impl Serialize,
        (output, inputs, sink): (Option<&OutputPin>, &BTreeMap<String, OutputPin>, Option<&serde_json::Value>),
        canary: Option<&CanaryTally>,
    ) -> Result<(), CheckpointError> {
        let fresh = Fresh { batch, next_watermark_ms, state, output, inputs, sink, canary };
        self.0.add_json(batch, json_lines::to_vec(&fresh, 0))
    }

    /// The entry of a batch; `None` when it is not done.
    ///
    /// # Errors
    /// When the file is torn, foreign, of another release or of another batch.
    pub fn get(&self, batch: BatchId) -> Result<Option<CommitEntry>, CheckpointError> {
        self.0.get(batch)
    }

    /// The batches that are done and not purged, ascending.
    ///
    /// # Errors
    /// When the folder cannot be listed or holds a file that is no entry.
    pub fn batches(&self) -> Result<Vec<BatchId>, CheckpointError> {
        self.0.batches()
    }

    pub(crate) fn purge(&self, before: BatchId) -> Result<usize, CheckpointError> {
        self.0.purge(before)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.0.names()
    }
}
