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
            Self::Files { .. } => Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::Damaged { .. } => Some(
                "bring the file back from a backup, or see with `millstream checkpoint verify` which batches are whole"
                    .into(),
            ),
            Self::Schema { .. } => Some("give back the old grouping and aggregates, or start a new checkpoint".into()),
            Self::Files { .. } => None,
        }
    }
}
