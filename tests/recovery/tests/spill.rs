//! A state that is larger than its memory, counted to the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use millstream_common::{Fault, Hint, StopSignal, describe_chain};
use millstream_runtime::{QueryRun, Session};
use millstream_sink::SinkRegistry;
use recovery_tests::spill::{Growth, grow, spec};
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::Recorder;

/// A session whose sink `recorder` is the recorder.
fn session(recorder: &Recorder) -> Session {
    let mut sinks = SinkRegistry::with_builtins();
    sinks.register("recorder", Arc::new(recorder.clone()));
    Session::builder().sinks(sinks).build()
}

/// The last count of each key.
fn counts(recorder: &Recorder) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for row in recorder.batches().values().flatten() {
        let (key, count) = row.split_once(" | ").unwrap();
        counts.insert(key.parse().unwrap(), count.parse().unwrap());
    }
    counts
}

#[test]
fn two_hundred_thousand_keys_stay_within_four_mebibytes_and_are_counted_right() {
    let recorder = Recorder::default();
    let session = session(&recorder);
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

    let counts = counts(&recorder);
    assert_eq!(counts.len(), 200_000);
    assert!(counts.iter().all(|(key, count)| *count == 1 + u64::from(*key < 20_000)));
    assert_eq!(std::fs::read_dir(folder.path().join("spill")).unwrap().count(), 0, "the files have no names");
}

#[test]
fn a_folder_that_takes_no_more_files_fails_the_batch_and_another_try_counts_it_once() {
    let recorder = Recorder::default();
    let session = session(&recorder);
    let folder = tempfile::tempdir().unwrap();
    let growth = Growth {
        keys: 60_000,
        again: 20_000,
        rows_per_batch: 4000,
        memory: "2 MiB".into(),
        sink: "recorder",
        restart_after: None,
    };
    let spec = spec(folder.path(), &growth).unwrap();
    let spill = folder.path().join("spill");
    let mut run = QueryRun::open(&session, spec.clone(), StopSignal::new()).unwrap();
    let mut failures = 0;
    for batch in 0..20 {
        std::fs::remove_dir(&spill).unwrap();
        let tried = run.run_next();
        std::fs::create_dir(&spill).unwrap();
        if let Err(error) = &tried {
            failures += 1;
            assert_eq!(error.fault(), Fault::Outside);
            let text = describe_chain(error);
            assert!(text.contains(&spill.display().to_string()), "{text}");
            assert!(error.hint().unwrap().contains("directories.spill"), "{:?}", error.hint());
        }
        let progress = tried.or_else(|_| run.run_next()).unwrap().unwrap();
        assert_eq!(progress.batch_id, batch);
        assert_eq!(progress.state_operators[0].num_rows_total, (4000 * (batch + 1)).min(60_000));
    }
    assert!(failures > 2, "{failures} failures");
    let counts = counts(&recorder);
    assert_eq!(counts.len(), 60_000);
    assert!(counts.iter().all(|(key, count)| *count == 1 + u64::from(*key < 20_000)));

    run.close();
    std::fs::remove_dir(&spill).unwrap();
    let error = QueryRun::open(&session, spec, StopSignal::new()).err().unwrap();
    assert!(error.to_string().contains(&spill.display().to_string()), "{error}");
}
