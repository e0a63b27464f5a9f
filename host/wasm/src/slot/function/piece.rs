//! A guest's answer for a range of rows, checked: columns and the rows that failed.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{Field, FieldRef};
use std::sync::Arc;

use crate::layout::{decode, encode};
use crate::slot::columns::{self, RowErrors};
use crate::wire::{self, function::TableOutput};

/// The checked answer for a range of the batch. Row numbers are the batch's once [`Piece::shift`] was called.
#[derive(Debug)]
pub(in crate::slot) struct Piece {
    /// For table functions: the row each output row came from. Otherwise empty.
    pub(in crate::slot) input_rows: Vec<u32>,
    pub(in crate::slot) columns: Vec<ArrayRef>,
    pub(in crate::slot) row_errors: RowErrors,
}

impl Piece {
    /// What stands for rows that were never computed.
    pub(in crate::slot) fn of_faulty_rows(results: &[FieldRef], per_row: bool, rows: usize) -> Self {
        let rows = if per_row { rows } else { 0 };
        let columns = results.iter().map(|field| encode::nulls(field.data_type(), rows)).collect();
        Self { input_rows: Vec::new(), columns, row_errors: Vec::new() }
    }

    /// Checks one value per row.
    pub(in crate::slot) fn of_values(
        results: &[FieldRef],
        values: wire::Batch,
        row_errors: Vec<wire::RowError>,
        rows: usize,
    ) -> Result<Self, String> {
        let [field] = results else { return Err(format!("{} results of one function", results.len())) };
        if values.rows as usize != rows {
            return Err(format!("{} values for {rows} rows", values.rows));
        }
        let row_errors = columns::row_errors(row_errors, rows)?;
        let nullable: FieldRef =
            if field.is_nullable() { Arc::clone(field) } else { Arc::new(Field::clone(field).with_nullable(true)) };
        let mut columns = columns::decoded(&[nullable], values, rows)?;
        if !row_errors.is_empty() {
            let mut failed = vec![false; rows];
            row_errors.iter().for_each(|(row, _)| failed[*row as usize] = true);
            let failed = BooleanArray::from(failed);
            for column in &mut columns {
                *column = compute::nullif(column, &failed).map_err(|e| e.to_string())?;
            }
        }
        Ok(Self { input_rows: Vec::new(), columns, row_errors })
    }

    /// Checks the answer of a table function to `rows` rows.
    pub(in crate::slot) fn of_table(fields: &[FieldRef], output: TableOutput, rows: usize) -> Result<Self, String> {
        let output_rows = output.rows.rows as usize;
        let row_errors = columns::row_errors(output.row_errors, rows)?;
        let input_rows = decode::input_rows(&output.input_rows, output_rows, rows)?;
        let columns = columns::decoded(fields, output.rows, output_rows)?;
        let input_rows = input_rows.values().to_vec();
        if let Some((row, _)) = row_errors.iter().find(|(row, _)| input_rows.binary_search(row).is_ok()) {
            return Err(format!("row {row} failed, but has output rows"));
        }
        Ok(Self { input_rows, columns, row_errors })
    }

    /// Undoes leaving out rows before the call: row `i` of the call was row `kept[i]` of the range of `rows` rows.
    pub(in crate::slot) fn spread(mut self, kept: &[u32], rows: usize, per_row: bool) -> Result<Self, String> {
        let row = |row: u32| kept.get(row as usize).copied().unwrap_or(row);
        self.input_rows.iter_mut().for_each(|number| *number = row(*number));
        self.row_errors.iter_mut().for_each(|(number, _)| *number = row(*number));
        if per_row {
            let mut places = vec![None; rows];
            for (from, to) in (0..).zip(kept) {
                places[*to as usize] = Some(from);
            }
            let places = UInt32Array::from(places);
            for column in &mut self.columns {
                *column = compute::take(column, &places, None).map_err(|e| e.to_string())?;
            }
        }
        Ok(self)
    }

    /// From row numbers of `range` to those of the batch.
    pub(in crate::slot) fn shift(&mut self, range: &Range<usize>) {
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        if start > 0 {
            self.input_rows.iter_mut().for_each(|row| *row += start);
            self.row_errors.iter_mut().for_each(|(row, _)| *row += start);
        }
    }

    pub(in crate::slot) fn output_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }
}
