//! Columns of many messages, field by field.

use super::super::lists::{list, map, record};
use super::shape::{Holds, Member, Record, Shape};
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, Decimal128Array, PrimitiveArray, StringBuilder,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use prost_reflect::{DynamicMessage, FieldDescriptor, SerializeOptions, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// A message of a row.
#[derive(Clone, Copy)]
pub(super) enum Cell<'a> {
    /// NULL.
    Null,
    /// A struct of nulls: what was there is malformed.
    Malformed,
    /// A message.
    Message(&'a DynamicMessage),
}

/// The structs of the rows.
///
/// # Errors
/// When a value has no counterpart: a time outside of the range, an unknown message in an `Any`.
pub(super) fn records(cells: &[Cell<'_>], shape: &Record) -> Result<ArrayRef> {
    let columns = if shape.fields.is_empty() {
        vec![new_null_array(&DataType::Utf8, cells.len())]
    } else {
        shape.fields.iter().map(|member| column(cells, member)).collect::<Result<_>>()?
    };
    let valid = cells.iter().map(|cell| !matches!(cell, Cell::Null)).collect();
    record(&shape.columns(), columns, nulls(valid), cells.len())
}

fn column(cells: &[Cell<'_>], member: &Member) -> Result<ArrayRef> {
    let default = member.has_default.then(|| member.field.default_value());
    let values: Vec<Option<&Value>> = cells
        .iter()
        .map(|cell| match cell {
            Cell::Message(message) => value_in(message, &member.field).or(default.as_ref()),
            Cell::Null | Cell::Malformed => None,
        })
        .collect();
    match &member.holds {
        Holds::One(shape) => build(&values, shape),
        Holds::Many(shape) => lists(&values, shape),
        Holds::Map(key, value) => maps(&values, key, value),
    }
}

/// The value of a field that the message has.
fn value_in<'a>(message: &'a DynamicMessage, field: &FieldDescriptor) -> Option<&'a Value> {
    match message.get_field(field) {
        Cow::Borrowed(value) if message.has_field(field) => Some(value),
        _ => None,
    }
}

fn lists(values: &[Option<&Value>], shape: &Shape) -> Result<ArrayRef> {
    let mut inner = Vec::new();
    let (mut offsets, mut valid) = (vec![0_i32], Vec::with_capacity(values.len()));
    for value in values {
        let elements = value.and_then(Value::as_list);
        valid.push(elements.is_some());
        inner.extend(elements.into_iter().flatten().map(Some));
        offsets.push(offset(inner.len())?);
    }
    let built = build(&inner, shape)?;
    let output = super::super::coercion::list_of(shape.data_type());
    list(built, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), &output)
}

/// Entries stand in the order of their keys: what was read does not keep the order in which they were written.
fn maps(values: &[Option<&Value>], key: &Shape, value: &Shape) -> Result<ArrayRef> {
    let (mut keys, mut inner) = (Vec::new(), Vec::new());
    let (mut offsets, mut valid) = (vec![0_i32], Vec::with_capacity(values.len()));
    for found in values {
        let entries = found.and_then(Value::as_map);
        valid.push(entries.is_some());
        let mut entries: Vec<_> = entries.into_iter().flatten().collect();
        entries.sort_by_key(|(key, _)| *key);
        for (key, value) in entries {
            keys.push(Value::from(key.clone()));
            inner.push(Some(value));
        }
        offsets.push(offset(inner.len())?);
    }
    let keys: Vec<Option<&Value>> = keys.iter().map(Some).collect();
    let output = super::super::coercion::map_of(key.data_type(), value.data_type());
    let (keys, inner) = (build(&keys, key)?, build(&inner, value)?);
    map(keys, inner, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls(valid), &output)
}

