//! Stores of a checkpoint outside of a run: opened to be read, counted, moved, or rid of old files.
//!
//! Beside the loop, which opens its own stores. No snapshot is begun here: whoever opens such a store commits nothing to it.

use millstream_checkpoint::Checkpoint;
use millstream_common::OperatorUid;
use millstream_state::{LogStore, StateError, StateManifest, StoreOptions};
use std::sync::Arc;

/// Opens one partition at exactly the version of the manifest; `writer` is part of the names of files, if any are written.
pub(crate) fn open(
    checkpoint: &Checkpoint,
    uid: &OperatorUid,
    partition: u32,
    manifest: &StateManifest,
    writer: &str,
) -> Result<LogStore, StateError> {
    let options = StoreOptions {
        files: Arc::new(checkpoint.state_files(uid, partition)),
        writer: writer.to_owned(),
        changelogs_before_snapshot: usize::MAX,
    };
    LogStore::open(options, manifest)
}
