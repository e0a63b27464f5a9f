//! `from_json(text, schema[, options])`: a JSON text as a typed value.
//!
//! Permissive, as Spark is: a field whose value does not fit its type is null and the others stay; a malformed text
//! gives a struct of nulls, or null where the schema is an array or a map; an empty text gives null. With the
//! option `mode` = `FAILFAST`, a malformed text fails the query. A field `_corrupt_record STRING` in the schema takes
//! each text that was not understood in full. Names are compared with their case.
//!
//! The texts of a batch are read one by one; the columns are then built field by field over all rows.

use std::sync::Arc;

use super::super::coercion::mismatch;
use super::super::function::{Call, Definition};
use super::super::lists::{list, map, record};
use super::text::{Json, Node, parse};
use super::time;
use crate::ddl::parse_type_or_columns;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, BooleanArray, Decimal128Array, Float32Array,
    Float64Array, PrimitiveArray, StringArray, StringBuilder, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Field, Fields, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_datafusion_err};

/// The field that takes the texts that were not understood.
const CORRUPT_RECORD: &str = "_corrupt_record";

/// What stands for a malformed text; told from others by its address.
static NOTHING: &str = "{}";

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "from_json",
        aliases: &[],
        arguments: (2, 3),
        coerce,
        result,
        may_be_null: true,
        never_null: false,
        run,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let mut coerced = vec![DataType::Utf8; types.len()];
    if let Some(options) = types.get(2) {
        if !matches!(options, DataType::Map(..)) {
            return mismatch(name, "a map of options", options);
        }
        coerced[2] = options.clone();
    }
    Ok(coerced)
}

fn result(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let Some(schema) = constants.get(1).copied().flatten().and_then(|c| c.try_as_str().flatten()) else {
        return mismatch(name, "a constant schema", &types[1]);
    };
    let schema =
        parse_type_or_columns(schema).map_err(|error| plan_datafusion_err!("[INVALID_SCHEMA] `{name}`: {error}"))?;
    supported(name, &schema)?;
    Ok(nullable(&schema))
}

fn supported(name: &str, schema: &DataType) -> Result<()> {
    match schema {
        DataType::Struct(fields) => fields.iter().try_for_each(|field| supported(name, field.data_type())),
        DataType::List(element) => supported(name, element.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && pair[0].data_type() == &DataType::Utf8 => {
                supported(name, pair[1].data_type())
            }
            _ => mismatch(name, "maps with STRING keys", schema),
        },
        DataType::Interval(_) | DataType::Duration(_) => mismatch(name, "types that JSON has", schema),
        _ => Ok(()),
    }
}

/// The same type with every field nullable: texts promise nothing.
fn nullable(schema: &DataType) -> DataType {
    match schema {
        DataType::Struct(fields) => DataType::Struct(
            fields.iter().map(|field| Field::new(field.name(), nullable(field.data_type()), true)).collect(),
        ),
        DataType::List(element) => super::super::coercion::list_of(nullable(element.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => super::super::coercion::map_of(DataType::Utf8, nullable(pair[1].data_type())),
            other => other.clone(),
        },
        other => other.clone(),
    }
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let fail_fast = match args.get(2) {
        Some(options) if !options.is_empty() => mode_is_fail_fast(options)?,
        _ => false,
    };
    let texts = args[0].as_string::<i32>();
    let missing = Json { node: Node::Object(Vec::new()), raw: NOTHING };
    let mut parsed = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        if texts.is_null(row) || texts.value(row).trim().is_empty() {
            parsed.push(None);
            continue;
        }
        let json = parse(texts.value(row)).filter(|json| root_fits(json, call.output));
        if json.is_none() && fail_fast {
            return exec_err!(
                "[MALFORMED_RECORD_IN_PARSING] `{}` cannot read the JSON text in mode FAILFAST: {}",
                call.name,
                texts.value(row).chars().take(200).collect::<String>()
            );
        }
        parsed.push(match (json, call.output) {
            (None, DataType::Struct(_)) => Some(missing.clone()),
            // One object where an array is asked for is an array of one.
            (Some(json), DataType::List(_)) if matches!(json.node, Node::Object(_)) => {
                let raw = json.raw;
                Some(Json { node: Node::Array(vec![json]), raw })
            }
            (json, _) => json,
        });
    }
    let cells: Vec<Option<&Json<'_>>> = parsed.iter().map(Option::as_ref).collect();
    let built = build(&cells, call.output)?;
    with_corrupt_records(built, texts, &cells)
}

