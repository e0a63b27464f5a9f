//! Mathematical functions over doubles, and the ones that keep a number's type (`abs`, `negative`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;

use super::fault::{overflow, raise};
use super::function::{Call, Nulls, Row, shape};
use super::type_name::shown_type;

macro_rules! unary {
    ($name:literal, $function:expr) => {
        Row::new($name, shape::one_double, shape::double, |call| map(call, $function))
    };
}

/// NULL where the function is not defined.
macro_rules! partial {
    ($name:literal, $function:expr) => {
        Row::new($name, shape::one_double, shape::double, |call| map_some(call, $function)).nulls(Nulls::Possible)
    };
}

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    unary!("sqrt", f64::sqrt),
    unary!("cbrt", f64::cbrt),
    unary!("exp", f64::exp),
    unary!("expm1", f64::exp_m1),
    partial!("ln", |x| if x <= 0.0 { None } else { Some(x.ln()) }),
    partial!("log2", |x| if x <= 0.0 { None } else { Some(x.log2()) }),
    partial!("log10", |x| if x <= 0.0 { None } else { Some(x.log10()) }),
    partial!("log1p", |x| if x <= -1.0 { None } else { Some(x.ln_1p()) }),
    unary!("sin", f64::sin),
    unary!("cos", f64::cos),
    unary!("tan", f64::tan),
    unary!("cot", |x: f64| 1.0 / x.tan()),
    unary!("sec", |x: f64| 1.0 / x.cos()),
    unary!("csc", |x: f64| 1.0 / x.sin()),
    unary!("asin", f64::asin),
    unary!("acos", f64::acos),
    unary!("atan", f64::atan),
    unary!("sinh", f64::sinh),
    unary!("cosh", f64::cosh),
    unary!("tanh", f64::tanh),
    unary!("asinh", f64::asinh),
    unary!("acosh", f64::acosh),
    unary!("atanh", f64::atanh),
    unary!("degrees", f64::to_degrees),
    unary!("radians", f64::to_radians),
    unary!("rint", f64::round_ties_even),
    unary!("signum", signum).also(&["sign"]),
    Row::new("pow", shape::two_doubles, shape::double, |call| zip(call, power)).also(&["power"]),
    Row::new("atan2", shape::two_doubles, shape::double, |call| zip(call, |y, x| (y + 0.0).atan2(x + 0.0))),
    Row::new("hypot", shape::two_doubles, shape::double, |call| zip(call, f64::hypot)),
    Row::new("log", one_or_two_doubles, shape::double, log).nulls(Nulls::Possible),
    Row::new("pi", |types, _| types.is_empty().then(Vec::new), shape::double, |_| constant(std::f64::consts::PI)),
    Row::new("e", |types, _| types.is_empty().then(Vec::new), shape::double, |_| constant(std::f64::consts::E)),
    Row::new("abs", shape::one_number, shape::first, absolute),
    Row::new("negative", negatable, shape::first, negative),
    Row::new("positive", shape::one_number, shape::first, |call| Ok(Arc::clone(&call.arrays[0]))),
    Row::new("factorial", one_int, shape::bigint, factorial).nulls(Nulls::Possible),
    Row::new("width_bucket", bucket_types, shape::bigint, width_bucket).nulls(Nulls::Possible),
];

fn constant(value: f64) -> Result<ArrayRef> {
    Ok(Arc::new(Float64Array::from(vec![value])))
}

fn map(call: &Call<'_>, function: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    Ok(Arc::new(call.arrays[0].as_primitive::<Float64Type>().unary::<_, Float64Type>(function)))
}

fn map_some(call: &Call<'_>, function: impl Fn(f64) -> Option<f64>) -> Result<ArrayRef> {
    Ok(Arc::new(call.arrays[0].as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(function)))
}

fn zip(call: &Call<'_>, function: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (call.arrays[0].as_primitive::<Float64Type>(), call.arrays[1].as_primitive::<Float64Type>());
    let result = arrow::compute::binary::<_, _, _, Float64Type>(left, right, function).map_err(raise)?;
    Ok(Arc::new(result))
}

/// The sign; zero keeps its own.
fn signum(value: f64) -> f64 {
    if value == 0.0 || value.is_nan() { value } else { value.signum() }
}

/// Java's power, which is NaN where C's is 1.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) { f64::NAN } else { base.powf(exponent) }
}

fn one_or_two_doubles(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    (1..=2).contains(&types.len()).then(|| shape::doubles(types, ansi))?
}

