//! The kernels of casts between numbers, booleans and timestamps.
//!
//! Double to integer cuts towards zero, double to decimal rounds the double's decimal text half up. Out of range is
//! an error, NULL or (integers, ANSI off) what Java's narrowing gives.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, is_validate_decimal_precision,
};
use arrow::error::ArrowError;

use super::super::decimal_math::{pow10, rescaled};
use super::super::fault::{Mode, cast_overflow, decimal_overflow, fault};
use super::super::type_name::shown_type;
use super::calendar::MICROS_PER_SECOND;
use super::{Kernel, Rules, text_in, text_out};

/// Maps every value; a missing answer is an error or NULL, as the mode says.
fn each<I, O>(
    array: &ArrayRef,
    mode: Mode,
    convert: impl Fn(I::Native) -> Option<O::Native>,
    error: impl Fn(I::Native) -> ArrowError,
) -> Result<PrimitiveArray<O>, ArrowError>
where
    I: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let values = array.as_primitive::<I>();
    if mode.fails() {
        values.try_unary::<_, O, _>(|value| convert(value).ok_or_else(|| error(value)))
    } else {
        Ok(values.unary_opt::<_, O>(convert))
    }
}

fn out_of_range<V: Display>(from: &DataType, to: &DataType) -> impl Fn(V) -> ArrowError {
    let (from, to) = (shown_type(from), shown_type(to));
    move |value| cast_overflow(&value.to_string(), &from, &to)
}

/// Casts between numbers and booleans.
pub(super) fn cast_number(array: &ArrayRef, to: &DataType, rules: Rules) -> Kernel {
    let from = array.data_type().clone();
    match (&from, to) {
        (DataType::Decimal256(precision, scale), _) => {
            let narrow = DataType::Decimal128((*precision).min(38), *scale);
            super::cast_array(&cast(array, &narrow)?, to, rules)
        }
        (_, DataType::Decimal256(..)) | (DataType::Float16, _) | (_, DataType::Float16) => cast(array, to),
        (DataType::UInt8 | DataType::UInt16 | DataType::UInt32, _) => {
            super::cast_array(&cast(array, &DataType::Int64)?, to, rules)
        }
        (DataType::UInt64, _) => super::cast_array(&cast(array, &DataType::Decimal128(20, 0))?, to, rules),
        (DataType::Boolean, DataType::Decimal128(..)) => super::cast_array(&cast(array, &DataType::Int32)?, to, rules),
        (DataType::Boolean, _) => cast(array, to),
        (DataType::Decimal128(..), DataType::Boolean) => {
            let values = array.as_primitive::<Decimal128Type>();
            Ok(Arc::new(BooleanArray::from_unary(values, |value| value != 0)))
        }
        (_, DataType::Boolean) => cast(array, to),
        (DataType::Float64, DataType::Float32) => {
            Ok(Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float32Type>(|value| value as f32)))
        }
        (DataType::Decimal128(_, scale), DataType::Float64) => {
            let scale = *scale;
            let values = array.as_primitive::<Decimal128Type>();
            Ok(Arc::new(values.unary::<_, Float64Type>(|value| decimal_to_double(value, scale))))
        }
        (DataType::Decimal128(_, scale), DataType::Float32) => {
            let scale = *scale;
            let values = array.as_primitive::<Decimal128Type>();
            Ok(Arc::new(values.unary::<_, Float32Type>(|value| decimal_to_double(value, scale) as f32)))
        }
        (_, DataType::Decimal128(precision, scale)) => to_decimal(array, *precision, *scale, rules.mode),
        (_, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64) => to_integer(array, to, rules),
        _ => cast(array, to),
    }
}

