//! Redis as source and sink, against a real server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crashes;
mod losses;
mod queries;
mod sink;
mod source;
mod troubles;

use arrow::array::{AsArray, RecordBatch};
use millstream_common::{
    BatchId, DurableFiles, ManualClock, MemoryFiles, Options, OutputMode, QueryId, StopSignal, describe_chain,
};
use millstream_sink::connectors::redis::RedisSinkFactory;
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use millstream_source::connectors::redis::RedisSourceFactory;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use std::sync::Arc;
use uuid::Uuid;

pub(crate) const FORMAT: &str = "redis";

/// A source's options and checkpoint: it can be opened again.
pub(crate) struct Input {
    pub(crate) spec: SourceSpec,
    pub(crate) files: Arc<MemoryFiles>,
}

impl Input {
    /// Streams from their beginning, with other options, too.
    pub(crate) fn of(url: &str, streams: &str, options: &[(&str, &str)]) -> Self {
        let sound = Options::new().with("url", url).with("stream", streams).with("startingOffsets", "earliest");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        let spec = SourceSpec { name: "s".into(), format: FORMAT.into(), schema: None, options };
        Self { spec, files: Arc::default() }
    }

    /// The same with another option.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.spec.options.set(name, value);
    }

    fn context(&self) -> SourceContext {
        SourceContext {
            files: Arc::clone(&self.files) as Arc<dyn DurableFiles>,
            clock: Arc::new(ManualClock::at(1_000_000)),
            stop: StopSignal::new(),
            default_parallelism: 2,
        }
    }

    pub(crate) fn open(&self) -> Box<dyn Source> {
        RedisSourceFactory.open(&self.spec, self.context()).unwrap()
    }

    /// As a batch query opens it.
    pub(crate) fn try_open_bounded(&self) -> Result<Box<dyn Source>, SourceError> {
        let mut source = RedisSourceFactory.open_bounded(&self.spec, self.context())?;
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

/// The ids of a range, in order.
pub(crate) fn ids(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<String> {
    try_ids(source, start, end).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

pub(crate) fn try_ids(
    source: &mut dyn Source,
    start: Option<&Offset>,
    end: &Offset,
) -> Result<Vec<String>, SourceError> {
    let lists = source.read(start, end, &[1])?;
    let texts = |batch: &RecordBatch| {
        let ids = batch.column(0).as_string::<i32>();
        ids.iter().map(|id| id.unwrap().to_owned()).collect::<Vec<_>>()
    };
    Ok(lists.iter().flatten().flat_map(texts).collect())
}

/// The ids `from-0` to `to-0`.
pub(crate) fn numbered(numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    numbers.map(|number| format!("{number}-0")).collect()
}

/// A query that nobody else is.
pub(crate) fn query() -> QueryId {
    QueryId(Uuid::new_v4())
}

pub(crate) fn open(options: &Options, query: QueryId) -> Result<Box<dyn Sink>, SinkError> {
    let spec = SinkSpec { format: FORMAT.into(), options: options.clone() };
    let context = SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() };
    RedisSinkFactory.open(&spec, context)
}

pub(crate) fn write(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch, mode: OutputMode) -> Result<u64, SinkError> {
    let batch = SinkBatch { id: BatchId(batch), schema: &rows.schema(), rows: std::slice::from_ref(rows), mode };
    sink.add_batch(&batch).map(|report| report.rows)
}

/// Rows of `k string, v bigint`.
pub(crate) fn pairs(values: &[(&str, i64)]) -> RecordBatch {
    databases_tests::query::rows(values)
}

/// Options of a sink that adds to a stream.
pub(crate) fn to_stream(url: &str, stream: &str) -> Options {
    Options::new().with("url", url).with("stream", stream)
}

/// Options of a sink that writes a key per `k`.
pub(crate) fn to_keys(url: &str, prefix: &str) -> Options {
    Options::new().with("url", url).with("key", "k").with("keyPrefix", prefix)
}
