//! Running a lambda's body over flat columns, and lists whose flat values are exactly those of their rows.

use super::super::lists::Lists;
use arrow::array::{
    Array, ArrayBuilder, ArrayRef, Int32Array, Int32Builder, UInt32Array, UInt32Builder, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{cast, take, take_arrays};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::LambdaArgument;
use std::sync::Arc;

/// Evaluates a lambda for each element of `columns`; `row_of` tells the row that each element belongs to.
pub(super) fn evaluate(
    (lambda, data_type): &(LambdaArgument, DataType),
    columns: &[&ArrayRef],
    row_of: &UInt32Array,
) -> Result<ArrayRef> {
    if row_of.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    let closures: Vec<_> =
        columns.iter().map(|&column| move || -> Result<ArrayRef> { Ok(Arc::clone(column)) }).collect();
    let parameters: Vec<&dyn Fn() -> Result<ArrayRef>> =
        closures.iter().map(|closure| closure as &dyn Fn() -> Result<ArrayRef>).collect();
    lambda.evaluate(&parameters, |captured| Ok(take_arrays(captured, row_of, None)?))?.into_array(row_of.len())
}

/// Evaluates a lambda whose answer is yes, no or unknown.
pub(super) fn evaluate_condition(
    lambda: &(LambdaArgument, DataType),
    columns: &[&ArrayRef],
    row_of: &UInt32Array,
) -> Result<ArrayRef> {
    let answers = evaluate(lambda, columns, row_of)?;
    if answers.data_type() == &DataType::Boolean { Ok(answers) } else { Ok(cast(&answers, &DataType::Boolean)?) }
}

/// A list or map column whose flat values are exactly those of its rows, in order.
pub(super) struct Dense {
    /// The values; of a map, its entries.
    pub(super) values: ArrayRef,
    /// Where each row's values are.
    pub(super) offsets: OffsetBuffer<i32>,
    /// The rows that are null.
    pub(super) nulls: Option<NullBuffer>,
    /// The row of each value.
    pub(super) row_of: UInt32Array,
}

impl Dense {
    /// Reads a list or map column.
    pub(super) fn of(array: &ArrayRef) -> Result<Self> {
        let lists = Lists::of(array)?;
        let (mut places, mut row_of) = (UInt32Builder::new(), UInt32Builder::new());
        let mut offsets = Vec::with_capacity(lists.rows() + 1);
        offsets.push(0_i32);
        let mut in_order = true;
        for row in 0..lists.rows() {
            for place in lists.row(row).into_iter().flatten() {
                in_order &= place == places.len();
                places.append_value(place as u32);
                row_of.append_value(row as u32);
            }
            // No more values than the column had, whose offsets have 32 bits.
            offsets.push(places.len() as i32);
        }
        let values =
            if in_order { lists.values.slice(0, places.len()) } else { take(&lists.values, &places.finish(), None)? };
        Ok(Self {
            values,
            offsets: OffsetBuffer::new(ScalarBuffer::from(offsets)),
            nulls: lists.nulls().cloned(),
            row_of: row_of.finish(),
        })
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The places of a row's values; none for a null row.
    pub(super) fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Whether the row is null.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The place of each value inside its row, from 0.
    pub(super) fn positions(&self) -> ArrayRef {
        let mut positions = Int32Builder::with_capacity(self.values.len());
        for row in 0..self.rows() {
            (0..self.row(row).len()).for_each(|position| positions.append_value(position as i32));
        }
        let positions: Int32Array = positions.finish();
        Arc::new(positions)
    }
}
