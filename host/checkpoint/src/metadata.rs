//! The query's identity: written once, when the checkpoint is made.
//!
//! Sinks that count each batch once remember this id. A checkpoint whose `metadata` is lost but whose logs are
//! there is therefore refused: a new id would make every sink write everything again.

use crate::CheckpointError;
use crate::document::DocumentKind;
use millstream_common::{DurableError, DurableFiles, QueryId};
use serde::{Deserialize, Serialize};

/// The file.
pub(crate) const METADATA: &str = "metadata";
/// The layout of the whole folder; a release that changes it in a way that older ones cannot read counts it up.
pub const FORMAT_VERSION: u32 = 1;

const KIND: DocumentKind = DocumentKind { word: "checkpoint", version: FORMAT_VERSION, oldest: 1 };

/// The query's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// The id of the query: as old as the checkpoint.
    pub query: QueryId,
    /// The layout of the folder.
    pub format_version: u32,
    /// When the checkpoint was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// What the query was called then.
    pub name: Option<String>,
}

impl Metadata {
    /// Reads the metadata; `None` when there is no checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError::NoMetadata`] when the file is missing and the folder is not empty.
    pub fn read(files: &dyn DurableFiles) -> Result<Option<Self>, CheckpointError> {
        if let Some(metadata) = KIND.read(files, METADATA)? {
            return Ok(Some(metadata));
        }
        let place = files.location();
        for folder in ["offsets", "commits", "state", "sources"] {
            let failed = |source| CheckpointError::files(place.clone(), source);
            let some_file = files.list(folder).map_err(failed)?.into_iter().next();
            let some_folder = files.list_folders(folder).map_err(failed)?.into_iter().next();
            if let Some(name) = some_file.or(some_folder) {
                return Err(CheckpointError::NoMetadata { place, found: format!("{folder}/{name}") });
            }
        }
        Ok(None)
    }

    pub(crate) fn create(&self, files: &dyn DurableFiles) -> Result<(), CheckpointError> {
        let place = files.location();
        let bytes = KIND.encode(&place, METADATA, self)?;
        files.put_new(METADATA, bytes).map_err(|error| match error {
            DurableError::Exists { .. } => CheckpointError::Present { place },
            source => CheckpointError::files(place, source),
        })
    }
}
