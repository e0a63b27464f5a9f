//! Rows whose columns are known only when the query runs.

use crate::buffers::{Reader, Validity, bit};
use crate::call::Batch;
use crate::error::{CallError, CallResult};
use crate::schema::Field;
use std::fmt::Write;
use std::rc::Rc;

/// One row, whatever its columns are.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyRow {
    names: Rc<[String]>,
    values: Vec<Any>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    /// No value.
    Null,
    /// BOOLEAN.
    Bool(bool),
    /// A whole number of any size and sign.
    Int(i128),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL: the value times 10 to the power of the scale, and the scale.
    Decimal(i128, u32),
    /// STRING.
    Text(String),
    /// BINARY.
    Binary(Vec<u8>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// TIMESTAMP_NTZ: microseconds since 1970-01-01 00:00 by some clock.
    LocalTimestamp(i64),
    /// ARRAY.
    List(Vec<Any>),
    /// STRUCT: names and values.
    Struct(Vec<(String, Any)>),
}

impl AnyRow {
    /// A row of columns and their values; as many of the one as of the other.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Any)>) -> Self {
        let (names, values): (Vec<String>, Vec<Any>) =
            columns.into_iter().map(|(name, value)| (name.into(), value)).unzip();
        Self { names: names.into(), values }
    }

    /// The columns and their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Any)> {
        self.names.iter().map(String::as_str).zip(&self.values)
    }

    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&Any> {
        self.iter().find(|(name, _)| *name == column).map(|(_, value)| value)
    }

    /// Appends the row as a JSON object, nulls and all.
    pub fn write_json(&self, out: &mut String) {
        object(self.iter(), out);
    }
}

impl Any {
    /// Appends the value as JSON: dates and timestamps as ISO 8601, binary in base64, numbers that JSON lacks as strings.
    pub fn write_json(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Null => write!(out, "null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Float(value) if value.is_finite() => write!(out, "{value}"),
            Self::Double(value) if value.is_finite() => write!(out, "{value}"),
            Self::Float(value) => write!(out, "\"{value}\""),
            Self::Double(value) => write!(out, "\"{value}\""),
            Self::Decimal(value, scale) => write!(out, "{}", decimal(*value, *scale)),
            Self::Text(value) => {
                text(value, out);
                Ok(())
            }
            Self::Binary(value) => write!(out, "\"{}\"", base64(value)),
            Self::Date(days) => write!(out, "\"{}\"", date(i64::from(*days))),
            Self::Timestamp(micros) => write!(out, "\"{}Z\"", moment(*micros)),
            Self::LocalTimestamp(micros) => write!(out, "\"{}\"", moment(*micros)),
            Self::List(values) => {
                out.push('[');
                for (place, value) in values.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    value.write_json(out);
                }
                out.push(']');
                Ok(())
            }
            Self::Struct(fields) => {
                object(fields.iter().map(|(name, value)| (name.as_str(), value)), out);
                Ok(())
            }
        };
    }
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a Any)>, out: &mut String) {
    out.push('{');
    for (place, (name, value)) in fields.enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        text(name, out);
        out.push(':');
        value.write_json(out);
    }
    out.push('}');
}