/// The nearest double of a decimal.
pub(crate) fn decimal_to_double(value: i128, scale: i8) -> f64 {
    const EXACT: u128 = 1 << 53;
    if scale == 0 {
        return value as f64;
    }
    if value.unsigned_abs() <= EXACT && (1..=22).contains(&scale) {
        // Both are exact doubles, so the quotient is rounded once.
        return value as f64 / 10_f64.powi(i32::from(scale));
    }
    let mut text = String::with_capacity(48);
    let written = text_out::write_decimal(&mut text, value, scale);
    written.ok().and_then(|()| text.parse().ok()).unwrap_or(f64::NAN)
}

/// The decimal of a double's shortest text, rounded half up; `None` when it is no number or too large.
pub(crate) fn double_to_decimal(value: impl Display, scale: i8) -> Option<i128> {
    text_in::decimal(&value.to_string(), scale).ok()
}

fn to_decimal(array: &ArrayRef, precision: u8, scale: i8, mode: Mode) -> Kernel {
    let fitting = move |value: Option<i128>| value.filter(|v| is_validate_decimal_precision(*v, precision));
    let error = move |value: String| decimal_overflow(&value, precision, scale);
    macro_rules! integers {
        ($kind:ty) => {
            each::<$kind, Decimal128Type>(
                array,
                mode,
                |value| fitting(rescaled(value.into(), 0, scale)),
                |value| error(value.to_string()),
            )?
        };
    }
    let decimals = match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::Float32 => each::<Float32Type, Decimal128Type>(
            array,
            mode,
            |value| fitting(double_to_decimal(f64::from(value), scale)),
            |value| error(value.to_string()),
        )?,
        DataType::Float64 => each::<Float64Type, Decimal128Type>(
            array,
            mode,
            |value| fitting(double_to_decimal(value, scale)),
            |value| error(value.to_string()),
        )?,
        DataType::Decimal128(_, from) => {
            let from = *from;
            each::<Decimal128Type, Decimal128Type>(
                array,
                mode,
                |value| fitting(rescaled(value, from, scale)),
                |value| error(shown_decimal(value, from)),
            )?
        }
        other => return Err(fault(format!("a value of type {} cannot be cast to a decimal", shown_type(other)))),
    };
    Ok(Arc::new(decimals.with_precision_and_scale(precision, scale)?))
}

fn shown_decimal(value: i128, scale: i8) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = text_out::write_decimal(&mut text, value, scale);
    text
}

fn to_integer(array: &ArrayRef, to: &DataType, rules: Rules) -> Kernel {
    match to {
        DataType::Int8 => integer::<Int8Type>(array, to, rules, |v| v as i8, |v| v as i32 as i8),
        DataType::Int16 => integer::<Int16Type>(array, to, rules, |v| v as i16, |v| v as i32 as i16),
        DataType::Int32 => integer::<Int32Type>(array, to, rules, |v| v as i32, |v| v as i32),
        _ => integer::<Int64Type>(array, to, rules, |v| v as i64, |v| v as i64),
    }
}

/// `wrapped` and `saturated` are Java's narrowing of wide integers and of doubles.
fn integer<O>(
    array: &ArrayRef,
    to: &DataType,
    rules: Rules,
    wrapped: impl Fn(i128) -> O::Native + Copy,
    saturated: impl Fn(f64) -> O::Native + Copy,
) -> Kernel
where
    O: ArrowPrimitiveType,
    O::Native: TryFrom<i128> + Into<i128>,
{
    let mode = rules.mode;
    let whole = move |value: i128| match mode {
        Mode::Legacy => Some(wrapped(value)),
        _ => value.try_into().ok(),
    };
    let real = move |value: f64| match mode {
        Mode::Legacy => Some(saturated(value)),
        // A double is in range when its integral part is; the border of BIGINT itself is let through, as Java does.
        _ if value.is_nan() || value.abs() > 9.223_372_036_854_776e18 => None,
        _ => {
            let cut = value as i64;
            i128::from(cut).try_into().ok()
        }
    };
    macro_rules! of {
        ($kind:ty, $convert:expr) => {
            each::<$kind, O>(array, mode, $convert, out_of_range(array.data_type(), to))?
        };
    }
    Ok(Arc::new(match array.data_type() {
        DataType::Int8 => of!(Int8Type, |v| whole(v.into())),
        DataType::Int16 => of!(Int16Type, |v| whole(v.into())),
        DataType::Int32 => of!(Int32Type, |v| whole(v.into())),
        DataType::Int64 => of!(Int64Type, |v| whole(v.into())),
        DataType::Float32 => of!(Float32Type, |v| real(v.into())),
        DataType::Float64 => of!(Float64Type, real),
        DataType::Decimal128(_, scale) => {
            let unit = pow10(*scale).unwrap_or(i128::MAX);
            let (from, shown, scale) = (shown_type(array.data_type()), shown_type(to), *scale);
            each::<Decimal128Type, O>(
                array,
                mode,
                |value| whole(value / unit),
                |value| cast_overflow(&shown_decimal(value, scale), &from, &shown),
            )?
        }
        other => {
            return Err(fault(format!("a value of type {} cannot be cast to {}", shown_type(other), shown_type(to))));
        }
    }))
}

