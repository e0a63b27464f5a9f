//! Values of JSON as values of columns: which fit which type, and columns built of many.
//!
//! Whatever does not fit is null by itself; its neighbours stay. Only an array with an element that does not fit, and a map
//! with such a value, are null as a whole. Source: Spark's converters of the JSON reader, their accidents included: a TINYINT
//! takes 128 to 255 for negative numbers, as its reader's bytes do.

use super::super::decimals::unscaled;
use super::super::lists::{list, map, record};
use super::options::ReadOptions;
use super::text::{Json, Node, special, write};
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, Decimal128Array, PrimitiveArray, StringArray,
    StringBuilder, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::ops::Add;
use std::str::FromStr;
use std::sync::Arc;

/// Whether a text's value can stand for the whole schema; otherwise the text counts as malformed.
pub(super) fn root_fits(json: &Json<'_>, schema: &DataType, options: &ReadOptions) -> bool {
    match (schema, &json.node) {
        (DataType::Struct(_), node) => matches!(node, Node::Object(_)),
        (DataType::List(element), Node::Object(_)) => matches!(element.data_type(), DataType::Struct(_)),
        (DataType::List(_) | DataType::Map(..), Node::Null) => false,
        _ => fits(json, schema, options),
    }
}

/// Whether a value can be converted. Inside a struct every field fits, since a wrong one is null by itself.
fn fits(json: &Json<'_>, data_type: &DataType, options: &ReadOptions) -> bool {
    match (&json.node, data_type) {
        (Node::Null, _) => true,
        (Node::Object(_), DataType::Struct(_)) => true,
        (Node::Array(elements), DataType::List(element)) => {
            elements.iter().all(|json| fits(json, element.data_type(), options))
        }
        (Node::Object(fields), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) => fields.iter().all(|(_, json)| fits(json, pair[1].data_type(), options)),
            _ => false,
        },
        (_, DataType::Struct(_) | DataType::List(_) | DataType::Map(..)) => false,
        (_, DataType::Utf8 | DataType::Null) => true,
        (node, DataType::Boolean) => matches!(node, Node::Bool(_)),
        (_, DataType::Int8) => byte(json).is_some(),
        (_, DataType::Int16) => integer::<i16>(json).is_some(),
        (_, DataType::Int32) => integer::<i32>(json).is_some(),
        (_, DataType::Int64) => integer::<i64>(json).is_some(),
        (_, DataType::Float32) => float(json, options).is_some(),
        (_, DataType::Float64) => double(json, options).is_some(),
        (_, DataType::Decimal128(precision, scale)) => decimal(json, *precision, *scale).is_some(),
        (_, DataType::Date32) => date(json, options).is_some(),
        (_, DataType::Timestamp(_, Some(_))) => timestamp(json, options).is_some(),
        (_, DataType::Timestamp(_, None)) => local_timestamp(json, options).is_some(),
        (Node::Text(text), DataType::Binary) => base64(text).is_some(),
        _ => false,
    }
}

/// Whether a value and everything in it can be converted.
pub(super) fn fits_inside(json: &Json<'_>, data_type: &DataType, options: &ReadOptions) -> bool {
    match (&json.node, data_type) {
        (Node::Object(found), DataType::Struct(fields)) => fields.iter().all(|field| {
            let values = found.iter().filter(|(name, _)| name == field.name());
            values.into_iter().all(|(_, json)| fits_inside(json, field.data_type(), options))
        }),
        (Node::Array(elements), DataType::List(element)) => {
            elements.iter().all(|json| fits_inside(json, element.data_type(), options))
        }
        (Node::Object(found), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) => found.iter().all(|(_, json)| fits_inside(json, pair[1].data_type(), options)),
            _ => false,
        },
        _ => fits(json, data_type, options),
    }
}

