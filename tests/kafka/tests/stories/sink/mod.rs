//! The Kafka sink against real brokers.

mod crashes;
mod fences;
mod records;
mod troubles;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use kafka_tests::Kafka;
use millstream_common::{BatchId, ManualClock, Options, OutputMode, QueryId, StopSignal};
use millstream_sink::connectors::kafka::KafkaSinkFactory;
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use std::sync::Arc;
use uuid::Uuid;

pub(crate) fn spec(kafka: &Kafka, options: &[(&str, &str)]) -> SinkSpec {
    let options = options.iter().fold(Options::new(), |options, (key, value)| options.with(*key, *value));
    SinkSpec { format: "kafka".into(), options: options.with("kafka.bootstrap.servers", kafka.bootstrap()) }
}

pub(crate) fn query() -> QueryId {
    QueryId(Uuid::new_v4())
}

pub(crate) fn open(spec: &SinkSpec, query: QueryId) -> Result<Box<dyn Sink>, SinkError> {
    open_until(spec, query, &StopSignal::new())
}

/// As [`open`], with a wish to stop.
pub(crate) fn open_until(spec: &SinkSpec, query: QueryId, stop: &StopSignal) -> Result<Box<dyn Sink>, SinkError> {
    let context = SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: stop.clone() };
    KafkaSinkFactory.open(spec, context)
}

pub(crate) fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

pub(crate) fn values(values: &[&str]) -> RecordBatch {
    rows(vec![("value", Arc::new(StringArray::from(values.to_vec())))])
}

pub(crate) fn add(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch) -> Result<u64, SinkError> {
    let (schema, rows): (SchemaRef, _) = (rows.schema(), std::slice::from_ref(rows));
    let batch = SinkBatch { id: BatchId(batch), schema: &schema, rows, mode: OutputMode::Append };
    sink.add_batch(&batch).map(|report| report.rows)
}

/// The whole of an error, as a user sees it.
pub(crate) fn text<T: std::fmt::Debug>(result: Result<T, SinkError>) -> String {
    millstream_common::describe_chain(&result.unwrap_err())
}
