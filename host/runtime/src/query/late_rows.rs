//! Late rows on their way to a sink of their own.
//!
//! ```text
//!   operator ──► (uid of the operator, the row as JSON) ──► the late sink, as the batch that they were late in
//! ```
//!
//! Rows of different operators have different columns, so each row is one text. They go out before the commit log has
//! the batch, under its id: a late sink that writes exactly once has each late row once.

use super::open;
use crate::{QuerySpec, RuntimeError, Session};
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::LineDelimitedWriter;
use millstream_common::{BatchId, Options, OutputMode};
use millstream_operators::{LateRows, OperatorError};
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkSpec};
use std::sync::Arc;

/// What the two columns are called: of the operator, of the row. Sinks of messages have names of their own.
const COLUMNS: [[&str; 2]; 2] = [["operator", "row"], ["key", "value"]];

/// The options that say where rows go.
const PLACE: [&str; 9] =
    ["path", "url", "servers", "kafka.bootstrap.servers", "dbtable", "topic", "stream", "subject", "key"];

/// The name of Kafka's transactions: a query has one at a time under a name, and that of its result has another.
const TRANSACTIONS: (&str, &str) = ("transactionalIdPrefix", "millstream-late");

/// The late sink.
pub(super) struct LateSink {
    sink: Box<dyn Sink>,
    schema: SchemaRef,
}

/// Opens the late sink, if the query has one.
pub(super) fn open(
    session: &Session,
    spec: &QuerySpec,
    context: SinkContext,
) -> Result<Option<LateSink>, RuntimeError> {
    let Some(late) = &spec.late_rows else { return Ok(None) };
    if open::is_plugin(late) {
        return Err(RuntimeError::Invalid {
            reason: "late rows cannot go to a sink of a plugin".into(),
            hint: Some("give `[late_rows]` another format, such as `json`".into()),
        });
    }
    let late = with_own_transactions(late);
    if let Some(same) = conflict(&late, &spec.sink) {
        return Err(RuntimeError::Invalid {
            reason: format!("late rows are to go {same}"),
            hint: Some("give `[late_rows]` a format, or a place and a name, of its own".into()),
        });
    }
    let as_query = QuerySpec { sink: late.clone(), mode: OutputMode::Append, ..spec.clone() };
    open::check_sink(session, &as_query)?;
    let factory = session.sinks().factory(&late)?;
    let takes = |names| {
        let schema = schema(names);
        factory.check_columns(&late, &schema).map(|()| schema)
    };
    let schema = takes(COLUMNS[0]).or_else(|_| takes(COLUMNS[1]))?;
    Ok(Some(LateSink { sink: open::sink(session, &as_query, context)?, schema }))
}

fn with_own_transactions(late: &SinkSpec) -> SinkSpec {
    let (option, name) = TRANSACTIONS;
    let has_none = late.options.get("deliveryGuarantee").is_some_and(|given| given.trim() == "at-least-once");
    if late.format != "kafka" || late.options.get(option).is_some() || has_none {
        return late.clone();
    }
    SinkSpec { options: late.options.clone().with(option, name), ..late.clone() }
}

/// What late rows would share with the result, and must not.
fn conflict(late: &SinkSpec, result: &SinkSpec) -> Option<&'static str> {
    let is_same = |option: &&str| late.options.get(option) == result.options.get(option);
    if late.format != result.format {
        return None;
    }
    let prefix = |options: &Options| options.get(TRANSACTIONS.0).unwrap_or("millstream").trim().to_owned();
    if PLACE.iter().all(is_same) {
        Some("where the result goes")
    } else if late.format == "kafka" && prefix(&late.options) == prefix(&result.options) {
        Some("out in the transactions of the result, by their `transactionalIdPrefix`")
    } else {
        None
    }
}

impl LateSink {
    /// Writes the late rows of a batch; also when there are none, so that a batch that is run again replaces nothing.
    pub(super) fn write(&mut self, batch: BatchId, late: &[LateRows]) -> Result<(), RuntimeError> {
        let rows = texts(late, &self.schema).map_err(|error| {
            let source = OperatorError::from_expression("the late rows", error.into());
            RuntimeError::Batch { batch, source: Box::new(source) }
        })?;
        let rows = if rows.num_rows() == 0 { Vec::new() } else { vec![rows] };
        let batch = SinkBatch { id: batch, schema: &self.schema, rows: &rows, mode: OutputMode::Append };
        self.sink.add_batch(&batch)?;
        Ok(())
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        self.sink.stop();
    }
}

/// The columns of the late sink, both STRING.
fn schema(names: [&str; 2]) -> SchemaRef {
    Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, true)).to_vec()))
}

fn texts(late: &[LateRows], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let (mut operators, mut rows) = (Vec::new(), Vec::new());
    for of_operator in late.iter().filter(|late| !late.rows.is_empty()) {
        let mut writer = LineDelimitedWriter::new(Vec::new());
        writer.write_batches(&of_operator.rows.iter().collect::<Vec<_>>())?;
        writer.finish()?;
        let text =
            String::from_utf8(writer.into_inner()).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        for line in text.lines() {
            operators.push(of_operator.operator.as_str().to_owned());
            rows.push(line.to_owned());
        }
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(operators)), Arc::new(StringArray::from(rows))];
    RecordBatch::try_new(Arc::clone(schema), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(format: &str, options: &[(&str, &str)]) -> SinkSpec {
        let options = options.iter().fold(Options::new(), |all, (name, value)| all.with(*name, *value));
        SinkSpec { format: format.into(), options }
    }

    #[test]
    fn late_rows_share_neither_a_place_nor_transactions_with_the_result() {
        let between = |late: &SinkSpec, result: &SinkSpec| conflict(&with_own_transactions(late), result);
        let (counts, late) = (("topic", "counts"), ("topic", "late"));
        assert_eq!(between(&sink("kafka", &[late]), &sink("kafka", &[counts])), None);
        assert_eq!(between(&sink("kafka", &[counts]), &sink("kafka", &[counts])), Some("where the result goes"));
        let named = sink("kafka", &[late, ("transactionalIdPrefix", "millstream")]);
        assert!(between(&named, &sink("kafka", &[counts])).unwrap().contains("transactionalIdPrefix"));
        assert_eq!(between(&sink("json", &[("path", "a")]), &sink("parquet", &[("path", "a")])), None);
        assert!(between(&sink("json", &[("path", "a")]), &sink("json", &[("path", "a")])).is_some());
        let plain = sink("kafka", &[late, ("deliveryGuarantee", "at-least-once")]);
        assert_eq!(with_own_transactions(&plain).options.get("transactionalIdPrefix"), None);
    }
}
