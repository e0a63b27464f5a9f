//! `to_json`: structs, arrays and maps as JSON texts.
//!
//! Fields that are null are left out; null elements and null values of maps are written. Times are written in UTC
//! with milliseconds, DATE as `2024-05-01`, BINARY in base64.

use std::sync::Arc;

use super::super::coercion::{mismatch, string};
use super::super::function::{Call, Definition};
use super::number;
use super::text::write_text;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta};
use datafusion::common::Result;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "to_json",
        aliases: &[],
        arguments: (1, 1),
        coerce,
        result: string,
        may_be_null: false,
        never_null: false,
        run,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    match &types[0] {
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => Ok(types.to_vec()),
        other => mismatch(name, "a STRUCT, ARRAY or MAP", other),
    }
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut result = StringBuilder::new();
    let mut text = String::new();
    for row in 0..call.rows {
        if args[0].is_null(row) {
            result.append_null();
            continue;
        }
        text.clear();
        write(&args[0], row, &mut text)?;
        result.append_value(&text);
    }
    Ok(Arc::new(result.finish()))
}

fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.data_type().is_null() || array.is_null(row)
}

fn write(array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
    if is_null(array, row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            out.push('{');
            let mut first = true;
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                if is_null(column, row) {
                    continue;
                }
                if !first {
                    out.push(',');
                }
                first = false;
                write_text(field.name(), out);
                out.push(':');
                write(column, row, out)?;
            }
            out.push('}');
        }
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            out.push('[');
            for place in 0..elements.len() {
                if place > 0 {
                    out.push(',');
                }
                write(&elements, place, out)?;
            }
            out.push(']');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            out.push('{');
            for place in 0..entries.len() {
                if place > 0 {
                    out.push(',');
                }
                match keys.data_type() {
                    DataType::Utf8 => write_text(keys.as_string::<i32>().value(place), out),
                    _ => write_text(&array_value_to_string(keys, place)?, out),
                }
                out.push(':');
                write(values, place, out)?;
            }
            out.push('}');
        }
        DataType::Utf8 => write_text(array.as_string::<i32>().value(row), out),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => out.push_str(&array.as_primitive::<Int8Type>().value(row).to_string()),
        DataType::Int16 => out.push_str(&array.as_primitive::<Int16Type>().value(row).to_string()),
        DataType::Int32 => out.push_str(&array.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Int64 => out.push_str(&array.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            write_float(value, || number::double(value), out);
        }
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            write_float(f64::from(value), || number::float(value), out);
        }
        DataType::Decimal128(..) => out.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            let date = NaiveDate::default().checked_add_signed(TimeDelta::days(i64::from(days)));
            let text = date.map(|date| format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()));
            write_text(&text.unwrap_or_else(|| days.to_string()), out);
        }
        DataType::Timestamp(_, zone) => {
            let micros = arrow::compute::cast(
                &array.slice(row, 1),
                &DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, zone.clone()),
            )?;
            let micros = micros.as_primitive::<TimestampMicrosecondType>().value(0);
            let shown =
                DateTime::from_timestamp_micros(micros).map(|time| time.format("%Y-%m-%dT%H:%M:%S%.3f").to_string());
            let mut shown = shown.unwrap_or_else(|| micros.to_string());
            if zone.is_some() {
                shown.push('Z');
            }
            write_text(&shown, out);
        }
        DataType::Binary => write_text(&base64(array.as_binary::<i32>().value(row)), out),
        _ => write_text(&array_value_to_string(array, row)?, out),
    }
    Ok(())
}

fn write_float(value: f64, shown: impl Fn() -> String, out: &mut String) {
    if value.is_finite() {
        out.push_str(&shown());
    } else if value.is_nan() {
        out.push_str("\"NaN\"");
    } else {
        out.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let held = chunk.iter().fold(0_u32, |held, &byte| (held << 8) | u32::from(byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                text.push(char::from(LETTERS[(held >> (18 - 6 * position)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
