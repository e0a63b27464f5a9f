//! The sink of a fork: keeps the rows of the batch that just ran, and reaches nobody.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::OutputMode;
use millstream_sink::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The format's name; no user can write it, since names of formats have no space.
pub(super) const FORMAT: &str = "fork of a query";

/// Rows of a batch, and their columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// The columns; `None` before the first batch.
    pub(crate) schema: Option<SchemaRef>,
    /// The rows.
    pub(crate) rows: Vec<RecordBatch>,
}

/// Where the rows go. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Collector(Arc<Mutex<Output>>);

impl Collector {
    /// The rows of the last batch.
    pub(super) fn take(&self) -> Output {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkFactory for Collector {
    fn check(&self, _spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(())
    }

    fn open(&self, _spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.clone()))
    }
}

impl Sink for Collector {
    fn description(&self) -> String {
        "rows that are compared".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let output = Output { schema: Some(Arc::clone(batch.schema)), rows: batch.rows.to_vec() };
        let rows = output.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        *self.lock() = output;
        Ok(SinkReport { rows })
    }
}
