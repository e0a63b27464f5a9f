//! Rows as the suite's canonical JSON.

use anyhow::{Result, bail};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use arrow::temporal_conversions::{date32_to_datetime, timestamp_us_to_datetime};
use serde_json::{Map, Value};
use std::path::Path;

/// Every row as an object with all columns.
pub(crate) fn rows_as_json(batches: &[RecordBatch]) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let mut object = Map::new();
            for (field, column) in schema.fields().iter().zip(batch.columns()) {
                object.insert(field.name().clone(), value(column, row)?);
            }
            rows.push(Value::Object(object));
        }
    }
    Ok(rows)
}

/// One value per line.
pub(crate) fn write_lines(path: &Path, lines: &[Value]) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    Ok(std::fs::write(path, text)?)
}

fn value(array: &ArrayRef, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(row);
            // The shortest text of a float, not of the double next to it.
            double(number.to_string().parse().unwrap_or(f64::from(number)))
        }
        DataType::Float64 => double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value_as_string(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Binary => base64(array.as_binary::<i32>().value(row)).into(),
        DataType::Date32 => match date32_to_datetime(array.as_primitive::<Date32Type>().value(row)) {
            Some(date) => date.format("%Y-%m-%d").to_string().into(),
            None => bail!("a date out of range"),
        },
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))?.into()
        }
        DataType::Struct(fields) => {
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                object.insert(field.name().clone(), value(column, row)?);
            }
            Value::Object(object)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|item| value(&items, item)).collect::<Result<_>>()?)
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let mut object = Map::new();
            for entry in 0..entries.len() {
                let key = match value(entries.column(0), entry)? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                object.insert(key, value(entries.column(1), entry)?);
            }
            Value::Object(object)
        }
        other => bail!("the type {other} has no canonical form"),
    })
}

fn double(number: f64) -> Value {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        number.into()
    }
}

fn timestamp(micros: i64) -> Result<String> {
    let Some(time) = timestamp_us_to_datetime(micros) else { bail!("a timestamp out of range") };
    let text = time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string();
    Ok(format!("{}Z", text.trim_end_matches('0').trim_end_matches('.')))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0_u32, |group, i| group << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let sextet = (group >> (18 - 6 * i)) as usize & 63;
            text.push(if i <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    text
}
