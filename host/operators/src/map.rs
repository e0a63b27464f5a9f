//! Rows made of rows by a function of the program that embeds the host.
//!
//! ```text
//!   rows ──► function ──► 0..n batches of rows of the declared columns
//! ```
//! `frame.map_batches(schema, |rows| …)`; SQL has no form of it.
//!
//! Stateless, anywhere in a query. The function is the program's own: it is called on the query's thread, once per batch of rows
//! that has some, and again for the same rows when a batch is run again, so it should give the same for the same. What it answers
//! is checked against the columns that were declared; its failure or panic fails the batch. It is no plugin: it has no limits,
//! and is not in the checkpoint.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::guarded;
use std::error::Error;
use std::sync::Arc;

/// A function from rows to rows.
pub type MapFunction = Arc<dyn Fn(RecordBatch) -> Result<Vec<RecordBatch>, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Applies a function to every batch of rows.
pub struct MapBatches {
    function: MapFunction,
    schema: SchemaRef,
}

impl MapBatches {
    /// The function, and the columns that it gives.
    pub fn new(function: MapFunction, schema: SchemaRef) -> Self {
        Self { function, schema }
    }

    fn failed(&self, source: Box<dyn Error + Send + Sync>) -> OperatorError {
        OperatorError::Function { operator: self.describe(), source }
    }

    /// The rows with the declared schema.
    fn checked(&self, rows: &RecordBatch) -> Result<RecordBatch, OperatorError> {
        let given = rows.schema();
        let column = |name: &str, data_type| format!("{name} {data_type}");
        let given: Vec<_> = given.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
        let declared: Vec<_> =
            self.schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
        if given != declared {
            let (given, declared) = (given.join(", "), declared.join(", "));
            return Err(self.failed(format!("it gave the columns {given}, and declared are {declared}").into()));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())
            .map_err(|error| self.failed(Box::new(error)))
    }
}

impl Operator for MapBatches {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
        format!("MapBatches: {}", columns.join(", "))
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let answer = guarded(|| (self.function)(rows.clone())).unwrap_or_else(|panicked| Err(panicked.into()));
        for rows in answer.map_err(|error| self.failed(error))? {
            if rows.num_rows() > 0 {
                out.push(self.checked(&rows)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};

    fn numbers(name: &str, values: &[i64]) -> RecordBatch {
        RecordBatch::try_from_iter([(name, Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)]).unwrap()
    }

    fn run(
        function: impl Fn(RecordBatch) -> Result<Vec<RecordBatch>, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Result<Vec<RecordBatch>, OperatorError> {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let mut out = Vec::new();
        let mut operator = MapBatches::new(Arc::new(function), schema);
        let context = BatchContext { batch: millstream_common::BatchId(0), batch_time_ms: 0, watermarks: None };
        operator.push(0, &numbers("n", &[1, 2]), &context, &mut out)?;
        Ok(out)
    }

    #[test]
    fn a_function_gives_any_number_of_batches() {
        let twice = run(|rows| Ok(vec![rows.clone(), rows])).unwrap();
        assert_eq!(twice.iter().map(RecordBatch::num_rows).sum::<usize>(), 4);
        assert!(run(|_| Ok(vec![])).unwrap().is_empty());
    }

    #[test]
    fn other_columns_than_declared_a_failure_and_a_panic_fail_the_batch() {
        let text = |error: OperatorError| millstream_common::describe_chain(&error);
        let other = run(|_| Ok(vec![numbers("m", &[1])])).unwrap_err();
        assert!(text(other).contains("it gave the columns m Int64, and declared are n Int64"));
        assert!(text(run(|_| Err("no".into())).unwrap_err()).contains("no"));
        #[allow(clippy::panic, reason = "the test is about it")]
        let panicked = run(|_| panic!("oh")).unwrap_err();
        assert!(text(panicked).contains("it panicked: oh"));
    }
}
