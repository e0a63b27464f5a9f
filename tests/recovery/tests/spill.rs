//! A state that is larger than its memory, counted to the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use millstream_runtime::Session;
use millstream_sink::SinkRegistry;
use recovery_tests::spill::{Growth, grow};
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::Recorder;

#[test]
fn two_hundred_thousand_keys_stay_within_four_mebibytes_and_are_counted_right() {
    let recorder = Recorder::default();
    let mut sinks = SinkRegistry::with_builtins();
    sinks.register("recorder", Arc::new(recorder.clone()));
    let session = Session::builder().sinks(sinks).build();
    let folder = tempfile::tempdir().unwrap();
    let growth = Growth {
        keys: 200_000,
        again: 20_000,
        rows_per_batch: 5000,
        memory: "4 MiB".into(),
        sink: "recorder",
        restart_after: Some(25),
    };
    let mut keys = 0;
    let grown = grow(&session, folder.path(), &growth, |progress| {
        let operator = &progress.state_operators[0];
        keys = (keys + 5000).min(200_000);
        assert_eq!(operator.num_rows_total, keys);
        assert!(operator.memory_used_bytes <= 4 << 20, "{operator:?}");
        assert!(operator.custom_metrics["stateSpilledKeys"] <= keys);
    });
    let grown = grown.unwrap();
    assert!(grown.spilled_keys > 150_000 && grown.spilled_bytes > 1 << 20, "{grown:?}");

    let mut counts = BTreeMap::new();
    for row in recorder.batches().values().flatten() {
        let (key, count) = row.split_once(" | ").unwrap();
        counts.insert(key.parse::<u64>().unwrap(), count.parse::<u64>().unwrap());
    }
    assert_eq!(counts.len(), 200_000);
    assert!(counts.iter().all(|(key, count)| *count == 1 + u64::from(*key < 20_000)));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "two files and the checkpoint: {left:?}");
}
