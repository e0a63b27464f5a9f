//! What can go wrong with a checkpoint.

use millstream_common::{BatchId, DurableError, Fault, Hint};

/// A checkpoint could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The location names no place that a checkpoint can be in.
    #[error("`{location}` is no place for a checkpoint")]
    Location {
        /// What was given.
        location: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The files below failed.
    #[error("cannot use the checkpoint in `{place}`")]
    Files {
        /// The checkpoint.
        place: String,
        /// What failed.
        #[source]
        source: DurableError,
    },
    /// There is no checkpoint at all.
    #[error("there is no checkpoint in `{place}`")]
    Absent {
        /// Where it was looked for.
        place: String,
    },
    /// There is a checkpoint already.
    #[error("there is a checkpoint in `{place}` already")]
    Present {
        /// Where it was to be made.
        place: String,
    },
    /// The file is ours and not what was written.
    #[error("file `{file}` of the checkpoint in `{place}` is damaged: {reason}")]
    Damaged {
        /// The checkpoint.
        place: String,
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The file was not written by this program.
    #[error("file `{file}` does not belong into the checkpoint in `{place}`: {reason}")]
    Foreign {
        /// The checkpoint.
        place: String,
        /// The file.
        file: String,
        /// Why it is foreign.
        reason: String,
    },
    /// The file has a format of another release.
    #[error("file `{file}` of the checkpoint in `{place}` has format version {found}, this program reads {known}")]
    Version {
        /// The checkpoint.
        place: String,
        /// The file.
        file: String,
        /// The version in the file.
        found: u64,
        /// The version that this program reads and writes.
        known: u32,
    },
    /// The file says that it belongs to another batch.
    #[error("file `{file}` of the checkpoint in `{place}` is the entry of batch {found}")]
    WrongNumber {
        /// The checkpoint.
        place: String,
        /// The file.
        file: String,
        /// The batch in the file.
        found: BatchId,
    },
    /// An entry is missing between others.
    #[error("cannot resume from `{place}`: `{present}` is there, `{missing}` is not")]
    Gap {
        /// The checkpoint.
        place: String,
        /// The file that is missing.
        missing: String,
        /// The file that needs it.
        present: String,
    },
    /// A batch is done that was never defined.
    #[error("cannot resume from `{place}`: batch {commit} is in `commits`, `offsets` ends {}", .offsets.map_or("before batch 0".to_owned(), |batch| format!("with batch {batch}")))]
    CommitAhead {
        /// The checkpoint.
        place: String,
        /// The last batch in `commits`.
        commit: BatchId,
        /// The last batch in `offsets`.
        offsets: Option<BatchId>,
    },
    /// The query's identity is lost, its past is not.
    #[error("cannot resume from `{place}`: the file `metadata` is missing, but `{found}` is there")]
    NoMetadata {
        /// The checkpoint.
        place: String,
        /// A folder with files in it.
        found: String,
    },
    /// Another run wrote the entry of the same batch.
    #[error("another process writes the checkpoint in `{place}`: `{file}` exists already")]
    Fenced {
        /// The checkpoint.
        place: String,
        /// The entry.
        file: String,
    },
    /// Another run holds the lease.
    #[error("the checkpoint in `{place}` is in use by {holder}")]
    InUse {
        /// The checkpoint.
        place: String,
        /// Run, process and machine.
        holder: String,
        /// When the lease ends by itself; `None` when it lasts as long as the process.
        free_in_ms: Option<i64>,
    },
    /// Another run has taken the lease, or it ended before it was renewed.
    #[error("this run no longer holds the lease of the checkpoint in `{place}`: {reason}")]
    LeaseLost {
        /// The checkpoint.
        place: String,
        /// Who holds it, or what happened.
        reason: String,
    },
    /// A component is missing in the checkpoint.
    #[error("component `{digest}` is missing in the checkpoint in `{place}`")]
    NoComponent {
        /// The checkpoint.
        place: String,
        /// The digest.
        digest: String,
    },
    /// The entry cannot be written as JSON.
    #[error("cannot write `{file}` of the checkpoint in `{place}`")]
    Encode {
        /// The checkpoint.
        place: String,
        /// The file.
        file: String,
        /// What the encoder said.
        #[source]
        source: serde_json::Error,
    },
}

impl Hint for CheckpointError {
    fn fault(&self) -> Fault {
        match self {
            Self::Location { .. } | Self::Absent { .. } | Self::Present { .. } => Fault::Query,
            Self::Files { .. } | Self::Fenced { .. } | Self::InUse { .. } | Self::LeaseLost { .. } => Fault::Outside,
            Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::Version { .. }
            | Self::WrongNumber { .. }
            | Self::Gap { .. }
            | Self::CommitAhead { .. }
            | Self::NoMetadata { .. }
            | Self::NoComponent { .. } => Fault::Corrupt,
            Self::Encode { .. } => Fault::Bug,
        }
    }

    fn may_pass(&self) -> bool {
        // What another run has written or taken does not come back: the writer stops, and the restart looks.
        matches!(self, Self::Files { .. })
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Location { .. } => {
                "give a folder, or a URL that begins with `file://`, `s3://`, `gs://`, `az://`, `hdfs://` or `memory://`".into()
            }
            Self::Files { .. } | Self::Encode { .. } => return None,
            Self::Absent { .. } => "check the path, or start the query to make a new checkpoint".into(),
            Self::Present { .. } => "resume the query from it, or choose another folder".into(),
            Self::Damaged { file, .. } | Self::WrongNumber { file, .. } => format!(
                "bring `{file}` back from a backup; `millstream checkpoint verify` shows which batches are whole"
            ),
            Self::Foreign { file, .. } => format!("move `{file}` out of the checkpoint"),
            Self::Version { .. } => "use the release that wrote the checkpoint, or start a new checkpoint".into(),
            Self::Gap { missing, .. } => format!(
                "bring `{missing}` back from a backup, or return to an earlier batch: delete all younger entries of \
                 `offsets` and `commits`"
            ),
            Self::CommitAhead { commit, .. } => format!(
                "bring `offsets/{commit}` back from a backup, or return to an earlier batch: delete all younger \
                 entries of `commits`"
            ),
            Self::NoMetadata { .. } => {
                "bring `metadata` back from a backup: without the query's id a sink that counts \
                                        each batch once would write everything twice; or start a new checkpoint"
                    .into()
            }
            Self::Fenced { .. } => "find and stop the other process, then start this query again".into(),
            Self::InUse { free_in_ms: None, .. } => "stop that process first".into(),
            Self::InUse { free_in_ms: Some(ms), .. } => format!(
                "stop that process first; if it is dead, wait {} s, or delete the file `lease`",
                ms.div_euclid(1000).saturating_add(1)
            ),
            Self::LeaseLost { .. } => {
                "nothing of this batch was committed; see which process has the checkpoint".into()
            }
            Self::NoComponent { digest, .. } => {
                format!("put the component back as `plugins/{digest}.wasm`, or return to a batch before it")
            }
        };
        Some(hint)
    }
}

impl CheckpointError {
    /// Wraps an error of the files.
    pub(crate) fn files(place: impl Into<String>, source: DurableError) -> Self {
        Self::Files { place: place.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_may_come_back_and_a_checkpoint_that_another_run_has_does_not() {
        let place = || "here".to_owned();
        let source = DurableError::Storage { action: "write", path: "offsets/3".into(), source: "503".into() };
        let errors = [
            (CheckpointError::files(place(), source), true),
            (CheckpointError::Fenced { place: place(), file: "offsets/3".into() }, false),
            (CheckpointError::LeaseLost { place: place(), reason: "another run has it".into() }, false),
            (CheckpointError::InUse { place: place(), holder: "another run".into(), free_in_ms: None }, false),
        ];
        for (error, may_pass) in errors {
            assert_eq!((error.fault(), error.may_pass()), (Fault::Outside, may_pass), "{error:?}");
        }
    }
}
