//! Rows in the text form of COPY.

use crate::connectors::database::{Cell, cell};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::error::ArrowError;
use bytes::Bytes;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use std::fmt::Write;

/// About how many bytes a piece has.
const PIECE: usize = 256 * 1024;

/// The columns of rows in pieces. With `numbered`, the number of each row stands in front.
pub(super) fn encode(rows: &[RecordBatch], columns: &[usize], numbered: bool) -> Result<Vec<Bytes>, ArrowError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut number = 0_u64;
    for batch in rows {
        let arrays: Vec<&ArrayRef> = columns.iter().map(|column| batch.column(*column)).collect();
        for row in 0..batch.num_rows() {
            if numbered {
                text.push_str(&number.to_string());
                number += 1;
            }
            for (at, array) in arrays.iter().enumerate() {
                if at > 0 || numbered {
                    text.push('\t');
                }
                put(&mut text, &cell(array.as_ref(), row)?)?;
            }
            text.push('\n');
            if text.len() >= PIECE {
                pieces.push(Bytes::from(std::mem::take(&mut text)));
            }
        }
    }
    if !text.is_empty() {
        pieces.push(Bytes::from(text));
    }
    Ok(pieces)
}

fn put(text: &mut String, cell: &Cell<'_>) -> Result<(), ArrowError> {
    match cell {
        Cell::Null => text.push_str("\\N"),
        Cell::Bool(value) => text.push(if *value { 't' } else { 'f' }),
        Cell::Int(value) => text.push_str(&value.to_string()),
        Cell::Float(value) => text.push_str(&number(value.to_string())),
        Cell::Double(value) => text.push_str(&number(value.to_string())),
        Cell::Decimal(digits) => text.push_str(digits),
        Cell::Text(value) => escaped(text, value)?,
        Cell::Json(value) => escaped(text, value)?,
        Cell::Binary(bytes) => {
            text.push_str("\\\\x");
            for byte in bytes.as_ref() {
                // Writing into a string cannot fail.
                let _ = write!(text, "{byte:02x}");
            }
        }
        Cell::Date(days) => text.push_str(&date(*days).ok_or_else(|| too_far(i64::from(*days), "days"))?),
        Cell::Timestamp { micros, utc } => {
            text.push_str(&timestamp(*micros, *utc).ok_or_else(|| too_far(*micros, "microseconds"))?);
        }
    }
    Ok(())
}

fn too_far(value: i64, unit: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{value} {unit} since 1970 are no date that PostgreSQL knows"))
}

fn number(text: String) -> String {
    match text.as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        _ => text,
    }
}

fn escaped(text: &mut String, value: &str) -> Result<(), ArrowError> {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0' => {
                let reason = "a text has the character U+0000, which PostgreSQL cannot hold";
                return Err(ArrowError::InvalidArgumentError(reason.to_owned()));
            }
            _ => text.push(letter),
        }
    }
    Ok(())
}

/// The year as PostgreSQL writes it, and what stands at the end of the date.
fn era(year: i32) -> (i32, &'static str) {
    if year > 0 { (year, "") } else { (1 - year, " BC") }
}

fn date(days: i32) -> Option<String> {
    let date = NaiveDate::default().checked_add_signed(chrono::TimeDelta::days(days.into()))?;
    let (year, end) = era(date.year());
    Some(format!("{year:04}-{:02}-{:02}{end}", date.month(), date.day()))
}

fn timestamp(micros: i64, utc: bool) -> Option<String> {
    let time: NaiveDateTime = DateTime::from_timestamp_micros(micros)?.naive_utc();
    let (year, end) = era(time.year());
    let zone = if utc { "+00" } else { "" };
    Some(format!("{year:04}-{}{zone}{end}", time.format("%m-%d %H:%M:%S%.6f")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(cell: Cell<'_>) -> String {
        let mut text = String::new();
        put(&mut text, &cell).unwrap();
        text
    }

    #[test]
    fn values_have_the_form_of_copy() {
        assert_eq!(one(Cell::Null), "\\N");
        assert_eq!(one(Cell::Text("a\tb\\c\nd\\N".into())), "a\\tb\\\\c\\nd\\\\N");
        assert_eq!(one(Cell::Binary([0, 255].as_slice().into())), "\\\\x00ff");
        assert_eq!(one(Cell::Double(f64::NEG_INFINITY)), "-Infinity");
        assert_eq!(one(Cell::Double(f64::NAN)), "NaN");
        assert_eq!(one(Cell::Date(0)), "1970-01-01");
        assert_eq!(one(Cell::Date(-719_893)), "0002-01-01 BC");
        assert_eq!(one(Cell::Timestamp { micros: -1, utc: true }), "1969-12-31 23:59:59.999999+00");
        assert!(put(&mut String::new(), &Cell::Text("\0".into())).is_err());
        assert!(put(&mut String::new(), &Cell::Timestamp { micros: i64::MAX, utc: true }).is_err());
    }
}
