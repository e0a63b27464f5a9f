//! A processor over rows that are all there: Spark's batch query.
//!
//! Every key comes in one call, after its initial rows; no timer is ever due, and state ends with the query.

use super::{Processor, ProcessorSpec};
use crate::{BatchContext, Operator, OperatorError, StateOpener, Stateful};
use arrow::array::RecordBatch;
use millstream_common::{BatchId, OperatorUid};
use millstream_state::{LogStore, StateError, StateManifest, StateStore};
use millstream_wasm::processor::TimeMode;

struct InMemory;

impl StateOpener for InMemory {
    fn open(
        &self,
        _uid: &OperatorUid,
        _partition: u32,
        _files: &StateManifest,
    ) -> Result<Box<dyn StateStore>, StateError> {
        Ok(Box::new(LogStore::in_memory()?))
    }
}

impl Processor {
    /// What the processor gives for these rows.
    ///
    /// # Errors
    /// When the parts do not fit, or the code fails.
    pub fn run_once(
        mut spec: ProcessorSpec,
        rows: &[RecordBatch],
        batch_time_ms: i64,
    ) -> Result<Vec<RecordBatch>, OperatorError> {
        // The code knows its own mode; here nothing is due.
        spec.signature.time_mode = TimeMode::None;
        let partitions = spec.partitions.max(1) as usize;
        let mut processor = Self::try_new(spec)?;
        let opened = processor.open(&InMemory, &vec![StateManifest::default(); partitions]);
        opened.map_err(|source| OperatorError::State { operator: processor.describe(), source })?;
        let context = BatchContext { batch: BatchId::FIRST, batch_time_ms, watermarks: None };
        let mut out = Vec::new();
        for rows in rows {
            processor.push(0, rows, &context, &mut out)?;
        }
        processor.barrier(&context, &mut out)?;
        Ok(out)
    }
}
