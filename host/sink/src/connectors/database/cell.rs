//! One value of a row, as databases know values.

use crate::json;
use crate::render;
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use std::borrow::Cow;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    /// None.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number of single precision.
    Float(f32),
    /// A number of double precision.
    Double(f64),
    /// A decimal, in digits.
    Decimal(String),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Binary(Cow<'a, [u8]>),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970.
    Timestamp {
        /// The microseconds.
        micros: i64,
        /// Whether it is a point in time, not a clock on some wall.
        utc: bool,
    },
    /// JSON.
    Json(String),
}

/// The value of a column in a row.
pub(crate) fn cell(array: &dyn Array, row: usize) -> Result<Cell<'_>, ArrowError> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
        DataType::Int8 => Cell::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Cell::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Cell::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Cell::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Cell::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => Cell::Decimal(array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row).into()),
        DataType::Binary => Cell::Binary(array.as_binary::<i32>().value(row).into()),
        DataType::LargeBinary => Cell::Binary(array.as_binary::<i64>().value(row).into()),
        DataType::BinaryView => Cell::Binary(array.as_binary_view().value(row).into()),
        DataType::Date32 => Cell::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(unit, zone) => {
            Cell::Timestamp { micros: render::micros(array, *unit, row), utc: zone.is_some() }
        }
        DataType::Dictionary(_, values) => {
            let plain = cast(&array.slice(row, 1), values)?;
            return Ok(owned(cell(plain.as_ref(), 0)?));
        }
        _ => {
            let mut text = String::new();
            json::value(&mut text, array, row, json::Form::EXACT)?;
            Cell::Json(text)
        }
    })
}

fn owned(cell: Cell<'_>) -> Cell<'static> {
    match cell {
        Cell::Null => Cell::Null,
        Cell::Bool(value) => Cell::Bool(value),
        Cell::Int(value) => Cell::Int(value),
        Cell::Float(value) => Cell::Float(value),
        Cell::Double(value) => Cell::Double(value),
        Cell::Decimal(digits) => Cell::Decimal(digits),
        Cell::Text(text) => Cell::Text(text.into_owned().into()),
        Cell::Binary(bytes) => Cell::Binary(bytes.into_owned().into()),
        Cell::Date(days) => Cell::Date(days),
        Cell::Timestamp { micros, utc } => Cell::Timestamp { micros, utc },
        Cell::Json(text) => Cell::Json(text),
    }
}
