//! Keeps the rows for which a condition is true.
//!
//! ```text
//!   rows ──► [ condition ] ──► rows where it is true        (false and null: gone)
//! ```
//! ```sql
//! SELECT * FROM events WHERE n > 3
//! ```
//!
//! Stateless, anywhere in a query; HAVING is a filter behind an aggregate. Rows leave in the order in which they
//! came, in the same call. It does not reorder or combine conditions: that is the planner's part.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{AsArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExprRef;

/// Keeps the rows for which a condition is true.
#[derive(Debug)]
pub struct Filter {
    condition: PhysicalExprRef,
    schema: SchemaRef,
}

impl Filter {
    /// A filter over rows of `input`.
    ///
    /// # Errors
    /// When the condition is not boolean.
    pub fn try_new(condition: PhysicalExprRef, input: SchemaRef) -> Result<Self, OperatorError> {
        let filter = Self { condition, schema: input };
        let kind = filter.condition.data_type(&filter.schema).map_err(|error| filter.failed(error))?;
        if kind != DataType::Boolean {
            return Err(OperatorError::Misfit {
                operator: filter.describe(),
                reason: format!("the condition is {kind}, not boolean"),
            });
        }
        Ok(filter)
    }

    fn failed(&self, error: DataFusionError) -> OperatorError {
        OperatorError::from_expression(&self.describe(), error)
    }

    fn keep(&self, rows: &RecordBatch) -> Result<Option<RecordBatch>, DataFusionError> {
        let verdict = self.condition.evaluate(rows)?.into_array_of_size(rows.num_rows())?;
        let verdict = verdict.as_boolean();
        Ok(match verdict.true_count() {
            0 => None,
            kept if kept == rows.num_rows() => Some(rows.clone()),
            _ => Some(filter_record_batch(rows, verdict)?),
        })
    }
}

impl Operator for Filter {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        format!("Filter: {}", self.condition)
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            out.extend(self.keep(rows).map_err(|error| self.failed(error))?);
        }
        Ok(())
    }
}
