//! The swap log: which batches began with other code, and what was said of it before.
//!
//! Written before the offset entry of the first batch of the new code. The offset log stays the authority: an entry here
//! whose batch is defined with other code, or not at all, tells of a swap that a crash undid, and the next run removes it
//! ([`SwapLog::forget_undone`]).
//!
//! Rule of its life: entries are small and few, and are kept for as long as the checkpoint: they are the history of its
//! code when the offset entries are long gone.

use crate::CheckpointError;
use crate::batch_log::{BatchEntry, BatchLog};
use crate::document::DocumentKind;
use crate::offset_log::OffsetEntry;
use millstream_common::{BatchId, Digest, DurableFiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The folder.
pub(crate) const FOLDER: &str = "swaps";

/// What became of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapRecord {
    /// The component before.
    pub from: Digest,
    /// The component from this batch on.
    pub to: Digest,
    /// Who wanted it: `swap`, `rollback`, `restart`.
    pub by: String,
    /// The verdict on it.
    pub verdict: String,
    /// Whether a person approved of what the verdict held against it.
    pub approved: bool,
    /// What the verdict held against it.
    #[serde(default)]
    pub findings: Vec<String>,
    /// What became of the state, when it did not simply stay: `migrated`, `restored`.
    #[serde(default)]
    pub state: Option<String>,
}

/// What became of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryEvent {
    /// It computes a slice from this batch on.
    Begun,
    /// It has taken over.
    Promoted,
    /// It computes nothing any more.
    RolledBack,
}

/// A canary that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryRecord {
    /// The candidate.
    pub candidate: Digest,
    /// Its share of the keys, in ten-thousandths.
    pub share: u32,
    /// What became of it.
    pub event: CanaryEvent,
    /// The verdict on it, whether a person approved, and why it ended, in words.
    pub why: String,
}

/// The swaps before one batch, by plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapEntry {
    /// The first batch of the new code.
    pub batch: BatchId,
    /// When it was defined, in milliseconds since 1970.
    pub time_ms: i64,
    /// The swaps.
    pub swaps: BTreeMap<String, SwapRecord>,
    /// The canaries that began or ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub canaries: BTreeMap<String, CanaryRecord>,
}

impl SwapEntry {
    /// Whether the batch was defined as it says: `batch` is the definition of its batch.
    pub fn is_of(&self, batch: &OffsetEntry) -> bool {
        let pin = |plugin: &String| batch.plugins.get(plugin);
        let runs = |(plugin, record): (&String, &SwapRecord)| pin(plugin).is_some_and(|pin| pin.digest == record.to);
        let candidate =
            |plugin: &String| pin(plugin).and_then(|pin| pin.canary.as_ref()).map(|canary| canary.candidate);
        let is_so = |(plugin, record): (&String, &CanaryRecord)| match record.event {
            CanaryEvent::Begun => candidate(plugin) == Some(record.candidate),
            CanaryEvent::Promoted | CanaryEvent::RolledBack => candidate(plugin).is_none(),
        };
        self.swaps.iter().all(runs) && self.canaries.iter().all(is_so)
    }
}

impl BatchEntry for SwapEntry {
    const FOLDER: &'static str = FOLDER;
    const KIND: DocumentKind = DocumentKind { word: "swap-log", version: 1, oldest: 1 };
    fn batch(&self) -> BatchId {
        self.batch
    }
}

/// The folder `swaps`.
#[derive(Debug, Clone)]
pub struct SwapLog(BatchLog<SwapEntry>);

impl SwapLog {
    /// The swap log of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self(BatchLog::new(files))
    }

    /// Says that the batch is about to be defined with other code.
    ///
    /// # Errors
    /// The files' own.
    pub fn put(&self, entry: &SwapEntry) -> Result<(), CheckpointError> {
        self.0.put(entry)
    }

    /// All entries, oldest first.
    ///
    /// # Errors
    /// When the folder cannot be listed or an entry not be read.
    pub fn all(&self) -> Result<Vec<SwapEntry>, CheckpointError> {
        let mut entries = Vec::new();
        for batch in self.0.batches()? {
            entries.extend(self.0.get(batch)?);
        }
        Ok(entries)
    }

    /// Per plugin the component before the last swap.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub fn newest_from(&self) -> Result<Vec<Digest>, CheckpointError> {
        let mut newest = BTreeMap::new();
        for entry in self.all()? {
            newest.extend(entry.swaps.into_iter().map(|(plugin, record)| (plugin, record.from)));
        }
        Ok(newest.into_values().collect())
    }

    /// Removes entries of swaps that a crash undid: `last` is the newest entry of the offset log.
    ///
    /// # Errors
    /// When an entry cannot be read or a file not be deleted; safe to call again.
    pub fn forget_undone(&self, last: Option<&OffsetEntry>) -> Result<(), CheckpointError> {
        for batch in self.0.batches()?.into_iter().rev() {
            let is_undone = match last {
                Some(last) if batch < last.batch => return Ok(()),
                Some(last) if batch == last.batch => self.0.get(batch)?.is_some_and(|entry| !entry.is_of(last)),
                _ => true,
            };
            if is_undone {
                self.0.remove(batch)?;
            }
        }
        Ok(())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.0.names()
    }

    /// The entry of a batch; `None` when it began with the code of the batch before.
    ///
    /// # Errors
    /// When the file is torn, foreign, of another release or of another batch.
    pub fn get(&self, batch: BatchId) -> Result<Option<SwapEntry>, CheckpointError> {
        self.0.get(batch)
    }
}
