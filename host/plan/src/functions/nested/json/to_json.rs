//! `to_json(value[, options])`: structs, arrays and maps as JSON texts.
//!
//! Fields that are null are left out, unless the option `ignoreNullFields` says otherwise; null elements and null values of maps
//! are written. Times are written in UTC with milliseconds, DATE as `2024-05-01`, BINARY in base64; the keys of a map as their
//! plain values: of dates the days, of times the microseconds since 1970, as Spark has them. Source: Spark's `JacksonGenerator`.

use super::super::coercion::mismatch;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::options::{KNOWN, WriteOptions, options};
use super::text::{write_double, write_float, write_quoted};
use crate::functions::expr::spark_text;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, plan_err};
use std::fmt::{Display, Write as _};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "to_json", arguments: (1, 2), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) | DataType::Null => Ok(value.clone()),
        other => mismatch(name, "a STRUCT, ARRAY or MAP", other),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let constants = if asked.constants.is_empty() { None } else { Some(asked.text(0, "a map of constant options")?) };
    let options = options(asked.name, constants)?;
    if let Err(error) = options.only(&format!("`{}`", asked.name), &KNOWN) {
        return plan_err!("[INVALID_OPTIONS] {error}");
    }
    Ok(Arc::new(ToJson { options: WriteOptions::new(asked.name, &options)? }))
}

/// How the values of one call are written.
struct ToJson {
    options: WriteOptions,
}

impl Work for ToJson {
    fn output(&self) -> &DataType {
        &DataType::Utf8
    }

    fn is_null_for_null_only(&self) -> bool {
        true
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let mut result = StringBuilder::new();
        let mut text = String::new();
        for row in 0..values.len() {
            if is_null(values, row) {
                result.append_null();
                continue;
            }
            text.clear();
            self.write(values, row, 0, &mut text)?;
            result.append_value(&text);
        }
        Ok(Arc::new(result.finish()))
    }
}

fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.data_type().is_null() || array.is_null(row)
}

fn value<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// Appends a value as Rust shows it.
fn show(value: impl Display, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{value}");
}

/// Microseconds since 1970.
fn micros(array: &ArrayRef, row: usize) -> Result<i64> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(value::<TimestampMicrosecondType>(array, row)),
        DataType::Timestamp(_, zone) => {
            let unit = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            Ok(value::<TimestampMicrosecondType>(&cast(&array.slice(row, 1), &unit)?, 0))
        }
        other => mismatch("to_json", "a TIMESTAMP", other),
    }
}

impl ToJson {
    /// Appends a value; `depth` is how many objects it stands in.
    fn write(&self, array: &ArrayRef, row: usize, depth: usize, out: &mut String) -> Result<()> {
        if is_null(array, row) {
            out.push_str("null");
            return Ok(());
        }
        match array.data_type() {
            DataType::Struct(fields) => {
                out.push('{');
                let mut is_empty = true;
                for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                    if self.options.ignore_null_fields && is_null(column, row) {
                        continue;
                    }
                    self.begin_field(&mut is_empty, depth, out);
                    self.write_text(field.name(), out);
                    self.write_colon(out);
                    self.write(column, row, depth + 1, out)?;
                }
                self.end_object(is_empty, depth, out);
            }
            DataType::List(_) => {
                let elements = array.as_list::<i32>().value(row);
                let blank = if self.options.pretty { " " } else { "" };
                out.push('[');
                for place in 0..elements.len() {
                    out.push_str(if place > 0 { "," } else { "" });
                    out.push_str(blank);
                    self.write(&elements, place, depth, out)?;
                }
                out.push_str(blank);
                out.push(']');
            }
            DataType::Map(..) => {
                let entries = array.as_map().value(row);
                let (keys, values) = (entries.column(0), entries.column(1));
                out.push('{');
                let mut is_empty = true;
                for place in 0..entries.len() {
                    self.begin_field(&mut is_empty, depth, out);
                    self.write_key(keys, place, out)?;
                    self.write_colon(out);
                    self.write(values, place, depth + 1, out)?;
                }
                self.end_object(is_empty, depth, out);
            }
            _ => self.write_atom(array, row, out)?,
        }
        Ok(())
    }

    fn write_atom(&self, array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
        match array.data_type() {
            DataType::Utf8 => self.write_text(array.as_string::<i32>().value(row), out),
            DataType::Boolean => show(array.as_boolean().value(row), out),
            DataType::Int8 => show(value::<Int8Type>(array, row), out),
            DataType::Int16 => show(value::<Int16Type>(array, row), out),
            DataType::Int32 => show(value::<Int32Type>(array, row), out),
            DataType::Int64 => show(value::<Int64Type>(array, row), out),
            DataType::Float64 => match value::<Float64Type>(array, row) {
                value if value.is_finite() => write_double(value, out),
                value => write_not_finite(value, out),
            },
            DataType::Float32 => match value::<Float32Type>(array, row) {
                value if value.is_finite() => write_float(value, out),
                value => write_not_finite(f64::from(value), out),
            },
            DataType::Decimal128(..) => out.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
            DataType::Date32 => {
                let days = value::<Date32Type>(array, row);
                self.quote(out, |out| self.options.times.write_date(days, out));
            }
            DataType::Timestamp(_, zone) => {
                let micros = micros(array, row)?;
                self.quote(out, |out| match zone {
                    None => self.options.times.write_local(micros, out),
                    Some(_) => self.options.times.write_instant(micros, out),
                });
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>().value(row);
                self.quote(out, |out| out.push_str(&base64(bytes)));
            }
            _ => self.write_text(spark_text(&array.slice(row, 1))?.value(0), out),
        }
        Ok(())
    }

    /// Appends the key of a map in quotes.
    fn write_key(&self, keys: &ArrayRef, place: usize, out: &mut String) -> Result<()> {
        match keys.data_type() {
            DataType::Utf8 => self.write_text(keys.as_string::<i32>().value(place), out),
            DataType::Date32 => self.quote(out, |out| show(value::<Date32Type>(keys, place), out)),
            DataType::Timestamp(..) => {
                let micros = micros(keys, place)?;
                self.quote(out, |out| show(micros, out));
            }
            _ => self.write_text(spark_text(&keys.slice(place, 1))?.value(0), out),
        }
        Ok(())
    }

    fn write_text(&self, text: &str, out: &mut String) {
        write_quoted(text, self.options.ascii, out);
    }

    /// Appends a text that needs escapes only where a pattern has brought them.
    fn quote(&self, out: &mut String, write: impl FnOnce(&mut String)) {
        let start = out.len();
        write(out);
        let text = out.split_off(start);
        self.write_text(&text, out);
    }

    fn write_colon(&self, out: &mut String) {
        out.push_str(if self.options.pretty { " : " } else { ":" });
    }

    /// Goes to where the next field of an object stands.
    fn begin_field(&self, is_empty: &mut bool, depth: usize, out: &mut String) {
        if !std::mem::take(is_empty) {
            out.push(',');
        }
        if self.options.pretty {
            new_line(depth + 1, out);
        }
    }

    fn end_object(&self, is_empty: bool, depth: usize, out: &mut String) {
        match (self.options.pretty, is_empty) {
            (true, true) => out.push(' '),
            (true, false) => new_line(depth, out),
            (false, _) => {}
        }
        out.push('}');
    }
}

/// Begins a line two blanks per object further in.
fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

fn write_not_finite(value: f64, out: &mut String) {
    out.push_str(match value {
        value if value.is_nan() => "\"NaN\"",
        value if value > 0.0 => "\"Infinity\"",
        _ => "\"-Infinity\"",
    });
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