/// Seconds since 1970 (integers cut down to whole seconds), or whether there are any.
pub(super) fn from_timestamp(array: &ArrayRef, to: &DataType, rules: Rules) -> Kernel {
    let micros = array.as_primitive::<TimestampMicrosecondType>();
    match to {
        DataType::Float64 => {
            Ok(Arc::new(micros.unary::<_, Float64Type>(|value| value as f64 / MICROS_PER_SECOND as f64)))
        }
        DataType::Float32 => {
            Ok(Arc::new(micros.unary::<_, Float32Type>(|value| (value as f64 / MICROS_PER_SECOND as f64) as f32)))
        }
        DataType::Decimal128(..) => {
            let exact = micros.unary::<_, Decimal128Type>(i128::from).with_precision_and_scale(38, 6)?;
            super::cast_array(&(Arc::new(exact) as ArrayRef), to, rules)
        }
        DataType::Boolean => Ok(Arc::new(BooleanArray::from_unary(micros, |value| value != 0))),
        _ => {
            let seconds = micros.unary::<_, Int64Type>(|value| value.div_euclid(MICROS_PER_SECOND));
            super::cast_array(&(Arc::new(seconds) as ArrayRef), to, rules)
        }
    }
}

/// A number of seconds since 1970 as a point in time.
pub(super) fn to_timestamp(array: &ArrayRef, rules: Rules) -> Kernel {
    let to = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    match array.data_type() {
        DataType::Float32 => to_timestamp(&cast(array, &DataType::Float64)?, rules),
        DataType::Float64 => {
            let micros = |value: f64| {
                let scaled = value * MICROS_PER_SECOND as f64;
                (!scaled.is_nan() && scaled.abs() <= 9.223_372_036_854_775e18).then_some(scaled as i64)
            };
            Ok(Arc::new(each::<Float64Type, TimestampMicrosecondType>(
                array,
                rules.mode,
                micros,
                out_of_range(array.data_type(), &to),
            )?))
        }
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            // What is finer than microseconds is cut off, towards zero.
            let micros = |value: i128| match 6 - scale {
                more @ 0.. => value.checked_mul(pow10(more)?),
                less => Some(pow10(-less).map_or(0, |unit| value / unit)),
            };
            Ok(Arc::new(each::<Decimal128Type, TimestampMicrosecondType>(
                array,
                rules.mode,
                |value| micros(value)?.try_into().ok(),
                out_of_range(array.data_type(), &to),
            )?))
        }
        _ => {
            // Too many seconds are the first or the last moment, as in Java.
            let seconds = cast(array, &DataType::Int64)?;
            let micros = |value: i64| value.saturating_mul(MICROS_PER_SECOND);
            Ok(Arc::new(seconds.as_primitive::<Int64Type>().unary::<_, TimestampMicrosecondType>(micros)))
        }
    }
}
