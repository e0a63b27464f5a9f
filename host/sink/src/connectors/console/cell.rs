//! A value as Spark shows it.

use crate::render;
use arrow::array::{Array, AsArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt::Write;

/// Appends the text of a value; null is `NULL`.
pub(super) fn write(text: &mut String, array: &dyn Array, row: usize) -> Result<(), ArrowError> {
    if array.is_null(row) {
        text.push_str("NULL");
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => text.push_str("NULL"),
        DataType::Utf8 => text.push_str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text.push_str(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text.push_str(array.as_string_view().value(row)),
        DataType::Float32 => text.push_str(&render::float(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => text.push_str(&render::double(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(..) => text.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Date32 => text.push_str(&render::date(array.as_primitive::<Date32Type>().value(row))),
        DataType::Timestamp(unit, _) => text.push_str(&render::timestamp(render::micros(array, *unit, row))),
        DataType::Binary => bytes(text, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(text, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(text, array.as_binary_view().value(row)),
        DataType::List(_) => list(text, array.as_list::<i32>().value(row).as_ref())?,
        DataType::LargeList(_) => list(text, array.as_list::<i64>().value(row).as_ref())?,
        DataType::FixedSizeList(..) => list(text, array.as_fixed_size_list().value(row).as_ref())?,
        DataType::Struct(_) => structure(text, array.as_struct(), row)?,
        DataType::Map(..) => map(text, &array.as_map().value(row))?,
        DataType::Dictionary(_, values) => {
            let plain = cast(&array.slice(row, 1), values)?;
            write(text, plain.as_ref(), 0)?;
        }
        _ => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", formatter.value(row));
        }
    }
    Ok(())
}

/// `[66 6F]`.
fn bytes(text: &mut String, value: &[u8]) {
    text.push('[');
    for (at, byte) in value.iter().enumerate() {
        let gap = if at == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{byte:02X}");
    }
    text.push(']');
}

/// `[1, 2, NULL]`.
fn list(text: &mut String, items: &dyn Array) -> Result<(), ArrowError> {
    text.push('[');
    for row in 0..items.len() {
        if row > 0 {
            text.push_str(", ");
        }
        write(text, items, row)?;
    }
    text.push(']');
    Ok(())
}

/// `{1, a}`: the fields without their names.
fn structure(text: &mut String, array: &StructArray, row: usize) -> Result<(), ArrowError> {
    text.push('{');
    for (at, column) in array.columns().iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        write(text, column.as_ref(), row)?;
    }
    text.push('}');
    Ok(())
}

/// `{a -> 1, b -> NULL}`.
fn map(text: &mut String, entries: &StructArray) -> Result<(), ArrowError> {
    text.push('{');
    for row in 0..entries.len() {
        if row > 0 {
            text.push_str(", ");
        }
        write(text, entries.column(0).as_ref(), row)?;
        text.push_str(" -> ");
        write(text, entries.column(1).as_ref(), row)?;
    }
    text.push('}');
    Ok(())
}
