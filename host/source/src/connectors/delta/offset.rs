//! A place in the history of a table.

use crate::{Offset, SourceError};
use serde::{Deserialize, Serialize};

/// Up to and including a file of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeltaOffset {
    /// The version of the table.
    pub(super) version: u64,
    /// The file in it, from 0.
    pub(super) index: u64,
    /// Whether the files of the version are all that the table has then, not only those that the version adds.
    pub(super) initial: bool,
}

impl DeltaOffset {
    /// What a logged offset says.
    pub(super) fn parse(name: &str, offset: &Offset) -> Result<Self, SourceError> {
        serde_json::from_value(offset.0.clone())
            .map_err(|_| SourceError::ForeignOffset { name: name.to_owned(), offset: offset.to_string() })
    }
}

impl From<DeltaOffset> for Offset {
    fn from(offset: DeltaOffset) -> Self {
        Self(serde_json::json!({
            "version": offset.version,
            "index": offset.index,
            "initial": offset.initial,
        }))
    }
}
