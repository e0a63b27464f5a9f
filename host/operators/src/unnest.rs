//! Makes one row of each element of list columns, and one column of each field of struct columns.
//!
//! ```text
//!   word  letters          word  letter
//!   ab    [a, b]     ──►   ab    a
//!   x     []               ab    b          (an empty list: no row; null: no row, or one with null)
//! ```
//! ```sql
//! SELECT word, explode(letters) AS letter FROM events      -- explode_outer keeps the row of x
//! ```
//!
//! The operator behind DataFusion's `LogicalPlan::Unnest`, with its meaning: lists that are unnested together
//! run side by side, the shorter ones padded with null; a list of depth 2 is unnested twice, the inner
//! level last. Sliding windows are made here as well: a list of windows per row, unnested.
//! Stateless; rows leave in the call in which they came.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{nullif, take};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::UnnestOptions;
use datafusion::physical_plan::unnest::ListUnnest;
use std::sync::Arc;

/// One row per element of list columns, one column per field of struct columns.
#[derive(Debug)]
pub struct Unnest {
    lists: Vec<ListUnnest>,
    structs: Vec<usize>,
    null_rows: usize,
    empty_rows: usize,
    schema: SchemaRef,
}

impl Unnest {
    /// Unnests `lists` (index of the input column and depth, in the order of their output columns) and
    /// `structs` (indices of input columns) of rows of `input`; the result has the columns of `schema`.
    ///
    /// # Errors
    /// When a column to unnest is not there or is neither list nor struct.
    pub fn try_new(
        lists: Vec<ListUnnest>,
        structs: Vec<usize>,
        input: &SchemaRef,
        schema: SchemaRef,
        options: &UnnestOptions,
    ) -> Result<Self, OperatorError> {
        let unnest = Self {
            lists,
            structs,
            null_rows: usize::from(options.preserve_nulls()),
            empty_rows: usize::from(options.expand_empty_as_null()),
            schema,
        };
        for list in &unnest.lists {
            let mut kind = input.fields().get(list.index_in_input_schema).map(|field| field.data_type());
            for _ in 0..list.depth {
                kind = kind.and_then(element_type);
            }
            if kind.is_none() || list.depth == 0 {
                return Err(unnest.misfit(list.index_in_input_schema, "a list of that depth"));
            }
        }
        for &index in &unnest.structs {
            if !matches!(input.fields().get(index).map(|field| field.data_type()), Some(DataType::Struct(_))) {
                return Err(unnest.misfit(index, "a struct"));
            }
        }
        Ok(unnest)
    }

    fn misfit(&self, column: usize, wanted: &str) -> OperatorError {
        OperatorError::Misfit { operator: self.describe(), reason: format!("column {column} is not {wanted}") }
    }

    /// The rows that one batch becomes; `None` when there are none.
    fn unnest(&self, rows: &RecordBatch) -> Result<Option<RecordBatch>, ArrowError> {
        let mut columns: Vec<Option<ArrayRef>> = rows.columns().iter().cloned().map(Some).collect();
        let mut elements: Vec<Option<ArrayRef>> = vec![None; self.lists.len()];
        let deepest = self.lists.iter().map(|list| list.depth).max().unwrap_or(0);
        for level in (1..=deepest).rev() {
            if !self.unnest_level(level, &mut columns, &mut elements)? {
                return Ok(None);
            }
        }
        let mut made = Vec::with_capacity(self.schema.fields().len());
        for (index, column) in columns.into_iter().enumerate() {
            let of_column = self.lists.iter().zip(&elements).filter(|(list, _)| list.index_in_input_schema == index);
            let before = made.len();
            made.extend(of_column.filter_map(|(_, array)| array.clone()));
            if made.len() == before {
                made.extend(column);
            }
            if self.structs.contains(&index) {
                let whole: Vec<ArrayRef> = made.drain(before..).collect();
                for array in whole {
                    made.extend(struct_columns(&array)?);
                }
            }
        }
        RecordBatch::try_new(Arc::clone(&self.schema), made).map(Some)
    }

    /// Unnests every list that is still at least `level` deep by one level, and repeats the other columns.
    /// Answers whether any row is left.
    fn unnest_level(
        &self,
        level: usize,
        columns: &mut [Option<ArrayRef>],
        elements: &mut [Option<ArrayRef>],
    ) -> Result<bool, ArrowError> {
        let mut open = Vec::new();
        for (position, list) in self.lists.iter().enumerate().filter(|(_, list)| list.depth >= level) {
            let array = if list.depth == level { &columns[list.index_in_input_schema] } else { &elements[position] };
            if let Some(array) = array {
                open.push((position, Lists::of(array)?));
            }
        }
        let counts = self.counts(&open);
        let total: usize = counts.iter().sum();
        if total == 0 {
            return Ok(false);
        }
        for (position, lists) in &open {
            elements[*position] = Some(lists.padded(&counts, total)?);
        }
        let mut repeats: Option<UInt64Array> = None;
        for (index, column) in columns.iter_mut().enumerate() {
            let mut own = self.lists.iter().filter(|list| list.index_in_input_schema == index).peekable();
            let wanted = own.peek().is_none() || own.any(|list| list.depth < level);
            *column = match column {
                Some(array) if wanted => {
                    let repeats = repeats.get_or_insert_with(|| repeat(&counts, total));
                    Some(take(array.as_ref(), repeats, None)?)
                }
                _ => None,
            };
        }
        Ok(true)
    }

