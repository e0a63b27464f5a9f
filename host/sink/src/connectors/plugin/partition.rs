//! In which partition a row is: its values say it, and nothing else.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use std::sync::Arc;

/// The columns of `indices` in the types of `fields`.
pub(super) fn projected(rows: &RecordBatch, indices: &[usize], fields: &[FieldRef]) -> Result<RecordBatch, ArrowError> {
    let column = |(index, field): (&usize, &FieldRef)| {
        let column = rows.column(*index);
        if column.data_type() == field.data_type() {
            return Ok(ArrayRef::clone(column));
        }
        cast(column, field.data_type())
    };
    let columns = indices.iter().zip(fields).map(column).collect::<Result<Vec<_>, _>>()?;
    // Whether there are nulls where none may be is asked later, with a better answer.
    let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    batch(Schema::new(fields.iter().map(nullable).collect::<Vec<_>>()), columns, rows.num_rows())
}

fn batch(schema: Schema, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
}

/// The rows of each of `count` partitions.
pub(super) fn partitions(batches: Vec<RecordBatch>, count: u32) -> Result<Vec<Vec<RecordBatch>>, ArrowError> {
    if count <= 1 {
        return Ok(vec![batches]);
    }
    let mut partitions = vec![Vec::new(); count as usize];
    for rows in batches.into_iter().filter(|rows| rows.num_rows() > 0) {
        let places = places(&rows, count)?;
        for (partition, places) in partitions.iter_mut().zip(places).filter(|(_, places)| !places.is_empty()) {
            if places.len() == rows.num_rows() {
                partition.push(rows.clone());
                continue;
            }
            let places = UInt32Array::from(places);
            let columns = rows.columns().iter().map(|column| take(column, &places, None));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            partition.push(batch(rows.schema_ref().as_ref().clone(), columns, places.len())?);
        }
    }
    Ok(partitions)
}

/// The rows of a batch by partition.
fn places(rows: &RecordBatch, count: u32) -> Result<Vec<Vec<u32>>, ArrowError> {
    let mut places = vec![Vec::new(); count as usize];
    if rows.num_columns() == 0 {
        places[0] = (0..rows.num_rows() as u32).collect();
        return Ok(places);
    }
    let sorts = rows.schema_ref().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let bytes = RowConverter::new(sorts)?.convert_columns(rows.columns())?;
    for (number, row) in (0..).zip(bytes.iter()) {
        places[partition_of(row.data(), count) as usize].push(number);
    }
    Ok(places)
}

/// FNV-1a of 64 bits, its upper bits mixed into the lower ones; then the product's upper half.
fn partition_of(bytes: &[u8], count: u32) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    ((u128::from(hash) * u128::from(count)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, StringArray};
    use arrow::datatypes::{DataType, Field};

    fn rows(values: &[&str]) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("v", DataType::Utf8, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(values.to_vec()))]).unwrap()
    }

    fn shown(partitions: &[Vec<RecordBatch>]) -> Vec<Vec<String>> {
        let values =
            |rows: &RecordBatch| rows.column(0).as_string::<i32>().iter().flatten().map(str::to_owned).collect();
        let of = |batches: &Vec<RecordBatch>| {
            let mut all: Vec<String> = batches.iter().flat_map(|rows| -> Vec<String> { values(rows) }).collect();
            all.sort();
            all
        };
        partitions.iter().map(of).collect()
    }

    #[test]
    fn a_row_has_its_partition_in_any_order_and_company() {
        let names: Vec<String> = (0..100).map(|number| format!("row {number}")).collect();
        let forth: Vec<&str> = names.iter().map(String::as_str).collect();
        let back: Vec<&str> = forth.iter().rev().copied().collect();
        let one = shown(&partitions(vec![rows(&forth)], 5).unwrap());
        let other = shown(&partitions(vec![rows(&back[..30]), rows(&[]), rows(&back[30..])], 5).unwrap());
        assert_eq!(one, other);
        assert_eq!(one.iter().map(Vec::len).sum::<usize>(), 100);
        assert!(one.iter().all(|partition| partition.len() > 5), "{one:?}");
    }

    #[test]
    fn rows_stay_where_they_were_in_the_release_before() {
        assert_eq!(["", "a", "b", "c"].map(|text| partition_of(text.as_bytes(), 5)), [4, 4, 1, 4]);
    }
}
