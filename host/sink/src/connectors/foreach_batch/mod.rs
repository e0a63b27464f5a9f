//! Batches handed to a function of the program (Spark's `foreachBatch`).
//!
//! ```text
//!   batch N ──► function(rows, N) ──ok──► commit log
//!                    │
//!                    └── failed or panicked: the batch fails, and is run again with the same N and the same rows
//! ```
//!
//! Rule of its life: at least once. The function is called with ascending batch ids, and again with the last one when the batch
//! was not committed; who wants exactly once remembers the id with the rows. It always gets at least one batch of rows, so it
//! knows the columns also when there are none.

use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::{BatchId, OutputMode, guarded};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "foreachBatch";

/// What is called with each batch.
type Function = Box<dyn FnMut(&[RecordBatch], BatchId) -> Result<(), Box<dyn Error + Send + Sync>> + Send>;

/// Makes sinks that call one function.
#[derive(Clone)]
pub struct ForeachBatchFactory {
    function: Arc<Mutex<Function>>,
}

impl ForeachBatchFactory {
    /// A factory for the function.
    pub fn new(
        function: impl FnMut(&[RecordBatch], BatchId) -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    ) -> Self {
        Self { function: Arc::new(Mutex::new(Box::new(function))) }
    }
}

impl SinkFactory for ForeachBatchFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(spec.options.only("sink `foreachBatch`", &[])?)
    }

    fn open(&self, spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.check(spec)?;
        Ok(Box::new(ForeachBatchSink { function: Arc::clone(&self.function) }))
    }
}

struct ForeachBatchSink {
    function: Arc<Mutex<Function>>,
}

impl Sink for ForeachBatchSink {
    fn description(&self) -> String {
        "ForeachBatchSink".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let mut function = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        let empty;
        let rows = if batch.rows.is_empty() {
            empty = [RecordBatch::new_empty(Arc::clone(batch.schema))];
            &empty[..]
        } else {
            batch.rows
        };
        guarded(|| function(rows, batch.id))
            .unwrap_or_else(|panicked| Err(panicked.into()))
            .map_err(|source| SinkError::Function { sink: NAME.into(), batch: batch.id, source })?;
        Ok(SinkReport { rows: batch.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Subject, schema, sink};
    use arrow::array::AsArray;
    use millstream_common::{ManualClock, Options, QueryId, StopSignal};

    fn spec() -> SinkSpec {
        SinkSpec { format: NAME.into(), options: Options::new() }
    }

    fn open(factory: &ForeachBatchFactory) -> Box<dyn Sink> {
        let query = QueryId(uuid::Uuid::from_u128(1));
        let context =
            SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() };
        SinkFactory::open(factory, &spec(), context).unwrap()
    }

    #[test]
    fn foreach_batch_keeps_the_contract() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&seen);
        let factory = ForeachBatchFactory::new(move |rows, _| {
            let texts = rows.iter().flat_map(|rows| rows.column(0).as_string::<i32>().iter().flatten());
            kept.lock().unwrap().extend(texts.map(str::to_owned));
            Ok(())
        });
        sink(&mut Subject {
            factory: Arc::new(factory),
            spec: spec(),
            query: QueryId(uuid::Uuid::from_u128(1)),
            written: Some(&mut || seen.lock().unwrap().clone()),
            counts_once: false,
        });
    }

    #[test]
    fn a_batch_without_rows_has_its_columns_and_a_failure_or_panic_is_told_with_the_batch() {
        let schema = schema();
        let rows = [];
        let batch = SinkBatch { id: BatchId(7), schema: &schema, rows: &rows, mode: OutputMode::Append };
        let factory = ForeachBatchFactory::new(|rows, id| {
            assert_eq!((rows.len(), rows[0].num_rows(), rows[0].num_columns(), id), (1, 0, 1, BatchId(7)));
            Err("the other side is away".into())
        });
        let error = open(&factory).add_batch(&batch).unwrap_err();
        let text = millstream_common::describe_chain(&error);
        assert!(text.contains("batch 7") && text.contains("the other side is away"), "{text}");
        #[allow(clippy::panic, reason = "the test is about it")]
        let factory = ForeachBatchFactory::new(|_, _| panic!("oh"));
        let text = millstream_common::describe_chain(&open(&factory).add_batch(&batch).unwrap_err());
        assert!(text.contains("it panicked: oh"), "{text}");
    }
}
