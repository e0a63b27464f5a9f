//! A store of one batch that is never made durable: for state that ends with a batch query.

use super::LogStore;
use crate::{StateError, StateManifest, StoreOptions};
use millstream_common::MemoryFiles;
use std::sync::Arc;

impl LogStore {
    /// An empty store over files in memory.
    ///
    /// # Errors
    /// When it cannot be opened, which would be a bug.
    pub fn in_memory() -> Result<Self, StateError> {
        let options = StoreOptions {
            files: Arc::new(MemoryFiles::default()),
            writer: "memory".to_owned(),
            changelogs_before_snapshot: usize::MAX,
            budget: None,
        };
        Self::open(options, &StateManifest::default())
    }
}
