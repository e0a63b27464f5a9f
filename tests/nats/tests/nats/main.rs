//! NATS as source and sink, against a real server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crashes;
mod losses;
mod queries;
mod sink;
mod source;
mod troubles;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use millstream_common::{
    BatchId, DurableFiles, ManualClock, MemoryFiles, Options, OutputMode, QueryId, StopSignal, describe_chain,
};
use millstream_sink::connectors::nats::NatsSinkFactory;
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use millstream_source::connectors::nats::NatsSourceFactory;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use std::sync::Arc;
use uuid::Uuid;

pub(crate) const FORMAT: &str = "nats";

/// A source's options and checkpoint: it can be opened again.
pub(crate) struct Input {
    pub(crate) spec: SourceSpec,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) stop: StopSignal,
}

impl Input {
    /// A stream from its beginning, with other options, too.
    pub(crate) fn of(servers: &str, stream: &str, options: &[(&str, &str)]) -> Self {
        let sound = Options::new().with("servers", servers).with("stream", stream).with("startingOffsets", "earliest");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        let spec = SourceSpec { name: "s".into(), format: FORMAT.into(), schema: None, options };
        Self { spec, files: Arc::default(), stop: StopSignal::new() }
    }

    /// The same with another option.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.spec.options.set(name, value);
    }

    fn context(&self) -> SourceContext {
        SourceContext {
            files: Arc::clone(&self.files) as Arc<dyn DurableFiles>,
            clock: Arc::new(ManualClock::at(1_000_000)),
            stop: self.stop.clone(),
            default_parallelism: 2,
        }
    }

    pub(crate) fn open(&self) -> Box<dyn Source> {
        NatsSourceFactory.open(&self.spec, self.context()).unwrap()
    }

    /// As a batch query opens it.
    pub(crate) fn try_open_bounded(&self) -> Result<Box<dyn Source>, SourceError> {
        let mut source = NatsSourceFactory.open_bounded(&self.spec, self.context())?;
        source.prepare_available_now()?;
        Ok(source)
    }

    pub(crate) fn open_bounded(&self) -> Box<dyn Source> {
        self.try_open_bounded().unwrap()
    }
}

/// What is new, in a source that can be asked.
pub(crate) fn next(source: &mut dyn Source, start: Option<&Offset>) -> Option<Offset> {
    let limit = source.read_limit();
    source.latest_offset(start, limit).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

/// The sequence numbers of a range, in order.
pub(crate) fn numbers(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<i64> {
    try_numbers(source, start, end).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

pub(crate) fn try_numbers(
    source: &mut dyn Source,
    start: Option<&Offset>,
    end: &Offset,
) -> Result<Vec<i64>, SourceError> {
    let lists = source.read(start, end, &[2])?;
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    Ok(lists.iter().flatten().flat_map(of).collect())
}

/// The numbers of all that is new behind a range, and where it ends.
pub(crate) fn drain(source: &mut dyn Source, start: Option<&Offset>) -> (Vec<i64>, Option<Offset>) {
    let (mut all, mut end) = (Vec::new(), start.cloned());
    while let Some(next) = next(source, end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
        all.extend(numbers(source, end.as_ref(), &next));
        end = Some(next);
    }
    (all, end)
}

pub(crate) fn numbered(numbers: std::ops::RangeInclusive<i64>) -> Vec<i64> {
    numbers.collect()
}

/// A query that nobody else is.
pub(crate) fn query() -> QueryId {
    QueryId(Uuid::new_v4())
}

pub(crate) fn open(options: &Options, query: QueryId) -> Result<Box<dyn Sink>, SinkError> {
    open_at(options, query, &Arc::new(ManualClock::at(0)), &StopSignal::new())
}

pub(crate) fn open_at(
    options: &Options,
    query: QueryId,
    clock: &Arc<ManualClock>,
    stop: &StopSignal,
) -> Result<Box<dyn Sink>, SinkError> {
    let spec = SinkSpec { format: FORMAT.into(), options: options.clone() };
    let context = SinkContext { query, query_name: None, clock: Arc::clone(clock) as _, stop: stop.clone() };
    NatsSinkFactory.open(&spec, context)
}

pub(crate) fn write(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch) -> Result<u64, SinkError> {
    let batch = SinkBatch {
        id: BatchId(batch),
        schema: &rows.schema(),
        rows: std::slice::from_ref(rows),
        mode: OutputMode::Append,
    };
    sink.add_batch(&batch).map(|report| report.rows)
}

/// Rows of `value string`.
pub(crate) fn values(values: &[&str]) -> RecordBatch {
    let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("value", column, true)]).unwrap()
}

/// Options of a sink that publishes to a stream of the tests, all rows with the subject that is the stream's name.
pub(crate) fn to_stream(servers: &str, stream: &str) -> Options {
    Options::new().with("servers", servers).with("stream", stream).with("subject", stream)
}