fn text(value: &str, out: &mut String) {
    out.push('"');
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if (letter as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn decimal(value: i128, scale: u32) -> String {
    let digits = format!("{:0>1$}", value.unsigned_abs(), scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let sign = if value < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, place| word << 8 | u32::from(chunk.get(place).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// A day of the Gregorian calendar, by eras of 400 years that begin in March.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn moment(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{}T{hours:02}:{minutes:02}:{seconds:02}", date(days));
    let _ = match fraction {
        0 => Ok(()),
        fraction if fraction % 1000 == 0 => write!(text, ".{:03}", fraction / 1000),
        fraction => write!(text, ".{fraction:06}"),
    };
    text
}

/// The rows of a batch with these columns.
pub(super) fn rows(columns: &[Field], batch: &Batch) -> CallResult<Vec<AnyRow>> {
    let (mut reader, mut nodes) = (batch.reader(), columns.iter());
    let (mut names, mut read) = (Vec::new(), Vec::new());
    while let Some(node) = nodes.next() {
        names.push(node.name.clone());
        read.push(column(node, &mut nodes, batch.rows as usize, &mut reader)?.into_iter());
    }
    let names: Rc<[String]> = names.into();
    let row = |_| AnyRow { names: Rc::clone(&names), values: read.iter_mut().filter_map(Iterator::next).collect() };
    Ok((0..batch.rows).map(row).collect())
}

/// The values of one column and of what is in it.
fn column(
    node: &Field,
    nodes: &mut std::slice::Iter<'_, Field>,
    rows: usize,
    reader: &mut Reader<'_>,
) -> CallResult<Vec<Any>> {
    let validity = reader.validity();
    let values = match &*node.format {
        "+s" => {
            let mut fields = Vec::new();
            for _ in 0..node.children {
                let child = next(node, nodes)?;
                fields.push((child.name.clone(), column(child, nodes, rows, reader)?.into_iter()));
            }
            let row = |_| {
                let field =
                    |(name, values): &mut (String, std::vec::IntoIter<Any>)| Some((name.clone(), values.next()?));
                Any::Struct(fields.iter_mut().filter_map(field).collect())
            };
            (0..rows).map(row).collect()
        }
        "+l" => {
            let offsets = reader.values::<4>();
            let offset = |row: usize| offsets.get(row).map_or(0, |offset| u32::from_le_bytes(*offset) as usize);
            let mut items = column(next(node, nodes)?, nodes, offset(rows), reader)?.into_iter();
            (0..rows).map(|row| Any::List(items.by_ref().take(offset(row + 1) - offset(row)).collect())).collect()
        }
        "b" => {
            let bits = reader.next_buffer();
            (0..rows).map(|row| Any::Bool(bit(bits, row))).collect()
        }
        "u" | "z" => {
            let (offsets, bytes) = (reader.values::<4>(), reader.next_buffer());
            let offset = |row: usize| offsets.get(row).map_or(0, |offset| u32::from_le_bytes(*offset) as usize);
            let value = |row: usize| &bytes[offset(row)..offset(row + 1)];
            let is_text = node.format == "u";
            let any = |row| match is_text {
                true => Any::Text(String::from_utf8_lossy(value(row)).into_owned()),
                false => Any::Binary(value(row).to_vec()),
            };
            (0..rows).map(any).collect()
        }
        format => fixed(format, reader)?,
    };
    Ok(nulled(values, validity))
}

fn next<'f>(of: &Field, nodes: &mut std::slice::Iter<'f, Field>) -> CallResult<&'f Field> {
    nodes.next().ok_or_else(|| CallError::Internal(format!("column `{}` lacks children", of.name)))
}

fn nulled(mut values: Vec<Any>, validity: Validity<'_>) -> Vec<Any> {
    if validity.has_nulls() {
        let nulls = values.iter_mut().enumerate().filter(|(row, _)| !validity.is_valid(*row));
        nulls.for_each(|(_, value)| *value = Any::Null);
    }
    values
}

fn fixed(format: &str, reader: &mut Reader<'_>) -> CallResult<Vec<Any>> {
    fn each<const N: usize>(reader: &mut Reader<'_>, any: impl Fn([u8; N]) -> Any) -> Vec<Any> {
        reader.values::<N>().iter().map(|bytes| any(*bytes)).collect()
    }
    Ok(match format {
        "c" => each(reader, |b| Any::Int(i8::from_le_bytes(b).into())),
        "C" => each(reader, |b| Any::Int(u8::from_le_bytes(b).into())),
        "s" => each(reader, |b| Any::Int(i16::from_le_bytes(b).into())),
        "S" => each(reader, |b| Any::Int(u16::from_le_bytes(b).into())),
        "i" => each(reader, |b| Any::Int(i32::from_le_bytes(b).into())),
        "I" => each(reader, |b| Any::Int(u32::from_le_bytes(b).into())),
        "l" => each(reader, |b| Any::Int(i64::from_le_bytes(b).into())),
        "L" => each(reader, |b| Any::Int(u64::from_le_bytes(b).into())),
        "f" => each(reader, |b| Any::Float(f32::from_le_bytes(b))),
        "g" => each(reader, |b| Any::Double(f64::from_le_bytes(b))),
        "tdD" => each(reader, |b| Any::Date(i32::from_le_bytes(b))),
        "tsu:UTC" => each(reader, |b| Any::Timestamp(i64::from_le_bytes(b))),
        "tsu:" => each(reader, |b| Any::LocalTimestamp(i64::from_le_bytes(b))),
        other => {
            let scale = other.strip_prefix("d:").and_then(|rest| rest.split_once(',')?.1.parse().ok());
            let scale = scale.ok_or_else(|| CallError::Internal(format!("there is no type `{other}`")))?;
            each(reader, |b| Any::Decimal(i128::from_le_bytes(b), scale))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Any) -> String {
        let mut out = String::new();
        value.write_json(&mut out);
        out
    }

    #[test]
    fn values_have_a_form_in_json() {
        let shown = [
            (Any::Int(u64::MAX.into()), "18446744073709551615"),
            (Any::Double(f64::NAN), "\"NaN\""),
            (Any::Double(-0.5), "-0.5"),
            (Any::Decimal(-5, 2), "-0.05"),
            (Any::Decimal(12_345, 0), "12345"),
            (Any::Text("a \"b\"\n\u{1}ü".into()), "\"a \\\"b\\\"\\n\\u0001ü\""),
            (Any::Binary(b"Mill".to_vec()), "\"TWlsbA==\""),
            (Any::Date(-1), "\"1969-12-31\""),
            (Any::Date(19_782), "\"2024-02-29\""),
            (Any::Timestamp(1_700_000_000_123_456), "\"2023-11-14T22:13:20.123456Z\""),
            (Any::Timestamp(-1_000), "\"1969-12-31T23:59:59.999Z\""),
            (Any::LocalTimestamp(0), "\"1970-01-01T00:00:00\""),
            (Any::List(vec![Any::Null, Any::Bool(true)]), "[null,true]"),
            (Any::Struct(vec![("a".into(), Any::Int(1))]), "{\"a\":1}"),
        ];
        for (value, text) in shown {
            assert_eq!(json(&value), text, "{value:?}");
        }
    }

    #[test]
    fn rows_are_read_by_the_columns_that_there_are() {
        let node = |name: &str, format: &str, children| Field {
            name: name.into(),
            format: format.into(),
            nullable: true,
            children,
        };
        let columns =
            [node("n", "l", 0), node("l", "+l", 1), node("item", "u", 0), node("s", "+s", 1), node("b", "b", 0)];
        let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let buffers = vec![
            vec![0b01],
            [7_i64, 0].iter().flat_map(|value| value.to_le_bytes()).collect(),
            vec![],
            words(&[0, 1, 3]),
            vec![],
            words(&[0, 1, 2, 3]),
            b"abc".to_vec(),
            vec![],
            vec![],
            vec![0b10],
        ];
        let read = rows(&columns, &Batch { rows: 2, buffers }).unwrap();
        let mut out = String::new();
        read.iter().for_each(|row| row.write_json(&mut out));
        let expected = r#"{"n":7,"l":["a"],"s":{"b":false}}{"n":null,"l":["b","c"],"s":{"b":true}}"#;
        assert_eq!(out, expected);
        assert_eq!(read[0].get("n"), Some(&Any::Int(7)));
    }
}
