//! Sorts the rows of a batch.
//!
//! ```text
//!   rows, rows, rows, ▌barrier ──► all of them in order (the first n, if asked)
//! ```
//! ```sql
//! SELECT word, count(*) AS c FROM events GROUP BY word ORDER BY c DESC LIMIT 10    -- complete mode
//! ```
//!
//! Stands at the sink's side of an aggregate in complete mode, the only place where an order of a streaming
//! result means something. It gathers to the barrier and keeps nothing beyond it. Equal rows keep no order.
//! Floats order as SQL has it: -0.0 equals 0.0, NaN is one value and the greatest.

use crate::float_identity::unify_floats;
use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalSortExpr;

/// Sorts the rows of a batch.
#[derive(Debug)]
pub struct Sort {
    by: Vec<PhysicalSortExpr>,
    fetch: Option<usize>,
    schema: SchemaRef,
    gathered: Vec<RecordBatch>,
}

impl Sort {
    /// Sorts rows of `input`; with `fetch`, only that many leave.
    pub fn new(by: Vec<PhysicalSortExpr>, fetch: Option<usize>, input: SchemaRef) -> Self {
        Self { by, fetch, schema: input, gathered: Vec::new() }
    }

    fn in_order(&self, gathered: &[RecordBatch]) -> Result<RecordBatch, DataFusionError> {
        let rows = concat_batches(&self.schema, gathered)?;
        if self.by.is_empty() {
            return Ok(rows.slice(0, self.fetch.unwrap_or(usize::MAX).min(rows.num_rows())));
        }
        let columns = self
            .by
            .iter()
            .map(|by| {
                let mut column = by.evaluate_to_sort_column(&rows)?;
                column.values = unify_floats(&column.values)?;
                Ok(column)
            })
            .collect::<Result<Vec<_>, DataFusionError>>()?;
        let order: UInt32Array = lexsort_to_indices(&columns, self.fetch)?;
        Ok(take_record_batch(&rows, &order)?)
    }
}

impl Operator for Sort {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        let by: Vec<_> = self.by.iter().map(ToString::to_string).collect();
        match self.fetch {
            Some(fetch) => format!("Sort: {}, first {fetch}", by.join(", ")),
            None => format!("Sort: {}", by.join(", ")),
        }
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        _out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            self.gathered.push(rows.clone());
        }
        Ok(())
    }

    fn barrier(&mut self, _context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let gathered = std::mem::take(&mut self.gathered);
        if !gathered.is_empty() && self.fetch != Some(0) {
            let sorted = self.in_order(&gathered);
            out.push(sorted.map_err(|error| OperatorError::from_expression(&self.describe(), error))?);
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.gathered.clear();
    }
}
