//! Puts the rows of several inputs one after the other (UNION ALL).
//!
//! ```text
//!   port 0 ──┐
//!   port 1 ──┼──► rows of all ports
//!   port 2 ──┘
//! ```
//! ```sql
//! SELECT word FROM left_stream UNION ALL SELECT word FROM right_stream
//! ```
//!
//! Stateless. Rows leave in the call in which they came. It casts nothing: the inputs have the types of the output,
//! column by column, or the query is not built. Names come from the output's schema.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;

/// The rows of several inputs, one after the other.
#[derive(Debug)]
pub struct Union {
    schema: SchemaRef,
    ports: usize,
}

impl Union {
    /// A union with one port for each of `inputs`.
    ///
    /// # Errors
    /// When an input's columns are not those of `schema`, by number, type, and nulls where `schema` has none.
    pub fn try_new(schema: SchemaRef, inputs: &[SchemaRef]) -> Result<Self, OperatorError> {
        let union = Self { schema, ports: inputs.len() };
        for (port, input) in inputs.iter().enumerate() {
            union.check(port, input)?;
        }
        Ok(union)
    }

    fn check(&self, port: usize, input: &Schema) -> Result<(), OperatorError> {
        let misfit = |reason| Err(OperatorError::Misfit { operator: self.describe(), reason });
        if input.fields().len() != self.schema.fields().len() {
            let (has, wants) = (input.fields().len(), self.schema.fields().len());
            return misfit(format!("input {port} has {has} columns instead of {wants}"));
        }
        for (has, wants) in input.fields().iter().zip(self.schema.fields()) {
            if has.data_type() != wants.data_type() {
                let (name, has, wants) = (wants.name(), has.data_type(), wants.data_type());
                return misfit(format!("column `{name}` of input {port} is {has} instead of {wants}"));
            }
            if has.is_nullable() && !wants.is_nullable() {
                return misfit(format!("column `{}` of input {port} may be null", wants.name()));
            }
        }
        Ok(())
    }
}

impl Operator for Union {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        format!("Union of {}", self.ports)
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            let made = RecordBatch::try_new_with_options(Arc::clone(&self.schema), rows.columns().to_vec(), &options);
            out.push(made.map_err(|error| OperatorError::from_expression(&self.describe(), error.into()))?);
        }
        Ok(())
    }
}
