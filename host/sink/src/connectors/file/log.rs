//! The log of the output: which files each batch has. One of two forms, never both.
//!
//! A batch is in the output when it is in the log, and it gets there by one file that is written once.

use super::manifest::{self, CommittedBatch};
use super::spark_log::SparkLog;
use crate::SinkError;
use millstream_common::{BatchId, DurableFiles, QueryId};

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
    Manifests,
    /// Spark's log, below `_spark_metadata`.
    Spark(SparkLog),
}

impl FileLog {
    /// The newest batch in the output.
    pub(super) fn latest(&self, files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
        match self {
            Self::Manifests => manifest::latest(files),
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
            Self::Manifests => manifest::add(files, batch),
            Self::Spark(log) => log.add(files, latest, batch),
        }
    }

    /// The names of the files of a batch that is in the log.
    pub(super) fn names(&self, files: &dyn DurableFiles, batch: BatchId) -> Result<Vec<String>, SinkError> {
        match self {
            Self::Manifests => Ok(manifest::read(files, batch)?.files.into_iter().map(|file| file.name).collect()),
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
            Self::Manifests => (SparkLog::latest(files)?, "false"),
            Self::Spark(_) => (manifest::latest(files)?, "true"),
        };
        if other.is_some() {
            let reason = "the output has its batches in a log of the other form; leave the option as it was, or write to \
                          a new place";
            return Err(millstream_common::Options::invalid(&format!("sink `{sink}`"), "sparkMetadata", set, reason).into());
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
