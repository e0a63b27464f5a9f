//! Rows as separated values, as Spark writes them.
//!
//! A value is quoted when it holds a separator, a quote or a line end; inside quotes, a quote and the escape
//! itself are written behind the escape, so that everything reads back.

use super::super::config::CsvOptions;
use crate::render;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The line of names, if there is to be one.
pub(in super::super) fn header(options: &CsvOptions, schema: &SchemaRef) -> Vec<u8> {
    let mut text = String::new();
    if options.header {
        let names: Vec<Option<String>> = schema.fields().iter().map(|field| Some(field.name().clone())).collect();
        line(&mut text, options, &names);
    }
    text.into_bytes()
}

pub(super) fn encode(options: &CsvOptions, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        let cells: Vec<Option<String>> =
            batch.columns().iter().map(|column| cell(column.as_ref(), row)).collect::<Result<_, _>>()?;
        line(&mut text, options, &cells);
    }
    Ok(text.into_bytes())
}

fn cell(array: &dyn Array, row: usize) -> Result<Option<String>, ArrowError> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Null => return Ok(None),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Float32 => render::float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => render::double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => render::date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            render::iso_timestamp(render::micros(array, *unit, row)) + zone
        }
        _ => ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string(),
    }))
}

fn line(text: &mut String, options: &CsvOptions, cells: &[Option<String>]) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            text.push_str(&options.separator);
        }
        let Some(cell) = cell else {
            text.push_str(&options.null_value);
            continue;
        };
        let mut value = cell.as_str();
        if options.trim_start {
            value = value.trim_start_matches(|c: char| c <= ' ');
        }
        if options.trim_end {
            value = value.trim_end_matches(|c: char| c <= ' ');
        }
        if value.is_empty() {
            text.push_str(&options.empty_value);
        } else if options.quote_all || needs_quotes(value, options) {
            text.push(options.quote);
            for character in value.chars() {
                if character == options.quote || character == options.escape {
                    text.push(options.escape);
                }
                text.push(character);
            }
            text.push(options.quote);
        } else {
            text.push_str(value);
        }
    }
    text.push('\n');
}

fn needs_quotes(value: &str, options: &CsvOptions) -> bool {
    value.contains(&options.separator) || value.contains([options.quote, '\n', '\r']) || value == options.null_value
}
