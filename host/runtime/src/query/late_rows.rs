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
use millstream_common::{BatchId, OutputMode};
use millstream_operators::{LateRows, OperatorError};
use millstream_sink::{Sink, SinkBatch, SinkContext};
use std::sync::Arc;

/// Opens the late sink, if the query has one.
pub(super) fn open(
    session: &Session,
    spec: &QuerySpec,
    context: SinkContext,
) -> Result<Option<Box<dyn Sink>>, RuntimeError> {
    let Some(late) = &spec.late_rows else { return Ok(None) };
    if open::is_plugin(late) {
        return Err(RuntimeError::Invalid {
            reason: "late rows cannot go to a sink of a plugin".into(),
            hint: Some("give `[late_rows]` another format, such as `json`".into()),
        });
    }
    let is_same = |option: &&str| late.options.get(option) == spec.sink.options.get(option);
    if late.format == spec.sink.format && ["path", "url", "dbtable"].iter().all(is_same) {
        return Err(RuntimeError::Invalid {
            reason: "late rows are to go where the result goes".into(),
            hint: Some("give `[late_rows]` a format or a path of its own".into()),
        });
    }
    let as_query = QuerySpec { sink: late.clone(), mode: OutputMode::Append, ..spec.clone() };
    open::check_sink(session, &as_query)?;
    open::sink(session, &as_query, context).map(Some)
}

/// Writes the late rows of a batch; also when there are none, so that a batch that is run again replaces nothing.
pub(super) fn write(sink: &mut dyn Sink, batch: BatchId, late: &[LateRows]) -> Result<(), RuntimeError> {
    let rows = texts(late).map_err(|error| {
        let source = OperatorError::from_expression("the late rows", error.into());
        RuntimeError::Batch { batch, source: Box::new(source) }
    })?;
    let rows = if rows.num_rows() == 0 { Vec::new() } else { vec![rows] };
    sink.add_batch(&SinkBatch { id: batch, schema: &schema(), rows: &rows, mode: OutputMode::Append })?;
    Ok(())
}

/// The columns of the late sink: `operator STRING, row STRING`.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("operator", DataType::Utf8, true), Field::new("row", DataType::Utf8, true)]))
}

fn texts(late: &[LateRows]) -> Result<RecordBatch, ArrowError> {
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
    RecordBatch::try_new(schema(), columns)
}
