//! Two outputs of one batch, compared row by row whatever their order.

use crate::query::Output;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use std::collections::HashMap;

/// The most rows that are shown of each side.
const EXAMPLES: usize = 3;

/// How two outputs differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RowChanges {
    /// Rows that only one side has; a row that became another one counts once.
    pub(super) count: u64,
    /// Some of them, as JSON behind `-` and `+`.
    pub(super) examples: Vec<String>,
    /// Columns that are not what they were.
    pub(super) columns: Vec<String>,
}

/// Compares two outputs.
///
/// # Errors
/// When rows have a type without a byte form.
pub(super) fn compare(old: &Output, new: &Output) -> Result<RowChanges, ArrowError> {
    let mut changes = RowChanges::default();
    let (Some(before), Some(after)) = (&old.schema, &new.schema) else { return Ok(changes) };
    if before.fields().len() != after.fields().len() {
        let (had, has) = (before.fields().len(), after.fields().len());
        changes.columns.push(format!("the result had {had} columns and has {has}"));
        return Ok(changes);
    }
    for (was, is) in before.fields().iter().zip(after.fields()) {
        if was.data_type() != is.data_type() {
            let (name, was, is) = (was.name(), was.data_type(), is.data_type());
            changes.columns.push(format!("column `{name}` of the result was {was} and is {is}"));
        }
    }
    if !changes.columns.is_empty() {
        return Ok(changes);
    }
    let fields = before.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let converter = RowConverter::new(fields)?;
    let (old_rows, new_rows) = (rows(&converter, &old.rows)?, rows(&converter, &new.rows)?);
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    old_rows.iter().for_each(|(row, _)| *counts.entry(row).or_default() += 1);
    new_rows.iter().for_each(|(row, _)| *counts.entry(row).or_default() -= 1);
    let of_sign = |positive: bool| {
        let fitting = counts.values().filter(|count| (**count > 0) == positive && **count != 0);
        fitting.map(|count| count.unsigned_abs()).sum::<u64>()
    };
    changes.count = of_sign(true).max(of_sign(false));
    for (sign, all, batches) in [("-", &old_rows, &old.rows), ("+", &new_rows, &new.rows)] {
        let mut shown_rows = 0;
        for (row, (batch, at)) in all {
            let Some(left) = counts.get_mut(row.as_slice()).filter(|_| shown_rows < EXAMPLES) else { continue };
            let step = if sign == "-" { 1 } else { -1 };
            if *left * step > 0 {
                *left -= step;
                shown_rows += 1;
                changes.examples.push(format!("{sign} {}", shown(&batches[*batch].slice(*at, 1))));
            }
        }
    }
    Ok(changes)
}

/// Rows as bytes, and where they are.
type Rows = Vec<(Vec<u8>, (usize, usize))>;

fn rows(converter: &RowConverter, batches: &[RecordBatch]) -> Result<Rows, ArrowError> {
    let mut all = Rows::new();
    for (number, batch) in batches.iter().enumerate() {
        if batch.num_columns() == 0 {
            all.extend((0..batch.num_rows()).map(|row| (Vec::new(), (number, row))));
            continue;
        }
        let columns: Vec<ArrayRef> = batch.columns().to_vec();
        let rows = converter.convert_columns(&columns)?;
        all.extend(rows.iter().enumerate().map(|(row, bytes)| (bytes.data().to_vec(), (number, row))));
    }
    Ok(all)
}

/// A row as JSON, or why it has none.
fn shown(row: &RecordBatch) -> String {
    let bytes = millstream_sink::Export::Json.bytes(&row.schema(), std::slice::from_ref(row));
    match bytes {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            let mut cut: String = text.chars().take(200).collect();
            if cut.len() < text.len() {
                cut.push('…');
            }
            cut
        }
        Err(error) => format!("a row that cannot be shown: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use std::sync::Arc;

    fn output(values: &[i64]) -> Output {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let rows =
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap();
        Output { schema: Some(schema), rows: vec![rows] }
    }

    #[test]
    fn order_does_not_matter_and_a_changed_row_counts_once() {
        assert_eq!(compare(&output(&[1, 2, 2]), &output(&[2, 1, 2])).unwrap(), RowChanges::default());
        let changes = compare(&output(&[1, 2, 2]), &output(&[1, 2, 3])).unwrap();
        assert_eq!((changes.count, changes.examples), (1, vec!["- {\"n\":2}".to_owned(), "+ {\"n\":3}".to_owned()]));
        assert_eq!(compare(&output(&[1]), &output(&[])).unwrap().count, 1);
        assert_eq!(compare(&output(&[1]), &output(&[1, 4, 5])).unwrap().count, 2);
    }
}
