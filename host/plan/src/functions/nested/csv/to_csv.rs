//! `to_csv(struct[, options])`: the fields of a struct as one record of separated values.
//!
//! Source: Spark's `UnivocityGenerator`. Values are written as a cast to STRING writes them, but for times, which have their
//! patterns, and BINARY, which is shown as `[41 42]`. Blanks around values are cut off, unless options say otherwise. A record
//! in which there is nothing is null.

use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::options::{WriteOptions, options};
use super::record::write;
use crate::functions::expr::spark_text;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, plan_err};
use std::fmt::Write as _;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "to_csv", arguments: (1, 2), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Struct(_) => Ok(value.clone()),
        other => plan_err!("[DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE] `{name}` writes a STRUCT, not {other}"),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let constants = if asked.constants.is_empty() { None } else { Some(asked.text(0, "a map of constant options")?) };
    Ok(Arc::new(ToCsv { options: WriteOptions::new(asked.name, &options(asked.name, constants)?)? }))
}

/// How the records of one call are written.
struct ToCsv {
    options: WriteOptions,
}

impl Work for ToCsv {
    fn output(&self) -> &DataType {
        &DataType::Utf8
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let columns = values.as_struct().columns().iter().map(|column| self.words(column));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let (mut records, mut text) = (StringBuilder::new(), String::new());
        for row in 0..values.len() {
            text.clear();
            if values.is_valid(row) {
                for (place, words) in columns.iter().enumerate() {
                    write(words.is_valid(row).then(|| words.value(row)), place, &self.options, &mut text);
                }
            }
            if text.is_empty() { records.append_null() } else { records.append_value(&text) }
        }
        Ok(Arc::new(records.finish()))
    }
}

impl ToCsv {
    /// The texts of a column, before quotes.
    fn words(&self, column: &ArrayRef) -> Result<StringArray> {
        let times = &self.options.times;
        match column.data_type() {
            DataType::Date32 => {
                let days = column.as_primitive::<Date32Type>().iter();
                Ok(written(days, |days, out| times.write_date(days, out)))
            }
            DataType::Timestamp(_, zone) => {
                let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
                let micros = micros.as_primitive::<TimestampMicrosecondType>().iter();
                Ok(match zone {
                    Some(_) => written(micros, |micros, out| times.write_instant(micros, out)),
                    None => written(micros, |micros, out| times.write_local(micros, out)),
                })
            }
            DataType::Binary => {
                let bytes: &BinaryArray = column.as_binary::<i32>();
                Ok(written(bytes.iter(), write_bytes))
            }
            _ => spark_text(column),
        }
    }
}

/// The text of each value.
fn written<T>(values: impl Iterator<Item = Option<T>>, write: impl Fn(T, &mut String)) -> StringArray {
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for value in values {
        match value {
            None => texts.append_null(),
            Some(value) => {
                text.clear();
                write(value, &mut text);
                texts.append_value(&text);
            }
        }
    }
    texts.finish()
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    out.push('[');
    for (place, byte) in bytes.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(out, "{}{byte:02X}", if place > 0 { " " } else { "" });
    }
    out.push(']');
}
