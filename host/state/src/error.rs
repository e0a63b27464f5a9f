//! What can go wrong with state.

use millstream_common::{DurableError, Fault, Hint};

/// A store could not be opened or made durable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A file of the version is not there.
    #[error("state file `{file}` of version {version} in `{place}` is missing")]
    Missing {
        /// The store's folder.
        place: String,
        /// The file.
        file: String,
        /// The version that needs it.
        version: u64,
    },
    /// A file is not what was written.
    #[error("state file `{file}` in `{place}` is damaged: {reason}")]
    Damaged {
        /// The store's folder.
        place: String,
        /// The file.
        file: String,
        /// Length, checksum, format.
        reason: String,
    },
    /// The files were written under another schema.
    #[error("family `{family}` in `{place}` was written with schema {found}, the query has {wanted}")]
    Schema {
        /// The store's folder.
        place: String,
        /// The family.
        family: String,
        /// The schema id in the files.
        found: String,
        /// The schema id of the query.
        wanted: String,
    },
    /// The files that hold what a memory limit leaves no room for failed.
    #[error("cannot keep the state in `{place}` within its memory limit: the spill in `{folder}` failed")]
    Spill {
        /// The store's folder.
        place: String,
        /// Where the spill is.
        folder: String,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// The files below failed.
    #[error("cannot use the state in `{place}`")]
    Files {
        /// The store's folder.
        place: String,
        /// What failed.
        #[source]
        source: DurableError,
    },
}

impl Hint for StateError {
    fn fault(&self) -> Fault {
        match self {
            Self::Missing { .. } | Self::Damaged { .. } => Fault::Corrupt,
            Self::Schema { .. } => Fault::Query,
            Self::Spill { .. } | Self::Files { .. } => Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::Damaged { .. } => Some(
                "bring the file back from a backup, or see with `millstream checkpoint verify` which batches are whole"
                    .into(),
            ),
            Self::Schema { .. } => Some("give back the old grouping and aggregates, or start a new checkpoint".into()),
            Self::Spill { folder, source, .. } if source.kind() == std::io::ErrorKind::InvalidData => Some(format!(
                "the disk under `{folder}` does not give back what was written; nothing is lost: name another folder with `directories.spill` in the host file and start the query again"
            )),
            Self::Spill { folder, .. } => Some(format!(
                "nothing is lost: make room in `{folder}`, or name another folder with `directories.spill` or more memory with `state.memory` in the host file, and start the query again"
            )),
            Self::Files { .. } => None,
        }
    }
}
