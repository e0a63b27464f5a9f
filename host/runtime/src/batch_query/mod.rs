//! The batch query: the same query over everything that its inputs hold now, once.
//!
//! ```text
//!   sources, read to their end ──► plan (no state, no watermark) ──► rows ──► sink, as batch 0
//! ```
//!
//! Beside the loop: it takes the [`QuerySpec`] that a stream takes, and leaves trigger, checkpoint and output mode
//! aside. What the sources hold is fixed when it starts. The result goes to the sink as one batch, so a sink that
//! writes all or nothing writes all or nothing.
//!
//! Rule of its life: nothing durable but the sink's own. Source of the semantics: Spark's `spark.read…write`.

mod inputs;

use crate::query::{
    RunningPlugin, check_mode, check_place, check_sink, load_plugins, query_input, read_tables, with_plugin_sink,
    with_store_options,
};
use crate::{QuerySpec, RuntimeError, Session};
use inputs::FrozenInputs;
use millstream_common::{BatchId, BatchTime, OutputMode, QueryId, StopSignal};
use millstream_plan::batch_query::{BatchQueryError, plan_batch_query};
use millstream_sink::{SinkBatch, SinkContext};
use millstream_source::SourceError;
use millstream_wasm::{BatchStamp, FaultPolicy};
use std::sync::Arc;

/// What a batch query did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchQuerySummary {
    /// Rows read, by stream, in the order of the query's streams; a stream that is read twice counts twice.
    pub rows_in: Vec<(String, u64)>,
    /// Rows written.
    pub rows_out: u64,
    /// The sink, in a line.
    pub sink: String,
}

/// Runs a query over all rows that its sources hold now, and writes the result to its sink as one batch.
///
/// `None` when `stop` was set before the result was complete: then nothing has been written.
///
/// # Errors
/// When the query cannot be planned, an input cannot be read, an expression or a plugin fails, or the sink does.
pub fn run_batch_query(
    session: &Session,
    spec: &QuerySpec,
    stop: &StopSignal,
) -> Result<Option<BatchQuerySummary>, RuntimeError> {
    refuse_dead_letters(spec)?;
    let session = &session.for_query(spec);
    let mut spec = spec.clone();
    session.declare_found(&mut spec)?;
    let spec = &spec;
    let plugins = load_plugins(&session.plugin_host()?, &spec.plugins)?;
    let slots: Vec<_> = plugins.iter().map(|plugin: &RunningPlugin| Arc::clone(&plugin.slot)).collect();
    let session = session.with_plugin_sources(&slots);
    let session = &with_plugin_sink(&session, spec, slots.clone());
    check_sink(session, spec)?;
    let tables = read_tables(session, &spec.tables, stop)?;
    let batch_time = BatchTime::default();
    let time_ms = session.clock().now_ms();
    batch_time.set_ms(time_ms);
    let stamp = BatchStamp { query: None, batch: Some(BatchId::FIRST), time_ms };
    plugins.iter().for_each(|plugin| plugin.slot.begin_batch(stamp));
    let input = query_input(session, spec, tables, slots, &batch_time)?;
    let inputs = Arc::new(FrozenInputs::open(session, spec, stop)?);
    let plan = plan_batch_query(&input, Arc::clone(&inputs) as _)?;
    session.sinks().factory(&spec.sink)?.check_columns(&spec.sink, &plan.schema)?;
    check_place(session, spec, &plan.schema, stop)?;
    let context = SinkContext {
        query: QueryId(uuid::Uuid::new_v4()),
        query_name: spec.name.clone(),
        clock: Arc::clone(session.clock()),
        stop: stop.clone(),
    };
    let mut sink = session.sinks().factory(&spec.sink)?.open(&with_store_options(spec), context)?;
    // What is written is the whole result, and nothing is taken back later.
    check_mode(sink.as_ref(), &spec.sink.format, OutputMode::Append)?;
    let Some(rows) = plan.execute(&|| stop.is_set()).map_err(from_execution)? else { return Ok(None) };
    let batch = SinkBatch { id: BatchId::FIRST, schema: &plan.schema, rows: &rows, mode: OutputMode::Append };
    let report = sink.add_batch(&batch)?;
    // Nobody waits for anything else.
    if let Some(prepared) = sink.take_prepared() {
        sink.commit(batch.id, &prepared)?;
    }
    sink.stop();
    Ok(Some(BatchQuerySummary { rows_in: inputs.rows(), rows_out: report.rows, sink: sink.description() }))
}

/// Dead letters are kept in the checkpoint, and there is none.
fn refuse_dead_letters(spec: &QuerySpec) -> Result<(), RuntimeError> {
    let of_source = |stream: &&crate::StreamSpec| {
        stream.source.options.get("badFiles").is_some_and(|value| value.eq_ignore_ascii_case("dead-letter"))
    };
    if let Some(stream) = spec.streams.iter().find(of_source) {
        return Err(RuntimeError::Invalid {
            reason: format!(
                "source `{}` is to keep dead letters of bad files in the checkpoint, and a batch query has none",
                stream.source.name
            ),
            hint: Some("let it fail or skip such files for this run: `badFiles`".into()),
        });
    }
    let keeps = |plugin: &&crate::PluginSpec| plugin.on_fault == FaultPolicy::DeadLetter;
    match spec.plugins.iter().find(keeps) {
        Some(plugin) => Err(RuntimeError::Invalid {
            reason: format!(
                "plugin `{}` is to keep rows at which it fails as dead letters in the checkpoint, and a batch query has none",
                plugin.name
            ),
            hint: Some("let it fail or skip such rows for this run: `on_fault`".into()),
        }),
        None => Ok(()),
    }
}

fn from_execution(error: BatchQueryError) -> RuntimeError {
    match error {
        BatchQueryError::Execution(source) => RuntimeError::BatchQuery(Box::new(source)),
        BatchQueryError::Input(error) => match error.downcast::<SourceError>() {
            Ok(error) => RuntimeError::Source(*error),
            Err(other) => RuntimeError::Invalid { reason: other.to_string(), hint: None },
        },
    }
}

#[cfg(test)]
mod tests;
