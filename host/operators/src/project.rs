//! Computes the columns of its output from the columns of its input.
//!
//! ```text
//!   a, b, c ──► [ a + b AS s, upper(c) AS u ] ──► s, u
//! ```
//! ```sql
//! SELECT a + b AS s, upper(c) AS u FROM events
//! ```
//!
//! Stateless, anywhere in a query. One row in, one row out, in the same call and order; a batch without rows calls no
//! expression. It does not look for common subexpressions: the planner has made them columns of a projection below.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use std::sync::Arc;

/// Computes the columns of its output.
#[derive(Debug)]
pub struct Project {
    expressions: Vec<PhysicalExprRef>,
    schema: SchemaRef,
}

impl Project {
    /// A projection of rows of `input`: each expression with the name of its column.
    ///
    /// # Errors
    /// When the type of an expression cannot be told.
    pub fn try_new(
        columns: impl IntoIterator<Item = (PhysicalExprRef, String)>,
        input: &Schema,
    ) -> Result<Self, OperatorError> {
        let mut expressions = Vec::new();
        let mut fields = Vec::new();
        for (expression, name) in columns {
            let field = expression
                .return_field(input)
                .map_err(|error| OperatorError::from_expression(&format!("Project: {expression} AS {name}"), error))?;
            fields.push(Field::clone(&field).with_name(name));
            expressions.push(expression);
        }
        Ok(Self { expressions, schema: Arc::new(Schema::new(fields)) })
    }

    /// The same projection with `schema` as its output: other names, metadata, or wider nullability.
    ///
    /// # Errors
    /// When the types are not those of the expressions.
    pub fn with_schema(mut self, schema: SchemaRef) -> Result<Self, OperatorError> {
        let types = |schema: &Schema| schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
        if types(&schema) != types(&self.schema) {
            return Err(OperatorError::Misfit {
                operator: self.describe(),
                reason: format!("its columns are {:?}, {:?} are wanted", types(&self.schema), types(&schema)),
            });
        }
        self.schema = schema;
        Ok(self)
    }

    fn compute(&self, rows: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let columns = evaluate_expressions_to_arrays(&self.expressions, rows)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl Operator for Project {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        let columns: Vec<_> = self
            .expressions
            .iter()
            .zip(self.schema.fields())
            .map(|(expression, field)| {
                let text = expression.to_string();
                // A column under its own name reads `name@position`.
                let position = text.strip_prefix(field.name().as_str()).and_then(|rest| rest.strip_prefix('@'));
                match position {
                    Some(position) if position.chars().all(|c| c.is_ascii_digit()) => text,
                    _ => format!("{text} AS {}", field.name()),
                }
            })
            .collect();
        format!("Project: {}", columns.join(", "))
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            out.push(self.compute(rows).map_err(|error| OperatorError::from_expression(&self.describe(), error))?);
        }
        Ok(())
    }
}
