//! Arrays, maps and structs as JSON: exact decimals, times with microseconds, bytes in base64.

use crate::render;
use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Appends a value.
pub(super) fn value(text: &mut String, array: &dyn Array, row: usize) -> Result<(), ArrowError> {
    if array.is_null(row) {
        text.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => list(text, array.as_list::<i32>().value(row).as_ref()),
        DataType::LargeList(_) => list(text, array.as_list::<i64>().value(row).as_ref()),
        DataType::FixedSizeList(..) => list(text, array.as_fixed_size_list().value(row).as_ref()),
        DataType::Struct(_) => object(text, array.as_struct(), row),
        DataType::Map(..) => map(text, &array.as_map().value(row)),
        DataType::Float32 => number(text, &render::float(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => number(text, &render::double(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(..) => {
            text.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row));
            Ok(())
        }
        _ => scalar(text, array, row),
    }
}

fn scalar(text: &mut String, array: &dyn Array, row: usize) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Utf8 => string(text, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => string(text, array.as_string::<i64>().value(row)),
        DataType::Utf8View => string(text, array.as_string_view().value(row)),
        DataType::Binary => string(text, &render::base64(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => string(text, &render::base64(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => string(text, &render::base64(array.as_binary_view().value(row))),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            string(text, &(render::timestamp(render::micros(array, *unit, row)).replacen(' ', "T", 1) + zone));
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

fn list(text: &mut String, items: &dyn Array) -> Result<(), ArrowError> {
    text.push('[');
    for row in 0..items.len() {
        if row > 0 {
            text.push(',');
        }
        value(text, items, row)?;
    }
    text.push(']');
    Ok(())
}

fn object(text: &mut String, array: &StructArray, row: usize) -> Result<(), ArrowError> {
    text.push('{');
    for (at, (field, column)) in array.fields().iter().zip(array.columns()).enumerate() {
        if at > 0 {
            text.push(',');
        }
        string(text, field.name());
        text.push(':');
        value(text, column.as_ref(), row)?;
    }
    text.push('}');
    Ok(())
}

fn map(text: &mut String, entries: &StructArray) -> Result<(), ArrowError> {
    text.push('{');
    for row in 0..entries.len() {
        if row > 0 {
            text.push(',');
        }
        let mut key = String::new();
        value(&mut key, entries.column(0).as_ref(), row)?;
        // Keys are always strings in JSON.
        if key.starts_with('"') {
            text.push_str(&key)
        } else {
            string(text, &key)
        }
        text.push(':');
        value(text, entries.column(1).as_ref(), row)?;
    }
    text.push('}');
    Ok(())
}

/// A number, or the name of one that JSON does not know.
fn number(text: &mut String, value: &str) -> Result<(), ArrowError> {
    if value.ends_with(|last: char| last.is_ascii_digit()) {
        text.push_str(value)
    } else {
        string(text, value)
    }
    Ok(())
}

fn string(text: &mut String, value: &str) {
    text.push_str(&serde_json::Value::from(value).to_string());
}
