//! Values to text and back, as stories write them.

use anyhow::{Context, Result, bail, ensure};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, NaiveDateTime, NaiveTime, Timelike};
use std::sync::Arc;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// The rows as text, cells with ` | ` between them.
///
/// # Errors
/// When a value has no text.
pub fn rows(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell(column, row)).collect::<Result<Vec<_>>>()?;
            lines.push(cells.join(" | "));
        }
    }
    Ok(lines)
}

/// One value as text: times without the date when it is 1970-01-01, windows as `[start,end)`.
///
/// # Errors
/// When it has no text.
pub fn cell(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("null".into());
    }
    match column.data_type() {
        DataType::Timestamp(_, zone) => {
            let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            time(micros.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Struct(fields) if fields.len() == 2 && fields[0].name() == "start" && fields[1].name() == "end" => {
            let window = column.as_struct();
            Ok(format!("[{},{})", cell(window.column(0), row)?, cell(window.column(1), row)?))
        }
        _ => Ok(array_value_to_string(column, row)?),
    }
}

fn time(micros: i64) -> Result<String> {
    let time = DateTime::from_timestamp_micros(micros).with_context(|| format!("{micros} is no time"))?.naive_utc();
    let clock = if time.nanosecond() == 0 { time.format("%H:%M:%S") } else { time.format("%H:%M:%S%.3f") };
    let is_first_day = (0..MICROS_PER_DAY).contains(&micros);
    Ok(if is_first_day { clock.to_string() } else { format!("{}T{clock}", time.format("%Y-%m-%d")) })
}

/// A time as stories write it, in microseconds since 1970.
fn micros(text: &str) -> Result<i64> {
    if text.contains('T') {
        let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")?;
        return Ok(time.and_utc().timestamp_micros());
    }
    let time = NaiveTime::parse_from_str(text, "%H:%M:%S%.f").with_context(|| format!("`{text}` is no time"))?;
    Ok(i64::from(time.num_seconds_from_midnight()) * MICROS_PER_SECOND + i64::from(time.nanosecond() / 1000))
}

/// A time as stories write it, in milliseconds since 1970.
///
/// # Errors
/// When it is none.
pub fn time_ms(text: &str) -> Result<i64> {
    Ok(micros(text)?.div_euclid(1000))
}

/// A unit of rows from their texts.
///
/// # Errors
/// When a row has another number of values than there are columns, or a value is not of its column's type.
pub fn unit(schema: &SchemaRef, rows: &[Vec<Option<String>>]) -> Result<RecordBatch> {
    for row in rows {
        ensure!(row.len() == schema.fields().len(), "{row:?} does not have {} values", schema.fields().len());
    }
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let values = rows.iter().map(|row| row[index].as_deref());
        column(field.data_type(), values)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn column<'a>(data_type: &DataType, values: impl Iterator<Item = Option<&'a str>>) -> Result<ArrayRef> {
    fn parsed<'a, T, E: Into<anyhow::Error>>(
        values: impl Iterator<Item = Option<&'a str>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<Option<T>>> {
        values.map(|value| value.map(&parse).transpose().map_err(Into::into)).collect()
    }
    Ok(match data_type {
        DataType::Utf8 => Arc::new(values.collect::<StringArray>()),
        DataType::Int32 => Arc::new(Int32Array::from(parsed(values, str::parse::<i32>)?)),
        DataType::Int64 => Arc::new(Int64Array::from(parsed(values, str::parse::<i64>)?)),
        DataType::Float64 => Arc::new(Float64Array::from(parsed(values, str::parse::<f64>)?)),
        DataType::Boolean => Arc::new(BooleanArray::from(parsed(values, str::parse::<bool>)?)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(TimestampMicrosecondArray::from(parsed(values, micros)?).with_timezone_opt(zone.clone()))
        }
        other => bail!("{other} is no type of a story"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["00:00:01", "12:00:01.500", "2024-05-01T00:00:00", "1969-12-31T23:59:59"] {
            assert_eq!(time(micros(text).unwrap()).unwrap(), text);
        }
        assert!(micros("noon").is_err());
    }
}