    /// How many rows each row becomes: as many as its longest list has elements.
    fn counts(&self, open: &[(usize, Lists)]) -> Vec<usize> {
        let rows = open.first().map_or(0, |(_, lists)| lists.rows.len());
        (0..rows)
            .map(|row| {
                let of_list = open.iter().map(|(_, lists)| match lists.rows[row] {
                    None => self.null_rows,
                    Some((start, end)) if start == end => self.empty_rows,
                    Some((start, end)) => end - start,
                });
                of_list.max().unwrap_or(0)
            })
            .collect()
    }
}

/// A list column as its elements and the range of each row.
struct Lists {
    values: ArrayRef,
    rows: Vec<Option<(usize, usize)>>,
}

impl Lists {
    fn of(array: &ArrayRef) -> Result<Self, ArrowError> {
        let (values, ranges): (&ArrayRef, Vec<(usize, usize)>) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                (list.values(), offsets.windows(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                (list.values(), offsets.windows(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect())
            }
            DataType::FixedSizeList(_, _) => {
                let list = array.as_fixed_size_list();
                let size = list.value_length() as usize;
                let first = list.value_offset(0) as usize;
                (list.values(), (0..list.len()).map(|row| (first + row * size, first + (row + 1) * size)).collect())
            }
            other => return Err(ArrowError::InvalidArgumentError(format!("cannot unnest {other}"))),
        };
        let rows = ranges.into_iter().enumerate().map(|(row, range)| array.is_valid(row).then_some(range)).collect();
        Ok(Self { values: Arc::clone(values), rows })
    }

    /// All elements, each row's padded with null to its count.
    fn padded(&self, counts: &[usize], total: usize) -> Result<ArrayRef, ArrowError> {
        if let Some(start) = self.contiguous_from(counts) {
            return Ok(self.values.slice(start, total));
        }
        let mut indices = Vec::with_capacity(total);
        for (range, &count) in self.rows.iter().zip(counts) {
            let (start, end) = range.unwrap_or((0, 0));
            indices.extend((start..end).map(|index| Some(index as u64)));
            indices.extend(std::iter::repeat_n(None, count - (end - start)));
        }
        take(self.values.as_ref(), &UInt64Array::from(indices), None)
    }

    /// Where the elements start when they lie one after the other and none needs padding: nothing to copy then.
    fn contiguous_from(&self, counts: &[usize]) -> Option<usize> {
        let mut rows = self.rows.iter().zip(counts).filter(|(_, count)| **count > 0);
        let (first, &count) = rows.next()?;
        let (start, mut end) = (*first)?;
        if end - start != count {
            return None;
        }
        for (range, &count) in rows {
            let (from, to) = (*range)?;
            if from != end || to - from != count {
                return None;
            }
            end = to;
        }
        Some(start)
    }
}

/// The index of each row as often as its count says.
fn repeat(counts: &[usize], total: usize) -> UInt64Array {
    let mut indices = Vec::with_capacity(total);
    for (row, &count) in counts.iter().enumerate() {
        indices.extend(std::iter::repeat_n(row as u64, count));
    }
    UInt64Array::from(indices)
}

fn element_type(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}

/// The fields of a struct column; null where the struct is null.
fn struct_columns(array: &ArrayRef) -> Result<Vec<ArrayRef>, ArrowError> {
    let row = array.as_struct();
    match row.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            let missing = BooleanArray::new(!nulls.inner(), None);
            row.columns().iter().map(|column| nullif(column, &missing)).collect()
        }
        _ => Ok(row.columns().to_vec()),
    }
}

impl Operator for Unnest {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        let lists: Vec<_> =
            self.lists.iter().map(|list| format!("#{} depth {}", list.index_in_input_schema, list.depth)).collect();
        let structs: Vec<_> = self.structs.iter().map(|index| format!("#{index}")).collect();
        format!("Unnest: lists [{}], structs [{}]", lists.join(", "), structs.join(", "))
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            let made = self.unnest(rows);
            out.extend(made.map_err(|error| OperatorError::from_expression(&self.describe(), error.into()))?);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "unnest_tests.rs"]
mod tests;
