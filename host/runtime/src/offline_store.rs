//! Stores of a checkpoint outside of a run: opened to be read, counted, moved, or rid of old files.
//!
//! Beside the loop, which opens its own stores. No snapshot is begun here: whoever opens such a store commits nothing to it.
//! What does not fit into [`MEMORY`] goes to the system's folder for temporary files.

use millstream_checkpoint::Checkpoint;
use millstream_common::OperatorUid;
use millstream_state::{LogStore, MemoryBudget, StateError, StateManifest, StoreOptions};
use std::sync::Arc;

/// Memory for the stores that are open at the same time for one purpose.
const MEMORY: u64 = 512 << 20;

/// The memory that such stores share.
pub(crate) fn budget() -> Arc<MemoryBudget> {
    Arc::new(MemoryBudget::new(MEMORY, std::env::temp_dir()))
}

/// Opens one partition at exactly the version of the manifest; `writer` is part of the names of files, if any are written.
pub(crate) fn open(
    checkpoint: &Checkpoint,
    uid: &OperatorUid,
    partition: u32,
    manifest: &StateManifest,
    (writer, budget): (&str, &Arc<MemoryBudget>),
) -> Result<LogStore, StateError> {
    let options = StoreOptions {
        files: Arc::new(checkpoint.state_files(uid, partition)),
        writer: writer.to_owned(),
        changelogs_before_snapshot: usize::MAX,
        budget: Some(Arc::clone(budget)),
    };
    LogStore::open(options, manifest)
}
