//! CAST and TRY_CAST for every pair of types.
//!
//! [`cast_array`] is the kernel; [`udf::SparkCast`] is the expression that carries it through a plan. The analyzer
//! rule puts it where SQL or the DataFrame API has a cast, and where types must be brought together; casts that can
//! neither fail nor mean anything else than Arrow's ([`is_plain`]) stay native, so that the optimiser sees them.

pub(crate) mod calendar;
mod from_text;
pub(crate) mod functions;
mod number;
pub(crate) mod text_in;
pub(crate) mod text_out;
pub(crate) mod udf;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, FieldRef, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::common_type::{digits, is_binary, is_string, timestamp};
use super::fault::{Mode, cast_overflow, fault};
use super::type_name::shown_type;
use calendar::MICROS_PER_DAY;

type Kernel = Result<ArrayRef, ArrowError>;

/// What a cast needs to know besides the types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// What a value that cannot be cast gives.
    pub(crate) mode: Mode,
    /// Whether ANSI is on: decides about wrapping and accepted texts, also for `try_cast`.
    pub(crate) ansi: bool,
    /// The batch's day, for times without a date.
    pub(crate) today: i64,
}

/// Whether Arrow's cast has Spark's meaning and cannot fail.
pub(crate) fn is_plain(from: &DataType, to: &DataType) -> bool {
    if from == to || from.is_null() {
        return true;
    }
    let signed = |t: &DataType| matches!(t, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
    match (from, to) {
        (l, r) if signed(l) && signed(r) => l.primitive_width() <= r.primitive_width(),
        (l, DataType::Float32 | DataType::Float64) if signed(l) => true,
        (DataType::Float32, DataType::Float64) => true,
        (DataType::Boolean, t) => signed(t),
        (l, r) if is_string(l) && is_string(r) => true,
        (l, r) if is_binary(l) && is_binary(r) => true,
        (l, DataType::Decimal128(precision, scale)) => digits(l).is_some_and(|(p, s)| {
            (signed(l) || matches!(l, DataType::Decimal128(..)))
                && *scale >= s
                && i32::from(*precision) - i32::from(*scale) >= i32::from(p) - i32::from(s)
        }),
        (DataType::Timestamp(TimeUnit::Microsecond, _), DataType::Timestamp(TimeUnit::Microsecond, _)) => true,
        _ => false,
    }
}

/// Whether Spark knows the cast at all.
pub(crate) fn can_cast(from: &DataType, to: &DataType, ansi: bool) -> bool {
    let simple = |t: &DataType| t.is_numeric() || is_string(t) || *t == DataType::Boolean;
    match (from, to) {
        (l, r) if l == r || l.is_null() || is_string(r) => true,
        (l, r) if simple(l) && simple(r) => true,
        (l, DataType::Date32) => is_string(l) || matches!(l, DataType::Timestamp(..) | DataType::Date64),
        (l, DataType::Timestamp(..)) => {
            simple(l) && (!ansi || *l != DataType::Boolean) || matches!(l, DataType::Timestamp(..) | DataType::Date32)
        }
        (DataType::Timestamp(..), r) => (r.is_numeric()) || (!ansi && *r == DataType::Boolean),
        (DataType::Date32, _) => false,
        (l, r) if is_binary(r) => is_string(l) || is_binary(l) || l.is_integer() && !ansi,
        (DataType::List(l) | DataType::LargeList(l) | DataType::FixedSizeList(l, _), DataType::List(r)) => {
            can_cast(l.data_type(), r.data_type(), ansi)
        }
        (DataType::Map(l, _), DataType::Map(r, _)) => can_cast(l.data_type(), r.data_type(), ansi),
        (DataType::Struct(l), DataType::Struct(r)) => {
            l.len() == r.len() && l.iter().zip(r.iter()).all(|(l, r)| can_cast(l.data_type(), r.data_type(), ansi))
        }
        (l, r) => !l.is_nested() && !r.is_nested() && arrow::compute::can_cast_types(l, r),
    }
}

/// Casts every value.
pub(crate) fn cast_array(array: &ArrayRef, to: &DataType, rules: Rules) -> Kernel {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    if from.is_null() {
        return Ok(new_null_array(to, array.len()));
    }
    match (from, to) {
        (DataType::LargeUtf8 | DataType::Utf8View, _) => cast_array(&cast(array, &DataType::Utf8)?, to, rules),
        (DataType::Dictionary(_, value), _) => cast_array(&cast(array, value)?, to, rules),
        (_, DataType::LargeUtf8 | DataType::Utf8View) => cast(&cast_array(array, &DataType::Utf8, rules)?, to),
        (_, DataType::Utf8) => Ok(Arc::new(text_out::text_array(array)?)),
        (DataType::Utf8, DataType::LargeBinary | DataType::BinaryView) => cast(array, to),
        (DataType::Utf8, DataType::Binary) => Ok(Arc::new(BinaryArray::from(array.as_string::<i32>().clone()))),
        (DataType::Utf8, _) => from_text::cast_text(array.as_string::<i32>(), to, rules),
        _ if is_plain(from, to) => cast(array, to),
        (DataType::Timestamp(unit, _), DataType::Timestamp(..)) if *unit != TimeUnit::Microsecond => cast(array, to),
        (DataType::Date32, DataType::Timestamp(..)) => days_to_timestamp(array, to, rules),
        (DataType::Timestamp(TimeUnit::Microsecond, _), DataType::Date32) => {
            let days = |micros: i64| micros.div_euclid(MICROS_PER_DAY) as i32;
            Ok(Arc::new(array.as_primitive::<TimestampMicrosecondType>().unary::<_, Date32Type>(days)))
        }
        (DataType::Timestamp(unit, zone), _) if *unit != TimeUnit::Microsecond => {
            let micros = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            cast_array(&micros, to, rules)
        }
        (DataType::Timestamp(..), _) => number::from_timestamp(array, to, rules),
        (_, DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            let micros = number::to_timestamp(array, rules)?;
            Ok(Arc::new(micros.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(zone.clone())))
        }
        (_, DataType::Timestamp(..)) => cast(&cast_array(array, &timestamp(), rules)?, to),
        (l, r) if (l.is_numeric() || *l == DataType::Boolean) && (r.is_numeric() || *r == DataType::Boolean) => {
            number::cast_number(array, to, rules)
        }
        (l, DataType::Binary) if l.is_integer() => integer_bytes(array),
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = cast_array(list.values(), item.data_type(), rules)?;
            Ok(Arc::new(ListArray::try_new(
                nullable(item, &values),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            )?))
        }
        (DataType::LargeList(item) | DataType::FixedSizeList(item, _), DataType::List(_)) => {
            cast_array(&cast(array, &DataType::List(Arc::clone(item)))?, to, rules)
        }
        (DataType::Struct(_), DataType::Struct(_)) => Ok(Arc::new(cast_struct(array.as_struct(), to, rules)?)),
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let map = array.as_map();
            let inner = cast_struct(map.entries(), entries.data_type(), rules)?;
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                inner,
                map.nulls().cloned(),
                *sorted,
            )?))
        }
        _ => cast(array, to),
    }
}

