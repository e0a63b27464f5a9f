//! MQTT as source and sink, against a real broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crashes;
mod losses;
mod queries;
mod sink;
mod source;
mod spool;
mod troubles;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use millstream_common::{
    BatchId, DurableFiles, ManualClock, MemoryFiles, Options, OutputMode, QueryId, StopSignal, describe_chain,
};
use millstream_sink::connectors::mqtt::MqttSinkFactory;
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use millstream_source::connectors::mqtt::MqttSourceFactory;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

pub(crate) const FORMAT: &str = "mqtt";

/// A source's options and checkpoint: it can be opened again.
pub(crate) struct Input {
    pub(crate) spec: SourceSpec,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) stop: StopSignal,
}

impl Input {
    /// The topics of filters, with other options, too.
    pub(crate) fn of(url: &str, filters: &str, options: &[(&str, &str)]) -> Self {
        let sound = Options::new().with("url", url).with("topic", filters).with("spoolInterval", "20 ms");
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
        MqttSourceFactory::default().open(&self.spec, self.context()).unwrap()
    }

    /// As a batch query opens it.
    pub(crate) fn open_bounded(&self) -> Box<dyn Source> {
        let mut source = MqttSourceFactory::default().open_bounded(&self.spec, self.context()).unwrap();
        source.prepare_available_now().unwrap();
        source
    }

    /// Begins: from now on the broker keeps messages.
    pub(crate) fn begin(&self) -> Box<dyn Source> {
        let mut source = self.open();
        assert_eq!(next(source.as_mut(), None), None);
        source
    }
}

/// What is new, in a source that can be asked.
pub(crate) fn next(source: &mut dyn Source, start: Option<&Offset>) -> Option<Offset> {
    let limit = source.read_limit();
    source.latest_offset(start, limit).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

/// Waits until there are so many messages.
pub(crate) fn until(source: &mut dyn Source, count: u64) -> Offset {
    let begin = Instant::now();
    loop {
        let found = source.latest_offset(None, millstream_common::ReadLimit::AllAvailable);
        let found = found.unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
        if found.as_ref().and_then(|found| found.0.as_u64()) >= Some(count) {
            return found.unwrap();
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "only {found:?} of {count} messages come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All messages that there are now, in batches as large as they may be; what the broker holds, too.
pub(crate) fn all_now(source: &mut dyn Source) -> Vec<String> {
    source.prepare_available_now().unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
    let (mut end, mut all) = (None, Vec::new());
    while let Some(next) = next(source, end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
        all.extend(values(source, end.as_ref(), &next));
        end = Some(next);
    }
    all
}

/// The values of a range, in order.
pub(crate) fn values(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<String> {
    try_values(source, start, end).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

pub(crate) fn try_values(
    source: &mut dyn Source,
    start: Option<&Offset>,
    end: &Offset,
) -> Result<Vec<String>, SourceError> {
    let lists = source.read(start, end, &[1])?;
    let texts = |batch: &RecordBatch| {
        let values = batch.column(0).as_binary::<i32>();
        values.iter().map(|value| String::from_utf8_lossy(value.unwrap()).into_owned()).collect::<Vec<_>>()
    };
    Ok(lists.iter().flatten().flat_map(texts).collect())
}

/// The numbers as text.
pub(crate) fn numbered(numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

pub(crate) fn context(stop: &StopSignal) -> SinkContext {
    let query = QueryId(Uuid::new_v4());
    SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: stop.clone() }
}

pub(crate) fn open(options: &Options) -> Result<Box<dyn Sink>, SinkError> {
    let spec = SinkSpec { format: FORMAT.into(), options: options.clone() };
    MqttSinkFactory.open(&spec, context(&StopSignal::new()))
}

pub(crate) fn write(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch) -> Result<u64, SinkError> {
    let mode = OutputMode::Append;
    let batch = SinkBatch { id: BatchId(batch), schema: &rows.schema(), rows: std::slice::from_ref(rows), mode };
    sink.add_batch(&batch).map(|report| report.rows)
}

/// Rows of string columns.
pub(crate) fn texts(columns: &[(&str, &[Option<&str>])]) -> RecordBatch {
    let arrays = columns.iter().map(|(name, values)| {
        let array: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        (*name, array, true)
    });
    RecordBatch::try_from_iter_with_nullable(arrays).unwrap()
}

/// Rows of `value string`.
pub(crate) fn some(values: &[&str]) -> RecordBatch {
    texts(&[("value", &values.iter().map(|value| Some(*value)).collect::<Vec<_>>())])
}

/// Options of a sink to one topic.
pub(crate) fn to_topic(url: &str, topic: &str) -> Options {
    Options::new().with("url", url).with("topic", topic)
}

/// The type of the column `headers` of the source.
pub(crate) fn source_headers() -> arrow::datatypes::DataType {
    let spec = Input::of("mqtt://localhost", "t", &[]).spec;
    let schema = MqttSourceFactory::default().schema(&spec).unwrap();
    schema.field_with_name("headers").unwrap().data_type().clone()
}
