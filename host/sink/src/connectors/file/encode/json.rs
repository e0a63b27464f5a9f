//! Rows as JSON lines, as Spark writes them: times in ISO form, bytes in base64, null fields left out.

use crate::render;
use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

pub(crate) fn encode(ignore_nulls: bool, rows: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let mut text = String::new();
    for batch in rows {
        let row_struct = StructArray::from(batch.clone());
        for row in 0..batch.num_rows() {
            object(&mut text, &row_struct, row, ignore_nulls)?;
            text.push('\n');
        }
    }
    Ok(text.into_bytes())
}

fn object(text: &mut String, array: &StructArray, row: usize, ignore_nulls: bool) -> Result<(), ArrowError> {
    text.push('{');
    let mut first = true;
    for (field, column) in array.fields().iter().zip(array.columns()) {
        if ignore_nulls && column.is_null(row) {
            continue;
        }
        if !std::mem::take(&mut first) {
            text.push(',');
        }
        string(text, field.name());
        text.push(':');
        value(text, column.as_ref(), row, ignore_nulls)?;
    }
    text.push('}');
    Ok(())
}

fn value(text: &mut String, array: &dyn Array, row: usize, ignore_nulls: bool) -> Result<(), ArrowError> {
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
            string(text, &(render::iso_timestamp(render::micros(array, *unit, row)) + zone));
        }
        DataType::Binary => string(text, &render::base64(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => string(text, &render::base64(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => string(text, &render::base64(array.as_binary_view().value(row))),
        DataType::List(_) => list(text, array.as_list::<i32>().value(row).as_ref(), ignore_nulls)?,
        DataType::LargeList(_) => list(text, array.as_list::<i64>().value(row).as_ref(), ignore_nulls)?,
        DataType::FixedSizeList(..) => list(text, array.as_fixed_size_list().value(row).as_ref(), ignore_nulls)?,
        DataType::Struct(_) => object(text, array.as_struct(), row, ignore_nulls)?,
        DataType::Map(..) => map(text, &array.as_map().value(row), ignore_nulls)?,
        DataType::Dictionary(_, values) => {
            let plain = cast(&array.slice(row, 1), values)?;
            value(text, plain.as_ref(), 0, ignore_nulls)?;
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

fn list(text: &mut String, items: &dyn Array, ignore_nulls: bool) -> Result<(), ArrowError> {
    text.push('[');
    for row in 0..items.len() {
        if row > 0 {
            text.push(',');
        }
        value(text, items, row, ignore_nulls)?;
    }
    text.push(']');
    Ok(())
}

fn map(text: &mut String, entries: &StructArray, ignore_nulls: bool) -> Result<(), ArrowError> {
    text.push('{');
    for row in 0..entries.len() {
        if row > 0 {
            text.push(',');
        }
        let mut key = String::new();
        value(&mut key, entries.column(0).as_ref(), row, ignore_nulls)?;
        // Keys are always strings in JSON.
        if key.starts_with('"') {
            text.push_str(&key)
        } else {
            string(text, &key)
        }
        text.push(':');
        value(text, entries.column(1).as_ref(), row, ignore_nulls)?;
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
