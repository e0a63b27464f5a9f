//! The contract of a sink.

use crate::SinkError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::store_options::{store_options, with_host_options};
use millstream_common::{BatchId, Clock, Options, OutputMode, QueryId, StopSignal};
use serde_json::Value;
use std::sync::Arc;

/// What a user says about a sink, before it is opened.
#[derive(Debug, Clone)]
pub struct SinkSpec {
    /// The connector: `console`, `memory`, `noop`, `parquet`, `json`, `csv`, `text`, …
    pub format: String,
    /// The options, with Spark's names (`path`, `numRows`, `truncate`, …).
    pub options: Options,
}

impl SinkSpec {
    /// The same with what the host says of object stores, when it writes to one; what the sink says itself wins.
    #[must_use]
    pub fn with_store_options(&self, host: &[(String, String)]) -> Self {
        let mut sink = self.clone();
        let Some(path) = self.options.get("path") else { return sink };
        for (name, value) in with_host_options(path, host, store_options(path, &self.options)) {
            if sink.options.get(&name).is_none() {
                sink.options.set(name, value);
            }
        }
        sink
    }
}

/// What a sink may use of the host.
#[derive(Debug, Clone)]
pub struct SinkContext {
    /// The query's lasting identity: the fence of transactional sinks.
    pub query: QueryId,
    /// The query's name, if it has one (the memory sink's table).
    pub query_name: Option<String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Set when the run is to stop: a sink that waits for what stands outside waits no longer.
    pub stop: StopSignal,
}

/// One batch on its way out.
#[derive(Debug)]
pub struct SinkBatch<'a> {
    /// The batch.
    pub id: BatchId,
    /// The columns of all `rows`; there also when there are no rows.
    pub schema: &'a SchemaRef,
    /// The rows, in order.
    pub rows: &'a [RecordBatch],
    /// How `rows` relate to what went out before.
    pub mode: OutputMode,
}

/// What a sink tells after a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkReport {
    /// Rows written; 0 when the batch had been written before.
    pub rows: u64,
}

/// What a sink promises about a batch that is handed over twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// The second time changes nothing, whatever happened in between.
    ExactlyOnce,
    /// The rows may appear again, with the same batch id.
    AtLeastOnce,
    /// For looking.
    None,
}

/// An output.
pub trait Sink: Send {
    /// A line for people and for progress, such as `FileSink[file:/data/out]`.
    fn description(&self) -> String;

    /// What it promises.
    fn guarantee(&self) -> Guarantee;

    /// Whether it can take a query of that mode.
    fn supports(&self, mode: OutputMode) -> bool;

    /// Writes a batch. All of it is out when this answers `Ok`; none of it counts when it answers `Err`.
    /// The runtime calls it with ascending batch ids, and again with the last one after a crash. An id may be left out: a
    /// batch that only spreads state over other partitions has no rows to give.
    ///
    /// # Errors
    /// When the rows do not fit the sink, or the place cannot be written.
    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError>;

    /// Of a sink with two phases: what the last [`add_batch`](Self::add_batch) made ready and nobody sees yet. It is kept with
    /// the batch, and comes back in [`commit`](Self::commit) once the batch is done, or in [`abort`](Self::abort). `None`:
    /// `add_batch` was all there is to it.
    fn take_prepared(&mut self) -> Option<Value> {
        None
    }

    /// Lets what a batch has prepared be seen, now or in an earlier life of the query. A second time changes nothing.
    ///
    /// # Errors
    /// When it cannot be done now; and when this sink has not prepared it.
    fn commit(&mut self, batch: BatchId, prepared: &Value) -> Result<(), SinkError> {
        let _ = prepared;
        Err(SinkError::NotPrepared { sink: self.description(), batch, by: "another sink".to_owned() })
    }

    /// Drops what a batch has prepared that is not done. A second time changes nothing.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    fn abort(&mut self, batch: BatchId, prepared: &Value) -> Result<(), SinkError> {
        let _ = prepared;
        Err(SinkError::NotPrepared { sink: self.description(), batch, by: "another sink".to_owned() })
    }

    /// Ends connections. Idempotent.
    fn stop(&mut self) {}
}