/// Puts each text that was not understood in full into the field `_corrupt_record`, if the schema has one.
fn with_corrupt_records(built: ArrayRef, texts: &StringArray, cells: &[Option<&Json<'_>>]) -> Result<ArrayRef> {
    let DataType::Struct(fields) = built.data_type() else { return Ok(built) };
    let is_place = |field: &Arc<Field>| field.name() == CORRUPT_RECORD && field.data_type() == &DataType::Utf8;
    let Some(place) = fields.iter().position(is_place) else { return Ok(built) };
    let wanted: Fields = fields.iter().filter(|field| !is_place(field)).cloned().collect();
    let wanted = DataType::Struct(wanted);
    let corrupt: StringArray = cells
        .iter()
        .enumerate()
        .map(|(row, cell)| {
            // A malformed text was replaced by an object that is not written in it.
            let understood = cell.is_none_or(|json| !std::ptr::eq(json.raw, NOTHING) && fits_inside(json, &wanted));
            (!understood).then(|| texts.value(row))
        })
        .collect();
    let records = built.as_struct();
    let mut columns = records.columns().to_vec();
    columns[place] = Arc::new(corrupt);
    record(fields, columns, records.nulls().cloned(), built.len())
}

/// Whether a value and everything in it can be converted.
fn fits_inside(json: &Json<'_>, data_type: &DataType) -> bool {
    match (&json.node, data_type) {
        (Node::Object(found), DataType::Struct(fields)) => fields.iter().all(|field| {
            found.iter().filter(|(name, _)| name == field.name()).all(|(_, json)| fits_inside(json, field.data_type()))
        }),
        (Node::Array(elements), DataType::List(element)) => {
            elements.iter().all(|json| fits_inside(json, element.data_type()))
        }
        _ => fits(json, data_type),
    }
}

fn mode_is_fail_fast(options: &ArrayRef) -> Result<bool> {
    let map = options.as_map().value(0);
    let (keys, values) = (cast(map.column(0), &DataType::Utf8)?, cast(map.column(1), &DataType::Utf8)?);
    let mut fail_fast = false;
    for (key, value) in keys.as_string::<i32>().iter().zip(values.as_string::<i32>()) {
        match (key.unwrap_or_default().to_ascii_lowercase().as_str(), value.unwrap_or_default()) {
            ("mode", mode) if mode.eq_ignore_ascii_case("FAILFAST") => fail_fast = true,
            ("mode", mode) if mode.eq_ignore_ascii_case("PERMISSIVE") => fail_fast = false,
            (key, value) => {
                return exec_err!(
                    "[INVALID_OPTIONS] `from_json` does not know the option `{key}` = `{value}`; it knows mode = PERMISSIVE or FAILFAST"
                );
            }
        }
    }
    Ok(fail_fast)
}

/// Whether a text's value can stand for the whole schema; otherwise the text counts as malformed.
fn root_fits(json: &Json<'_>, schema: &DataType) -> bool {
    match (schema, &json.node) {
        (DataType::Struct(_), node) => matches!(node, Node::Object(_)),
        (DataType::List(element), Node::Object(_)) => matches!(element.data_type(), DataType::Struct(_)),
        (DataType::List(_) | DataType::Map(..), Node::Null) => false,
        _ => fits(json, schema),
    }
}

/// Whether a value can be converted. Inside a struct every field fits, since a wrong one is null by itself.
fn fits(json: &Json<'_>, data_type: &DataType) -> bool {
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
fn build(cells: &[Option<&Json<'_>>], data_type: &DataType) -> Result<ArrayRef> {
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
