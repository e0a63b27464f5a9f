//! One JSON value into one column, and one object into one row, as the schema asks.
//!
//! A value that does not fit leaves its field null and the row partial; a syntax error spoils the whole
//! record. An array with an element that does not fit, and a map with such a value, do not fit as a whole;
//! a struct keeps the fields that fit.

use super::scanner::{Malformed, Scanner, Token};
use crate::decode::base64;
use crate::decode::column::{Column, Values};
use crate::decode::scalar;
use arrow::datatypes::Fields;
use std::borrow::Cow;

/// Why a value was not appended.
pub(super) enum Refusal {
    /// The text is no JSON: the record is spoilt.
    Malformed,
    /// It is JSON, but not of the column's type: the field is null.
    Mismatch,
}

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// How well a value fitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Whole,
    /// Something inside is null because it did not fit.
    Partial,
}

impl Fit {
    fn and(self, other: Self) -> Self {
        if self == Self::Whole { other } else { self }
    }
}

/// Where the names of an object's fields stand among the columns.
pub(super) struct Names<'a> {
    names: Vec<Option<&'a str>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(fields: &'a Fields) -> Self {
        Self { names: fields.iter().map(|field| Some(field.name().as_str())).collect() }
    }

    /// Hides a column from the objects.
    pub(super) fn hide(mut self, column: Option<usize>) -> Self {
        if let Some(column) = column {
            self.names[column] = None;
        }
        self
    }

    /// The column of a name; looks from `guess` on, because objects tend to keep one order.
    fn find(&self, name: &[u8], guess: usize) -> Option<usize> {
        let count = self.names.len();
        (0..count).map(|step| (guess + step) % count).find(|at| self.names[*at].is_some_and(|n| n.as_bytes() == name))
    }
}

/// Appends the object whose opening bracket was taken as one row over `columns`, which have `row` rows.
pub(super) fn push_object(
    scanner: &mut Scanner<'_>,
    names: &Names<'_>,
    columns: &mut [Column],
    row: usize,
) -> Result<Fit, Malformed> {
    let (mut fit, mut first, mut guess) = (Fit::Whole, true, 0);
    while scanner.next_element(&mut first, b'}')? {
        let name = scanner.name()?;
        let Some(at) = names.find(&name, guess) else {
            scanner.skip()?;
            continue;
        };
        guess = at + 1;
        let start = scanner.position();
        let again = columns[at].len() > row;
        match push_value(scanner, &mut columns[at]) {
            Ok(found) => {
                fit = fit.and(found);
                if again {
                    // The last of equal names wins: take the earlier value out, and read the later one in its place.
                    columns[at].truncate(row);
                    scanner.rewind(start);
                    if let Err(Refusal::Malformed) = push_value(scanner, &mut columns[at]) {
                        return Err(Malformed);
                    }
                }
            }
            Err(Refusal::Malformed) => return Err(Malformed),
            Err(Refusal::Mismatch) => {
                fit = Fit::Partial;
                columns[at].truncate(row + usize::from(again));
                scanner.rewind(start);
                scanner.skip()?;
            }
        }
    }
    for column in columns.iter_mut().filter(|column| column.len() == row) {
        column.push_null();
    }
    Ok(fit)
}

/// Appends one value. After a refusal the column may hold an unfinished value: cut it back.
pub(super) fn push_value(scanner: &mut Scanner<'_>, column: &mut Column) -> Result<Fit, Refusal> {
    scanner.peek();
    let start = scanner.position();
    let token = scanner.token()?;
    if token == Token::Null {
        column.push_null();
        return Ok(Fit::Whole);
    }
    let mut fit = Fit::Whole;
    let row = column.len();
    match (&mut column.values, token) {
        (Values::Text(bytes), Token::Text(text)) => bytes.push(lossy(&text).as_bytes()),
        (Values::Text(bytes), token) => {
            if matches!(token, Token::ObjectStart | Token::ArrayStart) {
                scanner.rewind(start);
                scanner.skip()?;
            }
            bytes.push(lossy(scanner.since(start)).as_bytes());
        }
        (Values::Bool(values), Token::Bool(value)) => values.push(value),
        (Values::I8(values), Token::Integer(text)) => values.push(number(text)?),
        (Values::I16(values), Token::Integer(text)) => values.push(number(text)?),
        (Values::I32(values), Token::Integer(text)) => values.push(number(text)?),
        (Values::I64(values), Token::Integer(text)) => values.push(number(text)?),
        (Values::F32(values), Token::NotFinite(value)) => values.push(value as f32),
        (Values::F64(values), Token::NotFinite(value)) => values.push(value),
        (Values::F32(values), Token::Integer(text) | Token::Number(text)) => values.push(number(text)?),
        (Values::F64(values), Token::Integer(text) | Token::Number(text)) => values.push(number(text)?),
        (Values::F32(values), Token::Text(text)) => values.push(special(&text)? as f32),
        (Values::F64(values), Token::Text(text)) => values.push(special(&text)?),
        (Values::Decimal { values, precision, scale }, Token::Integer(text) | Token::Number(text)) => {
            values.push(scalar::parse_decimal(text, *precision, *scale).ok_or(Refusal::Mismatch)?);
        }
        (Values::Decimal { values, precision, scale }, Token::Text(text)) => {
            values.push(scalar::parse_decimal(utf8(&text)?, *precision, *scale).ok_or(Refusal::Mismatch)?);
        }
        (Values::Binary(bytes), Token::Text(text)) => bytes.push(&base64::decode(&text).ok_or(Refusal::Mismatch)?),
        (Values::Date(values), Token::Text(text)) => {
            values.push(scalar::parse_date(utf8(&text)?).ok_or(Refusal::Mismatch)?);
        }
        (Values::Timestamp { values, zone: Some(_) }, Token::Text(text)) => {
            values.push(scalar::parse_timestamp(utf8(&text)?).ok_or(Refusal::Mismatch)?);
        }
        (Values::Timestamp { values, zone: None }, Token::Text(text)) => {
            values.push(scalar::parse_timestamp_ntz(utf8(&text)?).ok_or(Refusal::Mismatch)?);
        }
        (Values::Timestamp { values, zone: Some(_) }, Token::Integer(text)) => {
            values.push(number::<i64>(text)?.checked_mul(1_000_000).ok_or(Refusal::Mismatch)?);
        }
        (Values::List { offsets, items, .. }, Token::ArrayStart) => {
            let mut first = true;
            while scanner.next_element(&mut first, b']')? {
                fit = fit.and(push_value(scanner, items)?);
            }
            offsets.push(items.len() as i32);
        }
        (Values::Map { offsets, keys, values, .. }, Token::ObjectStart) => {
            let mut first = true;
            while scanner.next_element(&mut first, b'}')? {
                keys.push(lossy(&scanner.name()?).as_bytes());
                fit = fit.and(push_value(scanner, values)?);
            }
            offsets.push(keys.len() as i32);
        }
        (Values::Struct { fields, children }, Token::ObjectStart) => {
            fit = push_object(scanner, &Names::of(fields), children, row)?;
        }
        (Values::Nothing, _) => {
            scanner.rewind(start);
            scanner.skip()?;
            column.push_null();
            return Ok(Fit::Whole);
        }
        _ => return Err(Refusal::Mismatch),
    }
    column.seal();
    Ok(fit)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::Mismatch)
}

fn special(text: &[u8]) -> Result<f64, Refusal> {
    scalar::special_double(utf8(text)?).ok_or(Refusal::Mismatch)
}

fn utf8(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map_err(|_| Refusal::Mismatch)
}

/// Text with bytes that are no UTF-8 replaced.
pub(super) fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}
