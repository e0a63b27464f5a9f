//! The log of the output: which files each batch has. One of two forms, never both.
//!
//! A batch is in the output when it is in the log, and it gets there by one file that is written once.

use super::manifest;
use super::segments;
use super::spark_log::SparkLog;
use crate::SinkError;
use millstream_client::file_log::CommittedBatch;
use millstream_common::{BatchId, Clock, DurableFiles, QueryId};
use std::sync::Arc;

/// What became of a batch that was to be added.
pub(super) enum Added {
    /// It is in the log now.
    Now,
    /// An attempt that was thought to have failed had arrived after all; the names of its files.
    Before(Vec<String>),
}

/// The log of an output.
pub(super) enum FileLog {
    /// Manifests of our own, below `_millstream`.
    Manifests(ManifestLog),
    /// Spark's log, below `_spark_metadata`.
    Spark(SparkLog),
}

/// How manifests are merged.
pub(super) struct ManifestLog {
    /// Every how many batches.
    pub(super) interval: u64,
    /// How old a file may be to stay in the log.
    pub(super) retention_ms: Option<i64>,
    pub(super) clock: Arc<dyn Clock>,
}

impl ManifestLog {
    /// Merges manifests now and then. The batch is in without it.
    fn tidy(&self, files: &dyn DurableFiles, batch: BatchId) {
        if !(batch.0 + 1).is_multiple_of(self.interval) {
            return;
        }
        let forgotten_ms = self.retention_ms.map(|retention| self.clock.now_ms().saturating_sub(retention));
        if let Err(error) = segments::compact(files, self.interval, forgotten_ms) {
            tracing::warn!(output = files.location(), %error, "the manifests could not be merged");
        }
    }
}

impl FileLog {
    /// The newest batch in the output.
    pub(super) fn latest(&self, files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
        match self {
            Self::Manifests(_) => segments::latest(files),
            Self::Spark(_) => SparkLog::latest(files),
        }
    }

    /// Puts a batch behind `latest` into the output.
    pub(super) fn add(
        &self,
        files: &dyn DurableFiles,
        latest: Option<BatchId>,
        batch: &CommittedBatch,
    ) -> Result<Added, SinkError> {
        match self {
            Self::Manifests(log) => {
                let added = manifest::add(files, batch)?;
                log.tidy(files, batch.batch);
                Ok(added)
            }
            Self::Spark(log) => log.add(files, latest, batch),
        }
    }

    /// Whether the entry of a batch can replace files of earlier ones.
    pub(super) fn can_replace(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<bool, SinkError> {
        match self {
            Self::Manifests(_) => Ok(true),
            Self::Spark(log) => log.holds_all(files, batch),
        }
    }

    /// The names of the files of a batch that is in the log.
    pub(super) fn names(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<Vec<String>, SinkError> {
        match self {
            Self::Manifests(_) => Ok(manifest::names(&segments::find(files, batch)?)),
            Self::Spark(log) => log.names(files, batch),
        }
    }

    /// Refuses an output that has its batches in a log of the other form, or in one that is not `query`'s.
    pub(super) fn check_form(
        &self,
        files: &dyn DurableFiles,
        sink: &str,
        query: Option<QueryId>,
    ) -> Result<(), SinkError> {
        let (other, set) = match self {
            Self::Manifests(_) => (SparkLog::latest(files)?, "false"),
            Self::Spark(_) => (segments::latest(files)?, "true"),
        };
        if other.is_some() {
            let reason = "the output has its batches in a log of the other form; leave the option as it was, or write to \
                          a new place";
            return Err(
                millstream_common::Options::invalid(&format!("sink `{sink}`"), "sparkMetadata", set, reason).into()
            );
        }
        if query.is_some() && self.latest(files)?.is_some() && !manifest::is_owned(files)? {
            return Err(SinkError::Corrupt {
                sink: sink.to_owned(),
                place: files.location(),
                reason: "its log was written by another program".to_owned(),
            });
        }
        Ok(())
    }
}
