//! Values of JSON as values of columns: which fit which type, and columns built of many.
//!
//! Whatever does not fit is null by itself; its neighbours stay.

use super::super::lists::{list, map, record};
use super::text::{Json, Node};
use super::time;
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, Decimal128Array, Float32Array, Float64Array,
    PrimitiveArray, StringArray, StringBuilder, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Fields, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// Whether a text's value can stand for the whole schema; otherwise the text counts as malformed.
pub(super) fn root_fits(json: &Json<'_>, schema: &DataType) -> bool {
    match (schema, &json.node) {
        (DataType::Struct(_), node) => matches!(node, Node::Object(_)),
        (DataType::List(element), Node::Object(_)) => matches!(element.data_type(), DataType::Struct(_)),
        (DataType::List(_) | DataType::Map(..), Node::Null) => false,
        _ => fits(json, schema),
    }
}

/// Whether a value can be converted. Inside a struct every field fits, since a wrong one is null by itself.
pub(super) fn fits(json: &Json<'_>, data_type: &DataType) -> bool {
    match (&json.node, data_type) {
        (Node::Null, _) => true,
        (Node::Object(_), DataType::Struct(_)) => true,
        (Node::Array(elements), DataType::List(element)) => elements.iter().all(|json| fits(json, element.data_type())),
        (Node::Object(fields), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) => fields.iter().all(|(_, json)| fits(json, pair[1].data_type())),
            _ => false,
        },
        (_, DataType::Struct(_) | DataType::List(_) | DataType::Map(..)) => false,
        (_, DataType::Utf8) => true,
        (node, DataType::Boolean) => matches!(node, Node::Bool(_)),
        (_, DataType::Int8) => integer::<i8>(json).is_some(),
        (_, DataType::Int16) => integer::<i16>(json).is_some(),
        (_, DataType::Int32) => integer::<i32>(json).is_some(),
        (_, DataType::Int64) => integer::<i64>(json).is_some(),
        (_, DataType::Float32 | DataType::Float64) => float(json).is_some(),
        (_, DataType::Decimal128(precision, scale)) => decimal(json, *precision, *scale).is_some(),
        (_, DataType::Date32) => text(json).and_then(time::date).is_some(),
        (_, DataType::Timestamp(..)) => timestamp(json).is_some(),
        (_, DataType::Binary) => text(json).and_then(base64).is_some(),
        _ => false,
    }
}

fn text<'a>(json: &'a Json<'_>) -> Option<&'a str> {
    match &json.node {
        Node::Text(text) => Some(text),
        _ => None,
    }
}

fn integer<T: std::str::FromStr>(json: &Json<'_>) -> Option<T> {
    if json.node == Node::Integer { json.raw.parse().ok() } else { None }
}

