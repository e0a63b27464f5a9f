//! Rows that agree in some columns.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use std::collections::HashMap;

/// The rows that have the same values in all `columns`, as their numbers; groups in the order of their first rows, rows in
/// order.
pub(crate) fn group(columns: &[ArrayRef]) -> Result<Vec<Vec<u32>>, ArrowError> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(columns)?;
    let mut known = HashMap::new();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (row, key) in keys.iter().enumerate() {
        let group = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(u32::try_from(row).map_err(|error| ArrowError::ComputeError(error.to_string()))?);
    }
    Ok(groups)
}
