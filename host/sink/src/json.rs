//! Rows and nested values as JSON: exact decimals, bytes in base64, what JSON has no number for as its name.
//!
//! One place for all that writes JSON: lines of the file sink ([`Form::SPARK`]), and arrays, maps and structs in columns of
//! databases ([`Form::EXACT`]).

use crate::render;
use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// What may differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Whether fields that are null are left out.
    pub(crate) ignore_nulls: bool,
    /// Whether times end with their milliseconds, as Spark writes them; else with all that they have.
    pub(crate) milliseconds: bool,
}

impl Form {
    /// As Spark writes lines.
    pub(crate) const SPARK: Self = Self { ignore_nulls: true, milliseconds: true };
    /// Nothing is left out.
    pub(crate) const EXACT: Self = Self { ignore_nulls: false, milliseconds: false };

    fn time(self, micros: i64) -> String {
        if self.milliseconds { render::iso_timestamp(micros) } else { render::timestamp(micros).replacen(' ', "T", 1) }
    }
}

/// A line for each row.
pub(crate) fn lines(form: Form, rows: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let mut text = String::new();
    for batch in rows {
        let row_struct = StructArray::from(batch.clone());
        for row in 0..batch.num_rows() {
            object(&mut text, &row_struct, row, form)?;
            text.push('\n');
        }
    }
    Ok(text.into_bytes())
}

fn object(text: &mut String, array: &StructArray, row: usize, form: Form) -> Result<(), ArrowError> {
    text.push('{');
    let mut first = true;
    for (field, column) in array.fields().iter().zip(array.columns()) {
        if form.ignore_nulls && column.is_null(row) {
            continue;
        }
        if !std::mem::take(&mut first) {
            text.push(',');
        }
        string(text, field.name());
        text.push(':');
        value(text, column.as_ref(), row, form)?;
    }
    text.push('}');
    Ok(())
}

/// Appends a value.
pub(crate) fn value(text: &mut String, array: &dyn Array, row: usize, form: Form) -> Result<(), ArrowError> {
    if array.is_null(row) {
        text.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => text.push_str("null"),
        DataType::Utf8 => string(text, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => string(text, array.as_string::<i64>().value(row)),
        DataType::Utf8View => string(text, array.as_string_view().value(row)),
        DataType::Float32 => number(text, render::float(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => number(text, render::double(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(..) => text.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Date32 => string(text, &render::date(array.as_primitive::<Date32Type>().value(row))),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            string(text, &(form.time(render::micros(array, *unit, row)) + zone));
        }
        DataType::Binary => string(text, &render::base64(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => string(text, &render::base64(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => string(text, &render::base64(array.as_binary_view().value(row))),
        DataType::List(_) => list(text, array.as_list::<i32>().value(row).as_ref(), form)?,
        DataType::LargeList(_) => list(text, array.as_list::<i64>().value(row).as_ref(), form)?,
        DataType::FixedSizeList(..) => list(text, array.as_fixed_size_list().value(row).as_ref(), form)?,
        DataType::Struct(_) => object(text, array.as_struct(), row, form)?,
        DataType::Map(..) => map(text, &array.as_map().value(row), form)?,
        DataType::Dictionary(_, values) => {
            let plain = cast(&array.slice(row, 1), values)?;
            value(text, plain.as_ref(), 0, form)?;
        }
        other => {
            let shown = ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string();
            if other.is_integer() || other == &DataType::Boolean {
                text.push_str(&shown);
            } else {
                string(text, &shown);
            }
        }
    }
    Ok(())
}

fn list(text: &mut String, items: &dyn Array, form: Form) -> Result<(), ArrowError> {
    text.push('[');
    for row in 0..items.len() {
        if row > 0 {
            text.push(',');
        }
        value(text, items, row, form)?;
    }
    text.push(']');
    Ok(())
}

fn map(text: &mut String, entries: &StructArray, form: Form) -> Result<(), ArrowError> {
    text.push('{');
    for row in 0..entries.len() {
        if row > 0 {
            text.push(',');
        }
        let mut key = String::new();
        value(&mut key, entries.column(0).as_ref(), row, form)?;
        // Keys are always strings in JSON.
        if key.starts_with('"') {
            text.push_str(&key)
        } else {
            string(text, &key)
        }
        text.push(':');
        value(text, entries.column(1).as_ref(), row, form)?;
    }
    text.push('}');
    Ok(())
}

/// A number, or the name of one that JSON does not know.
fn number(text: &mut String, value: String) {
    if value.ends_with(|last: char| last.is_ascii_digit()) { text.push_str(&value) } else { string(text, &value) }
}

fn string(text: &mut String, value: &str) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, DictionaryArray, Int32Array, TimestampMicrosecondArray};
    use arrow::datatypes::{Field, Int8Type};
    use std::sync::Arc;

    #[test]
    fn the_two_forms_differ_in_nulls_and_in_what_follows_the_second() {
        let times = TimestampMicrosecondArray::from(vec![1_714_564_800_000_250]).with_timezone("UTC");
        let numbers = Int32Array::from(vec![None::<i32>]);
        let words: DictionaryArray<Int8Type> = vec!["a"].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("at", Arc::new(times)), ("n", Arc::new(numbers)), ("w", Arc::new(words))];
        let fields: Vec<Field> =
            columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
        let row = StructArray::new(fields.into(), columns.into_iter().map(|(_, column)| column).collect(), None);
        for (form, expected) in [
            (Form::SPARK, r#"{"at":"2024-05-01T12:00:00.000Z","w":"a"}"#),
            (Form::EXACT, r#"{"at":"2024-05-01T12:00:00.00025Z","n":null,"w":"a"}"#),
        ] {
            let mut text = String::new();
            value(&mut text, &row, 0, form).unwrap();
            assert_eq!(text, expected);
        }
    }
}