fn float(json: &Json<'_>) -> Option<f64> {
    match &json.node {
        Node::Integer | Node::Float => json.raw.parse().ok(),
        Node::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" | "+Infinity" | "INF" | "+INF" => Some(f64::INFINITY),
            "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn timestamp(json: &Json<'_>) -> Option<i64> {
    match &json.node {
        Node::Text(text) => time::timestamp(text),
        Node::Integer => json.raw.parse::<i64>().ok()?.checked_mul(1_000_000),
        _ => None,
    }
}

/// The unscaled number, rounded half up to the scale; `None` when it has more digits than the type.
fn decimal(json: &Json<'_>, precision: u8, scale: i8) -> Option<i128> {
    let text = match &json.node {
        Node::Integer | Node::Float => json.raw,
        Node::Text(text) => text.trim(),
        _ => return None,
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // The digits as one number, which is to be shifted by some places.
    let shift = i64::from(scale) + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let digits: String = whole.chars().chain(fraction.chars()).skip_while(|&c| c == '0').collect();
    let limit = 10_i128.checked_pow(u32::from(precision))?;
    let unscaled = if digits.is_empty() {
        0
    } else if shift >= 0 {
        if digits.len() > 38 || shift > 38 {
            return None;
        }
        digits.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?
    } else {
        let dropped = usize::try_from(-shift).ok()?;
        if dropped > digits.len() {
            0
        } else {
            let (kept, rest) = digits.split_at(digits.len() - dropped);
            let kept: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
            kept + i128::from(rest.starts_with(|c| c >= '5'))
        }
    };
    (unscaled < limit).then_some(if negative { -unscaled } else { unscaled })
}

/// The bytes of a base64 text, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6) | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

fn primitive<T: ArrowPrimitiveType>(
    cells: &[Option<&Json<'_>>],
    convert: impl Fn(&Json<'_>) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    cells.iter().map(|cell| cell.and_then(&convert)).collect()
}

/// A column from the values of its rows; what does not fit is null.
pub(super) fn build(cells: &[Option<&Json<'_>>], data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => {
            let values = cells.iter().map(|cell| match cell.map(|json| &json.node) {
                Some(Node::Bool(value)) => Some(*value),
                _ => None,
            });
            Arc::new(values.collect::<BooleanArray>())
        }
        DataType::Int8 => Arc::new(primitive::<Int8Type>(cells, integer)),
        DataType::Int16 => Arc::new(primitive::<Int16Type>(cells, integer)),
        DataType::Int32 => Arc::new(primitive::<Int32Type>(cells, integer)),
        DataType::Int64 => Arc::new(primitive::<Int64Type>(cells, integer)),
        DataType::Float64 => Arc::new(cells.iter().map(|cell| cell.and_then(float)).collect::<Float64Array>()),
        DataType::Float32 => {
            Arc::new(cells.iter().map(|cell| cell.and_then(float).map(|v| v as f32)).collect::<Float32Array>())
        }
        DataType::Decimal128(precision, scale) => {
            let values = cells.iter().map(|cell| cell.and_then(|json| decimal(json, *precision, *scale)));
            Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Date32 => Arc::new(primitive::<Date32Type>(cells, |json| text(json).and_then(time::date))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(primitive::<TimestampMicrosecondType>(cells, timestamp).with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => {
            let mut texts = StringBuilder::new();
            for cell in cells {
                match cell.map(|json| (&json.node, json.raw)) {
                    None | Some((Node::Null, _)) => texts.append_null(),
                    Some((Node::Text(text), _)) => texts.append_value(text),
                    Some((_, raw)) => texts.append_value(raw),
                }
            }
            Arc::new(texts.finish())
        }
        DataType::Binary => {
            let mut bytes = BinaryBuilder::new();
            cells.iter().for_each(|cell| bytes.append_option(cell.and_then(text).and_then(base64)));
            Arc::new(bytes.finish())
        }
        DataType::Struct(fields) => build_struct(cells, fields)?,
        DataType::List(element) => {
            let whole = |json: &Json<'_>| fits(json, data_type);
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
            let values = build(&inner, element.data_type())?;
            list(values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), data_type)?
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return exec_err!("a map has entries") };
            let (mut names, mut inner) = (Vec::<&str>::new(), Vec::new());
            let (mut offsets, mut valid) = (vec![0_i32], Vec::with_capacity(cells.len()));
            for cell in cells {
                let fields = match cell.filter(|json| fits(json, data_type)).map(|json| &json.node) {
                    Some(Node::Object(fields)) => Some(fields),
                    _ => None,
                };
                valid.push(fields.is_some());
                let first = names.len();
                for (name, value) in fields.into_iter().flatten() {
                    // A name that repeats has its last value.
                    match names[first..].iter().position(|known| known == name) {
                        Some(known) => inner[first + known] = Some(value),
                        None => {
                            names.push(name);
                            inner.push(Some(value));
                        }
                    }
                }
                offsets.push(offset(inner.len())?);
            }
            let values = build(&inner, pair[1].data_type())?;
            let keys: ArrayRef = Arc::new(StringArray::from(names));
            map(keys, values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), data_type)?
        }
        DataType::Null => new_null_array(data_type, cells.len()),
        other => return exec_err!("cannot read a value of type {other} from JSON"),
    })
}

fn build_struct(cells: &[Option<&Json<'_>>], fields: &Fields) -> Result<ArrayRef> {
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
                // A name that repeats has its last value.
                found.and_then(|found| found.iter().rev().find(|(name, _)| name == field.name())).map(|(_, json)| json)
            })
            .collect();
        columns.push(build(&values, field.data_type())?);
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