fn build(values: &[Option<&Value>], shape: &Shape) -> Result<ArrayRef> {
    Ok(match shape {
        Shape::Plain(data_type) => plain(values, data_type)?,
        Shape::Name(names) => {
            let mut texts = StringBuilder::new();
            for value in values {
                match value.and_then(Value::as_enum_number) {
                    None => texts.append_null(),
                    Some(number) => match names.get_value(number) {
                        Some(name) => texts.append_value(name.name()),
                        // As Java names what the definition does not have.
                        None => texts.append_value(format!("UNKNOWN_ENUM_VALUE_{}_{number}", names.name())),
                    },
                }
            }
            Arc::new(texts.finish())
        }
        Shape::Timestamp => Arc::new(time::<TimestampMicrosecondType>(values)?.with_timezone("UTC")),
        Shape::Duration => Arc::new(time::<DurationMicrosecondType>(values)?),
        Shape::AnyAsJson { defaults } => {
            let mut texts = StringBuilder::new();
            for value in values {
                texts.append_option(value.and_then(Value::as_message).map(|any| json(any, *defaults)).transpose()?);
            }
            Arc::new(texts.finish())
        }
        Shape::Wrapped(shape, field) => {
            let default = field.default_value();
            let inner: Vec<Option<&Value>> = values
                .iter()
                .map(|value| {
                    value.and_then(Value::as_message).map(|message| value_in(message, field).unwrap_or(&default))
                })
                .collect();
            build(&inner, shape)?
        }
        Shape::Record(record) => {
            let cells: Vec<Cell<'_>> = values
                .iter()
                .map(|value| value.and_then(Value::as_message).map_or(Cell::Null, Cell::Message))
                .collect();
            records(&cells, record)?
        }
    })
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[Option<&Value>],
    convert: impl Fn(&Value) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    values.iter().map(|value| value.and_then(&convert)).collect()
}

/// Values whose type says all. Numbers without sign keep their bits, as Java has them, where the type is of the same size.
fn plain(values: &[Option<&Value>], data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.and_then(Value::as_bool)).collect::<BooleanArray>())
        }
        DataType::Int32 => Arc::new(primitive::<Int32Type>(values, |value| match value {
            Value::I32(number) | Value::EnumNumber(number) => Some(*number),
            Value::U32(number) => Some(number.cast_signed()),
            _ => None,
        })),
        DataType::Int64 => Arc::new(primitive::<Int64Type>(values, |value| match value {
            Value::I64(number) => Some(*number),
            Value::U64(number) => Some(number.cast_signed()),
            Value::U32(number) => Some(i64::from(*number)),
            _ => None,
        })),
        DataType::Decimal128(precision, scale) => {
            let numbers = values.iter().map(|value| value.and_then(Value::as_u64).map(i128::from));
            Arc::new(numbers.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Float32 => Arc::new(primitive::<Float32Type>(values, Value::as_f32)),
        DataType::Float64 => Arc::new(primitive::<Float64Type>(values, Value::as_f64)),
        DataType::Utf8 => {
            let mut texts = StringBuilder::new();
            values.iter().for_each(|value| texts.append_option(value.and_then(Value::as_str)));
            Arc::new(texts.finish())
        }
        DataType::Binary => {
            let mut bytes = BinaryBuilder::new();
            values.iter().for_each(|value| bytes.append_option(value.and_then(Value::as_bytes)));
            Arc::new(bytes.finish())
        }
        other => return exec_err!("no field of a message is read as {other}"),
    })
}

/// Seconds and nanoseconds as microseconds.
fn time<T: ArrowPrimitiveType<Native = i64>>(values: &[Option<&Value>]) -> Result<PrimitiveArray<T>> {
    let micros = |message: &DynamicMessage| {
        let seconds = message.get_field_by_number(1).and_then(|value| value.as_i64()).unwrap_or(0);
        let nanos = message.get_field_by_number(2).and_then(|value| value.as_i32()).unwrap_or(0);
        let micros = seconds.checked_mul(1_000_000)?;
        micros.checked_add(i64::from(nanos / 1_000))
    };
    let converted = values.iter().map(|value| match value.and_then(Value::as_message) {
        None => Ok(None),
        Some(message) => micros(message)
            .map(Some)
            .ok_or_else(|| exec_datafusion_err!("a time lies outside of the range of its type")),
    });
    converted.collect()
}

/// The JSON of a message of any type, which must be in the descriptor set.
fn json(message: &DynamicMessage, defaults: bool) -> Result<String> {
    let options = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(!defaults);
    let mut text = Vec::new();
    message
        .serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options)
        .map_err(|error| exec_datafusion_err!("a message in an Any cannot become JSON: {error}"))?;
    String::from_utf8(text).map_err(|_| exec_datafusion_err!("a message in an Any is not text in JSON"))
}

fn nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    valid.contains(&false).then(|| NullBuffer::from(valid))
}

fn offset(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| {
        exec_datafusion_err!("[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} elements", i32::MAX)
    })
}
