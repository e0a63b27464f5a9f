//! Tests over whole folders: files, checkpoint, lease, crashes.

mod checkpoint;
mod crashes;
mod durable_files;
mod format;
mod lease;
mod verify;

use crate::{CommitEntry, ConnectorPin, LocalFiles, ObjectFiles, OffsetEntry, OffsetRange, PluginPin, StatePin};
use millstream_common::{BatchId, Digest, DurableFiles, OutputMode};
use object_store::memory::InMemory;
use object_store::path::Path;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;

fn memory() -> Arc<dyn DurableFiles> {
    Arc::new(ObjectFiles::new(Arc::new(InMemory::new()), Path::from("a/b"), "memory:///a/b").unwrap())
}

fn local() -> (TempDir, Arc<dyn DurableFiles>) {
    let folder = tempfile::tempdir().unwrap();
    let files = LocalFiles::open(folder.path().join("query")).unwrap();
    (folder, Arc::new(files))
}

fn offset(batch: u64, plugin: Option<Digest>) -> OffsetEntry {
    let range = OffsetRange { start: batch.checked_sub(1).map(Into::into), end: Some(batch.into()) };
    let pin = |digest| PluginPin {
        digest,
        declared: digest,
        wit: "millstream:scalar@1.0.0".into(),
        config_hash: "0".into(),
        canary: None,
    };
    let state = StatePin {
        schema_id: "s".into(),
        schema_text: "key: word utf8".into(),
        partitions: 1,
        families: serde_json::json!([]),
    };
    OffsetEntry {
        batch: BatchId(batch),
        batch_time_ms: 1000 + batch as i64,
        watermark_ms: Some(0),
        sources: BTreeMap::from([("clicks".into(), range)]),
        settings: BTreeMap::from([("timezone".into(), "UTC".into())]),
        plugins: plugin.into_iter().map(|digest| ("clean".to_owned(), pin(digest))).collect(),
        state_schemas: BTreeMap::from([("counts".into(), state)]).into(),
        connectors: BTreeMap::from([("clicks".into(), ConnectorPin { format: "rate".into(), place: None })]),
        output_mode: Some(OutputMode::Update),
        repartition: None,
        border: None,
    }
}

fn commit(batch: u64) -> CommitEntry {
    let manifest = serde_json::json!({"version": batch + 1, "files": []});
    let state = BTreeMap::from([("counts".into(), vec![manifest])]);
    CommitEntry {
        batch: BatchId(batch),
        next_watermark_ms: Some(5),
        state,
        output: None,
        inputs: BTreeMap::new(),
        sink: None,
        canary: None,
    }
}