fn cast_struct(from: &StructArray, to: &DataType, rules: Rules) -> Result<StructArray, ArrowError> {
    let DataType::Struct(fields) = to else {
        return Err(fault(format!("a struct cannot be cast to {}", shown_type(to))));
    };
    let columns: Result<Vec<ArrayRef>, ArrowError> = from
        .columns()
        .iter()
        .zip(fields.iter())
        .map(|(column, field)| cast_array(column, field.data_type(), rules))
        .collect();
    StructArray::try_new_with_length(fields.clone(), columns?, from.nulls().cloned(), from.len())
}

/// The list's item field, nullable when the values have nulls that the field does not announce.
fn nullable(item: &FieldRef, values: &ArrayRef) -> FieldRef {
    if item.is_nullable() || values.null_count() == 0 {
        Arc::clone(item)
    } else {
        Arc::new(item.as_ref().clone().with_nullable(true))
    }
}

fn days_to_timestamp(array: &ArrayRef, to: &DataType, rules: Rules) -> Kernel {
    let days = array.as_primitive::<Date32Type>();
    let micros = |day: i32| i64::from(day).checked_mul(MICROS_PER_DAY);
    let in_micros = if rules.mode.fails() {
        days.try_unary::<_, TimestampMicrosecondType, _>(|day| {
            micros(day).ok_or_else(|| cast_overflow(&day.to_string(), "DATE", "TIMESTAMP"))
        })?
    } else {
        days.unary_opt::<_, TimestampMicrosecondType>(micros)
    };
    match to {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => Ok(Arc::new(in_micros.with_timezone_opt(zone.clone()))),
        _ => cast(&(Arc::new(in_micros) as ArrayRef), to),
    }
}

/// The big-endian bytes of integers (ANSI off).
fn integer_bytes(array: &ArrayRef) -> Kernel {
    let width = array.data_type().primitive_width().unwrap_or(8);
    let wide = cast(array, &DataType::Int64)?;
    let bytes: BinaryArray = wide
        .as_primitive::<Int64Type>()
        .iter()
        .map(|value| value.map(|v| v.to_be_bytes()[8 - width..].to_vec()))
        .collect();
    Ok(Arc::new(bytes))
}

#[cfg(test)]
mod tests;
