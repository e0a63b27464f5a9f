//! The part of a join's condition that reads both sides, over columns of candidate pairs.
//!
//! Only the columns that the condition reads are put together; all others wait until it is known which pairs match.
//! A pair for which the condition is null is no match.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{and, is_not_null, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use std::sync::Arc;

/// A condition over the columns that it reads.
pub(super) struct Condition {
    expr: PhysicalExprRef,
    left: Vec<usize>,
    right: Vec<usize>,
    schema: SchemaRef,
}

impl Condition {
    /// The condition `expr`, which reads columns of `left` and then of `right`.
    pub(super) fn try_new(expr: PhysicalExprRef, left: &Schema, right: &Schema) -> Result<Self, DataFusionError> {
        let mut used: Vec<usize> = Vec::new();
        expr.apply(|part| {
            used.extend(part.downcast_ref::<Column>().map(Column::index));
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })?;
        used.sort_unstable();
        used.dedup();
        let width = left.fields().len();
        if let Some(missing) = used.iter().find(|index| **index >= width + right.fields().len()) {
            return Err(DataFusionError::Plan(format!("the condition reads column {missing}, which is not there")));
        }
        let expr = expr
            .transform_up(|part| {
                let moved = part.downcast_ref::<Column>().and_then(|column| {
                    let place = used.binary_search(&column.index()).ok()?;
                    Some(Arc::new(Column::new(column.name(), place)) as PhysicalExprRef)
                });
                Ok(match moved {
                    Some(column) => Transformed::yes(column),
                    None => Transformed::no(part),
                })
            })
            .data()?;
        let (left_used, right_used): (Vec<usize>, Vec<usize>) = used.iter().partition(|index| **index < width);
        let right_used: Vec<usize> = right_used.iter().map(|index| index - width).collect();
        let fields: Vec<Field> = left_used
            .iter()
            .map(|index| left.field(*index).clone())
            .chain(right_used.iter().map(|index| right.field(*index).clone()))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        match expr.data_type(&schema)? {
            DataType::Boolean => Ok(Self { expr, left: left_used, right: right_used, schema }),
            other => Err(DataFusionError::Plan(format!("the condition is {other}, not boolean"))),
        }
    }

    /// For which of the pairs it is true.
    pub(super) fn holds(
        &self,
        left: (&[ArrayRef], &UInt32Array),
        right: (&[ArrayRef], &UInt32Array),
    ) -> Result<BooleanArray, DataFusionError> {
        let gather = |used: &[usize], (columns, rows): (&[ArrayRef], &UInt32Array)| {
            used.iter().map(|index| take(&columns[*index], rows, None)).collect::<Result<Vec<_>, ArrowError>>()
        };
        let mut columns = gather(&self.left, left)?;
        columns.extend(gather(&self.right, right)?);
        let options = RecordBatchOptions::new().with_row_count(Some(left.1.len()));
        let pairs = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        true_rows(&self.expr, &pairs)
    }
}

/// The rows for which a condition is true; false and null are not.
pub(super) fn true_rows(condition: &PhysicalExprRef, rows: &RecordBatch) -> Result<BooleanArray, DataFusionError> {
    let verdict = condition.evaluate(rows)?.into_array_of_size(rows.num_rows())?;
    let verdict = verdict.as_boolean();
    if verdict.null_count() == 0 {
        return Ok(verdict.clone());
    }
    Ok(and(&BooleanArray::new(verdict.values().clone(), None), &is_not_null(verdict)?)?)
}