/// `log(x)` or `log(base, x)`.
fn log(call: &Call<'_>) -> Result<ArrayRef> {
    if call.arrays.len() == 1 {
        return map_some(call, |x| if x <= 0.0 { None } else { Some(x.ln()) });
    }
    let (bases, values) = (call.arrays[0].as_primitive::<Float64Type>(), call.arrays[1].as_primitive::<Float64Type>());
    let logs: Float64Array = bases
        .iter()
        .zip(values)
        .map(|pair| match pair {
            (Some(base), Some(value)) if base <= 0.0 || value <= 0.0 => None,
            (Some(base), Some(value)) => Some(value.ln() / base.ln()),
            _ => None,
        })
        .collect();
    Ok(Arc::new(logs))
}

fn absolute(call: &Call<'_>) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    macro_rules! integers {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>();
            if call.ansi {
                let name = shown_type(array.data_type());
                let checked = values
                    .try_unary::<_, $kind, _>(|v| v.checked_abs().ok_or_else(|| overflow(&name)))
                    .map_err(raise)?;
                Arc::new(checked) as ArrayRef
            } else {
                Arc::new(values.unary::<_, $kind>(|v| v.wrapping_abs()))
            }
        }};
    }
    Ok(match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::abs)),
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::abs)),
        DataType::Decimal128(precision, scale) => {
            let values = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(i128::wrapping_abs);
            Arc::new(values.with_precision_and_scale(*precision, *scale)?)
        }
        other => return exec_err!("`abs` does not take {}", shown_type(other)),
    })
}

fn negatable(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    match types {
        [interval @ (DataType::Interval(_) | DataType::Duration(_))] => Some(vec![interval.clone()]),
        _ => shape::one_number(types, ansi),
    }
}

fn negative(call: &Call<'_>) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    if !call.ansi {
        return numeric::neg_wrapping(array.as_ref()).map_err(raise);
    }
    numeric::neg(array.as_ref()).map_err(|error| match error {
        arrow::error::ArrowError::ArithmeticOverflow(_) => raise(overflow(&shown_type(array.data_type()))),
        other => raise(other),
    })
}

fn one_int(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [one] = types else { return None };
    shape::number_like(one).then(|| vec![DataType::Int32])
}

/// NULL outside 0 to 20.
fn factorial(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.arrays[0].as_primitive::<Int32Type>();
    Ok(Arc::new(values.unary_opt::<_, Int64Type>(|n| (0..=20).contains(&n).then(|| (1..=i64::from(n)).product()))))
}

fn bucket_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    if types.len() != 4 || !types.iter().all(shape::number_like) {
        return None;
    }
    Some(vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64])
}

fn width_bucket(call: &Call<'_>) -> Result<ArrayRef> {
    let column = |index: usize| call.arrays[index].as_primitive::<Float64Type>();
    let (values, lows, highs) = (column(0), column(1), column(2));
    let counts = call.arrays[3].as_primitive::<Int64Type>();
    let buckets: arrow::array::Int64Array = (0..values.len())
        .map(|row| {
            if [values, lows, highs].iter().any(|c| c.is_null(row)) || counts.is_null(row) {
                return None;
            }
            bucket(values.value(row), lows.value(row), highs.value(row), counts.value(row))
        })
        .collect();
    Ok(Arc::new(buckets))
}

fn bucket(value: f64, low: f64, high: f64, count: i64) -> Option<i64> {
    let usable =
        count > 0 && count != i64::MAX && !value.is_nan() && low.is_finite() && high.is_finite() && low != high;
    if !usable {
        return None;
    }
    let (smallest, largest) = (low.min(high), low.max(high));
    let position = if low < high {
        if value < smallest {
            0
        } else if value >= largest {
            count + 1
        } else {
            ((count as f64 * (value - low) / (high - low)) as i64).saturating_add(1)
        }
    } else if value > largest {
        0
    } else if value <= smallest {
        count + 1
    } else {
        ((count as f64 * (low - value) / (low - high)) as i64).saturating_add(1)
    };
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_from_either_end() {
        assert_eq!(bucket(5.3, 0.2, 10.6, 5), Some(3));
        assert_eq!(bucket(-2.1, 1.3, 3.4, 3), Some(0));
        assert_eq!(bucket(8.1, 0.0, 5.7, 4), Some(5));
        assert_eq!(bucket(-0.9, 5.2, 0.5, 2), Some(3));
        assert_eq!(bucket(1.0, 1.0, 1.0, 2), None);
    }

    #[test]
    fn the_power_of_java_is_not_cs() {
        assert!(power(1.0, f64::NAN).is_nan());
        assert!(power(-1.0, f64::INFINITY).is_nan());
        assert_eq!(power(2.0, 10.0), 1024.0);
        assert_eq!(power(f64::NAN, 0.0), 1.0);
    }

    #[test]
    fn the_sign_of_zero_is_zero() {
        assert_eq!(signum(0.0), 0.0);
        assert!(signum(-0.0).is_sign_negative());
        assert_eq!(signum(-7.0), -1.0);
    }
}
