//! A guest's answer for a range of rows, checked: columns and the rows that failed.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{Field, FieldRef};
use std::sync::Arc;

use crate::call::cut;
use crate::layout::decode::{self, Buffers};
use crate::layout::encode;
use crate::signature::FunctionSignature;
use crate::wire;

/// Rows that failed, with the guest's words; ascending.
pub(super) type RowErrors = Vec<(u32, String)>;

/// The checked answer for a range of the batch. Row numbers are the batch's once [`Piece::shift`] was called.
#[derive(Debug)]
pub(super) struct Piece {
    /// For table functions: the row each output row came from. Empty for scalars.
    pub(super) input_rows: Vec<u32>,
    pub(super) columns: Vec<ArrayRef>,
    pub(super) row_errors: RowErrors,
}

impl Piece {
    /// What stands for rows that were never computed.
    pub(super) fn of_faulty_rows(signature: &FunctionSignature, scalar: bool, rows: usize) -> Self {
        let rows = if scalar { rows } else { 0 };
        let columns = signature.results.iter().map(|field| encode::nulls(field.data_type(), rows)).collect();
        Self { input_rows: Vec::new(), columns, row_errors: Vec::new() }
    }

    /// Checks the answer of a scalar function to `rows` rows.
    pub(super) fn of_scalar(field: &FieldRef, output: wire::ScalarOutput, rows: usize) -> Result<Self, String> {
        if output.values.rows as usize != rows {
            return Err(format!("{} values for {rows} rows", output.values.rows));
        }
        let row_errors = row_errors(output.row_errors, rows)?;
        let nullable: FieldRef =
            if field.is_nullable() { Arc::clone(field) } else { Arc::new(Field::clone(field).with_nullable(true)) };
        let mut buffers = Buffers::new(output.values.buffers);
        let mut values = decode::column(&nullable, rows, &mut buffers)?;
        buffers.finish()?;
        if !row_errors.is_empty() {
            let mut failed = vec![false; rows];
            row_errors.iter().for_each(|(row, _)| failed[*row as usize] = true);
            values = compute::nullif(&values, &BooleanArray::from(failed)).map_err(|e| e.to_string())?;
        }
        Ok(Self { input_rows: Vec::new(), columns: vec![values], row_errors })
    }

    /// Checks the answer of a table function to `rows` rows.
    pub(super) fn of_table(fields: &[FieldRef], output: wire::TableOutput, rows: usize) -> Result<Self, String> {
        let output_rows = output.rows.rows as usize;
        let row_errors = row_errors(output.row_errors, rows)?;
        let input_rows = decode::input_rows(&output.input_rows, output_rows, rows)?;
        let mut buffers = Buffers::new(output.rows.buffers);
        let columns = fields
            .iter()
            .map(|field| decode::column(field, output_rows, &mut buffers))
            .collect::<Result<Vec<_>, _>>()?;
        buffers.finish()?;
        let input_rows = input_rows.values().to_vec();
        if let Some((row, _)) = row_errors.iter().find(|(row, _)| input_rows.binary_search(row).is_ok()) {
            return Err(format!("row {row} failed, but has output rows"));
        }
        Ok(Self { input_rows, columns, row_errors })
    }

    /// Undoes leaving out rows before the call: row `i` of the call was row `kept[i]` of the range of `rows` rows.
    pub(super) fn spread(mut self, kept: &[u32], rows: usize, scalar: bool) -> Result<Self, String> {
        let row = |row: u32| kept.get(row as usize).copied().unwrap_or(row);
        self.input_rows.iter_mut().for_each(|number| *number = row(*number));
        self.row_errors.iter_mut().for_each(|(number, _)| *number = row(*number));
        if scalar {
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
    pub(super) fn shift(&mut self, range: &Range<usize>) {
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        if start > 0 {
            self.input_rows.iter_mut().for_each(|row| *row += start);
            self.row_errors.iter_mut().for_each(|(row, _)| *row += start);
        }
    }

    pub(super) fn output_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }
}

fn row_errors(errors: Vec<wire::RowError>, rows: usize) -> Result<RowErrors, String> {
    if let Some(error) = errors.iter().find(|error| error.row as usize >= rows) {
        return Err(format!("row {} of {rows} is said to have failed", error.row));
    }
    let mut errors: RowErrors = errors.into_iter().map(|error| (error.row, cut(&error.message))).collect();
    errors.sort_by_key(|(row, _)| *row);
    errors.dedup_by_key(|(row, _)| *row);
    Ok(errors)
}
