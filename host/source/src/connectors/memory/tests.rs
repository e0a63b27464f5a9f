use super::*;
use crate::contract::{Subject, source, text};
use crate::{Source, SourceContext, SourceFactory, SourceSpec};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use millstream_common::{ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use std::sync::Arc;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
}

fn unit(values: &[i64]) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
}

fn spec(options: Options) -> SourceSpec {
    SourceSpec { name: "in".into(), format: "memory".into(), schema: None, options }
}

fn open(stream: &MemoryStream, options: Options) -> Box<dyn Source> {
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    stream.open(&spec(options), context).unwrap()
}

#[test]
fn memory_keeps_the_contract() {
    let stream = MemoryStream::new(schema());
    let mut next = 0;
    let feeder = stream.clone();
    let mut feed = || {
        next += 3;
        feeder.add_data(unit(&[next, next + 1, next + 2])).unwrap();
    };
    let streams = MemoryStreams::new();
    streams.add("in", stream);
    source(&mut Subject {
        factory: Arc::new(streams),
        spec: spec(Options::new()),
        feed: &mut feed,
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn one_unit_per_batch_counts_empty_units_too() {
    let stream = MemoryStream::new(schema());
    for values in [&[1][..], &[], &[2, 3]] {
        stream.add_data(unit(values)).unwrap();
    }
    let mut source = open(&stream, Options::new().with("maxBatchesPerTrigger", "1"));
    let limit = source.read_limit();
    let first = source.latest_offset(None, limit).unwrap().unwrap();
    let second = source.latest_offset(Some(&first), limit).unwrap().unwrap();
    let third = source.latest_offset(Some(&second), limit).unwrap().unwrap();
    assert_eq!([&first.to_string(), &second.to_string(), &third.to_string()], ["0", "1", "2"]);
    assert_eq!(text(&source.read(None, &first, &[0]).unwrap()), ["1"]);
    assert!(text(&source.read(Some(&first), &second, &[0]).unwrap()).is_empty());
    assert_eq!(text(&source.read(Some(&second), &third, &[0]).unwrap()), ["2", "3"]);
    assert_eq!(source.latest_offset(Some(&third), limit).unwrap(), Some(third));
}

#[test]
fn rows_per_batch_take_whole_units_and_at_least_one() {
    let stream = MemoryStream::new(schema());
    (0..3).for_each(|_| drop(stream.add_data(unit(&[1, 2])).unwrap()));
    let mut source = open(&stream, Options::new());
    let latest = |source: &mut Box<dyn Source>, rows| source.latest_offset(None, ReadLimit::MaxRows(rows)).unwrap();
    assert_eq!(latest(&mut source, 1), Some(0.into()));
    assert_eq!(latest(&mut source, 5), Some(1.into()));
    assert_eq!(latest(&mut source, 6), Some(2.into()));
}

#[test]
fn forgotten_units_are_lost_and_foreign_columns_refused() {
    let stream = MemoryStream::new(schema());
    let first = stream.add_data(unit(&[1])).unwrap();
    let second = stream.add_data(unit(&[2])).unwrap();
    stream.forget(&first).unwrap();
    let mut source = open(&stream, Options::new());
    assert!(source.read(None, &second, &[0]).is_err());
    assert_eq!(text(&source.read(Some(&first), &second, &[0]).unwrap()), ["2"]);
    let other = Arc::new(Schema::new(vec![Field::new("m", DataType::Int64, true)]));
    let rows = RecordBatch::try_new(other, vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
    let error = stream.add_data(rows).unwrap_err();
    assert!(error.to_string().contains("m Int64"), "{error}");
}
