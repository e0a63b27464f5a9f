//! The Kafka source against real brokers.

mod gone;
mod limits;
mod losses;
mod queries;
mod reading;
mod starting;
mod transactions;
mod troubles;

use kafka_tests::{Kafka, Record};
use millstream_common::{DurableFiles, ManualClock, MemoryFiles, Options, ReadLimit, StopSignal, describe_chain};
use millstream_source::connectors::kafka::KafkaSourceFactory;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use std::sync::Arc;

/// A source's options and checkpoint: it can be opened again.
pub(crate) struct World {
    pub(crate) spec: SourceSpec,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) stop: StopSignal,
    pub(crate) parallelism: usize,
}

impl World {
    /// A stream of the topic from its beginning, with other options, too.
    pub(crate) fn of(kafka: &Kafka, topic: &str, options: &[(&str, &str)]) -> Self {
        let all = [&[("subscribe", topic), ("startingOffsets", "earliest")], options].concat();
        Self::with(kafka, &all)
    }

    pub(crate) fn with(kafka: &Kafka, options: &[(&str, &str)]) -> Self {
        let sound = Options::new()
            .with("kafka.bootstrap.servers", kafka.bootstrap())
            .with("kafka.default.api.timeout.ms", "20000")
            .with("fetchOffset.numRetries", "2");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        Self {
            spec: SourceSpec { name: "s".into(), format: "kafka".into(), schema: None, options },
            files: Arc::default(),
            clock: Arc::new(ManualClock::at(1_000_000)),
            stop: StopSignal::new(),
            parallelism: 2,
        }
    }

    /// The same with another option.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.spec.options.set(name, value);
    }

    pub(crate) fn context(&self) -> SourceContext {
        SourceContext {
            files: Arc::clone(&self.files) as Arc<dyn DurableFiles>,
            clock: Arc::clone(&self.clock) as _,
            stop: self.stop.clone(),
            default_parallelism: self.parallelism,
        }
    }

    pub(crate) fn open(&self) -> Box<dyn Source> {
        KafkaSourceFactory.open(&self.spec, self.context()).unwrap()
    }

    /// As a batch query opens it.
    pub(crate) fn open_bounded(&self) -> Result<Box<dyn Source>, SourceError> {
        let mut source = KafkaSourceFactory.open_bounded(&self.spec, self.context())?;
        source.prepare_available_now()?;
        Ok(source)
    }
}

/// Records of partition 0 with these values.
pub(crate) fn records(values: &[&str]) -> Vec<Record> {
    in_partition(0, values)
}

pub(crate) fn in_partition(partition: i32, values: &[&str]) -> Vec<Record> {
    values.iter().map(|value| Record { partition: Some(partition), ..Record::of(value) }).collect()
}

pub(crate) fn offset(json: serde_json::Value) -> Offset {
    Offset(json)
}

/// What is new.
pub(crate) fn next(source: &mut dyn Source, start: Option<&Offset>) -> Option<Offset> {
    let limit = source.read_limit();
    source.latest_offset(start, limit).unwrap()
}

/// The error of asking what is new, as a user sees it.
pub(crate) fn refusal(source: &mut dyn Source, start: Option<&Offset>) -> String {
    describe_chain(&source.latest_offset(start, ReadLimit::AllAvailable).unwrap_err())
}

/// The rows of a range as `partition:offset=value`, sorted.
pub(crate) fn rows(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<String> {
    try_rows(source, start, end).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

pub(crate) fn try_rows(
    source: &mut dyn Source,
    start: Option<&Offset>,
    end: &Offset,
) -> Result<Vec<String>, SourceError> {
    let mut rows = Vec::new();
    for batch in source.read(start, end, &[1, 3, 4])?.iter().flatten() {
        use arrow::array::AsArray;
        use arrow::datatypes::{Int32Type, Int64Type};
        let (values, partitions) = (batch.column(0).as_binary::<i32>(), batch.column(1).as_primitive::<Int32Type>());
        let offsets = batch.column(2).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let value = String::from_utf8_lossy(values.value(row));
            rows.push(format!("{}:{}={value}", partitions.value(row), offsets.value(row)));
        }
    }
    rows.sort();
    Ok(rows)
}
