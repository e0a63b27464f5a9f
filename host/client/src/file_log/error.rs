//! What can go wrong with the log of an output.

use millstream_common::{DurableError, DurableFiles};

/// The log of an output could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileLogError {
    /// The place could not be listed or read.
    #[error("cannot {action} `{place}`")]
    Storage {
        /// `list`, `read`, `write`.
        action: &'static str,
        /// File or folder.
        place: String,
        /// What the storage said.
        #[source]
        source: DurableError,
    },
    /// A file of the log is not what it should be.
    #[error("`{place}` is damaged: {reason}")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl FileLogError {
    /// A failure of the storage at a file or folder of the output.
    pub fn storage(files: &dyn DurableFiles, action: &'static str, path: &str, source: DurableError) -> Self {
        Self::Storage { action, place: place(files, path), source }
    }

    /// A damaged file of the output.
    pub fn damaged(files: &dyn DurableFiles, path: &str, reason: impl Into<String>) -> Self {
        Self::Damaged { place: place(files, path), reason: reason.into() }
    }

    /// Whether a file was not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Storage { source: DurableError::Missing { .. }, .. })
    }
}

fn place(files: &dyn DurableFiles, path: &str) -> String {
    format!("{}/{path}", files.location().trim_end_matches('/'))
}