/// A string; an empty one is none where anything else than text is asked for.
fn text<'a>(json: &'a Json<'_>) -> Option<&'a str> {
    match &json.node {
        Node::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn integer<T: FromStr>(json: &Json<'_>) -> Option<T> {
    if json.node == Node::Integer { json.raw.parse().ok() } else { None }
}

fn byte(json: &Json<'_>) -> Option<i8> {
    integer::<i16>(json).filter(|value| (-128..256).contains(value)).map(|value| value as i8)
}

/// The text of a number, so that a whole one has no sign before zero.
fn number<T: FromStr + Add<Output = T> + Default>(json: &Json<'_>) -> Option<T> {
    match json.node {
        // Minus zero plus zero is zero; nothing else changes.
        Node::Integer => json.raw.parse::<T>().ok().map(|value| value + T::default()),
        Node::Float => json.raw.parse().ok(),
        _ => None,
    }
}

fn double(json: &Json<'_>, options: &ReadOptions) -> Option<f64> {
    not_finite(json, options).or_else(|| number(json))
}

fn float(json: &Json<'_>, options: &ReadOptions) -> Option<f32> {
    not_finite(json, options).map(|value| value as f32).or_else(|| number(json))
}

/// A word for a number that is not finite, with quotes or without.
fn not_finite(json: &Json<'_>, options: &ReadOptions) -> Option<f64> {
    match &json.node {
        Node::Float => special(json.raw),
        Node::Text(text) if options.leniency.non_numeric => special(text),
        _ => None,
    }
}

/// Days since 1970; a text may be their number.
fn date(json: &Json<'_>, options: &ReadOptions) -> Option<i32> {
    options.times.date(text(json)?, true)
}

/// Microseconds since 1970. A number is seconds; more of them than fit turn over, as they do in Spark.
fn timestamp(json: &Json<'_>, options: &ReadOptions) -> Option<i64> {
    match integer::<i64>(json) {
        Some(seconds) => Some(seconds.wrapping_mul(1_000_000)),
        None => options.times.instant(text(json)?),
    }
}

/// Microseconds since 1970 of a time without a zone.
fn local_timestamp(json: &Json<'_>, options: &ReadOptions) -> Option<i64> {
    options.times.local(text(json)?)
}

/// The unscaled number of a value.
fn decimal(json: &Json<'_>, precision: u8, scale: i8) -> Option<i128> {
    match &json.node {
        Node::Integer | Node::Float => unscaled(json.raw, precision, scale),
        Node::Text(text) if text.contains(',') => unscaled(&text.replace(',', ""), precision, scale),
        Node::Text(text) => unscaled(text, precision, scale),
        _ => None,
    }
}

/// The bytes of a base64 text in groups of four signs, with blanks between the groups.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut signs = text.bytes();
    while let Some(first) = signs.next() {
        if first <= b' ' {
            continue;
        }
        let mut held = sextet(first)? << 18 | sextet(signs.next()?)? << 12;
        let mut count = 1;
        match signs.next()? {
            // One sign of padding asks for the other.
            b'=' => signs.next().filter(|&sign| sign == b'=').map(drop)?,
            third => {
                held |= sextet(third)? << 6;
                count = 2;
                let fourth = signs.next()?;
                if fourth != b'=' {
                    held |= sextet(fourth)?;
                    count = 3;
                }
            }
        }
        bytes.extend_from_slice(&held.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

/// The six bits of a sign of base64.
fn sextet(sign: u8) -> Option<u32> {
    Some(u32::from(match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

fn primitive<T: ArrowPrimitiveType>(
    cells: &[Option<&Json<'_>>],
    convert: impl Fn(&Json<'_>) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    cells.iter().map(|cell| cell.and_then(&convert)).collect()
}

/// A column from the values of its rows; what does not fit is null.
pub(super) fn build(cells: &[Option<&Json<'_>>], data_type: &DataType, options: &ReadOptions) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => {
            let values = cells.iter().map(|cell| match cell.map(|json| &json.node) {
                Some(Node::Bool(value)) => Some(*value),
                _ => None,
            });
            Arc::new(values.collect::<BooleanArray>())
        }
        DataType::Int8 => Arc::new(primitive::<Int8Type>(cells, byte)),
        DataType::Int16 => Arc::new(primitive::<Int16Type>(cells, integer)),
        DataType::Int32 => Arc::new(primitive::<Int32Type>(cells, integer)),
        DataType::Int64 => Arc::new(primitive::<Int64Type>(cells, integer)),
        DataType::Float64 => Arc::new(primitive::<Float64Type>(cells, |json| double(json, options))),
        DataType::Float32 => Arc::new(primitive::<Float32Type>(cells, |json| float(json, options))),
        DataType::Decimal128(precision, scale) => {
            let values = cells.iter().map(|cell| cell.and_then(|json| decimal(json, *precision, *scale)));
            Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Date32 => Arc::new(primitive::<Date32Type>(cells, |json| date(json, options))),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) => Arc::new(
            primitive::<TimestampMicrosecondType>(cells, |json| timestamp(json, options))
                .with_timezone(Arc::clone(zone)),
        ),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            Arc::new(primitive::<TimestampMicrosecondType>(cells, |json| local_timestamp(json, options)))
        }
        DataType::Utf8 => {
            let (mut texts, mut shown) = (StringBuilder::new(), String::new());
            for cell in cells {
                match cell.map(|json| (&json.node, json)) {
                    None | Some((Node::Null, _)) => texts.append_null(),
                    Some((Node::Text(text), _)) => texts.append_value(text),
                    // Anything else is written anew.
                    Some((_, json)) => {
                        shown.clear();
                        write(json, &mut shown);
                        texts.append_value(&shown);
                    }
                }
            }
            Arc::new(texts.finish())
        }
        DataType::Binary => {
            let mut bytes = BinaryBuilder::new();
            for cell in cells {
                bytes.append_option(cell.and_then(|json| match &json.node {
                    Node::Text(text) => base64(text),
                    _ => None,
                }));
            }
            Arc::new(bytes.finish())
        }
        DataType::Struct(fields) => build_struct(cells, fields, options)?,
        DataType::List(element) => {
            let whole = |json: &Json<'_>| fits(json, data_type, options);
            let mut inner = Vec::new();
            let (mut offsets, mut valid) = (vec![0_i32], Vec::with_capacity(cells.len()));
            for cell in cells {
                let elements = match cell.filter(|json| whole(json)).map(|json| &json.node) {
                    Some(Node::Array(elements)) => Some(elements),
                    _ => None,
                };
                valid.push(elements.is_some());
                inner.extend(elements.into_iter().flatten().map(Some));
                offsets.push(offset(inner.len())?);
            }
            let values = build(&inner, element.data_type(), options)?;
            list(values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), data_type)?
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return exec_err!("a map has entries") };
            let (mut names, mut inner) = (Vec::<&str>::new(), Vec::new());
            let (mut offsets, mut valid) = (vec![0_i32], Vec::with_capacity(cells.len()));
            for cell in cells {
                let fields = match cell.filter(|json| fits(json, data_type, options)).map(|json| &json.node) {
                    Some(Node::Object(fields)) => Some(fields),
                    _ => None,
                };
                valid.push(fields.is_some());
                // A name that repeats is there as often, as in Spark.
                for (name, value) in fields.into_iter().flatten() {
                    names.push(name);
                    inner.push(Some(value));
                }
                offsets.push(offset(inner.len())?);
            }
            let values = build(&inner, pair[1].data_type(), options)?;
            let keys: ArrayRef = Arc::new(StringArray::from(names));
            map(keys, values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), data_type)?
        }
        DataType::Null => new_null_array(data_type, cells.len()),
        other => return exec_err!("cannot read a value of type {other} from JSON"),
    })
}

fn build_struct(cells: &[Option<&Json<'_>>], fields: &Fields, options: &ReadOptions) -> Result<ArrayRef> {
    let objects: Vec<_> = cells
        .iter()
        .map(|cell| match cell.map(|json| &json.node) {
            Some(Node::Object(found)) => Some(found),
            _ => None,
        })
        .collect();
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let values: Vec<_> = objects
            .iter()
            .map(|found| {
                // A name that repeats has the last value that fits.
                let mut named = (*found)?.iter().rev().filter(|(name, _)| name == field.name()).map(|(_, json)| json);
                let last = named.next()?;
                let Some(earlier) = named.next() else { return Some(last) };
                let mut all = [last, earlier].into_iter().chain(named);
                all.find(|json| fits(json, field.data_type(), options)).or(Some(last))
            })
            .collect();
        columns.push(build(&values, field.data_type(), options)?);
    }
    let valid = objects.iter().map(Option::is_some).collect();
    record(fields, columns, nulls(valid), cells.len())
}

fn nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    valid.contains(&false).then(|| NullBuffer::from(valid))
}

fn offset(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| {
        exec_datafusion_err!("[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} elements", i32::MAX)
    })
}
