use super::*;
use crate::contract::{Subject, source, text};
use crate::{SourceContext, SourceFactory, SourceSpec};
use millstream_common::{ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use std::sync::Arc;

fn spec(options: Options) -> SourceSpec {
    SourceSpec { name: "r".into(), format: "rate-micro-batch".into(), schema: None, options }
}

#[test]
fn rate_micro_batch_keeps_the_contract() {
    source(&mut Subject {
        factory: Arc::new(RateMicroBatchSourceFactory),
        spec: spec(Options::new().with("rowsPerBatch", "5")),
        feed: &mut || {},
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn all_rows_of_a_batch_carry_one_time() {
    let options = Options::new()
        .with("rowsPerBatch", "2")
        .with("startTimestamp", "10000")
        .with("advanceMillisPerBatch", "50")
        .with("numPartitions", "1");
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 4,
    };
    let mut source = RateMicroBatchSourceFactory.open(&spec(options), context).unwrap();
    let first = source.latest_offset(None, ReadLimit::AllAvailable).unwrap().unwrap();
    let second = source.latest_offset(Some(&first), ReadLimit::AllAvailable).unwrap().unwrap();
    assert_eq!(second.to_string(), r#"{"offset":4,"timestamp":10100}"#);
    let lists = source.read(Some(&first), &second, &[1, 0]);
    assert!(lists.is_ok());
    assert_eq!(
        text(&source.read(Some(&first), &second, &[0, 1]).unwrap()),
        ["1970-01-01T00:00:10.050|2", "1970-01-01T00:00:10.050|3"]
    );
}

#[test]
fn rows_per_batch_must_be_given_and_positive() {
    let error = RateMicroBatchSourceFactory.schema(&spec(Options::new())).unwrap_err();
    assert_eq!(error.to_string(), "option `rowsPerBatch` of source `r` is missing");
    for value in ["0", "-1", "many"] {
        let spec = spec(Options::new().with("rowsPerBatch", value));
        assert!(RateMicroBatchSourceFactory.schema(&spec).is_err(), "{value}");
    }
}
