//! `round`, `bround`, `floor`, `ceil` and their two-argument forms.
//!
//! Doubles are rounded by their decimal text (1.05 to one digit is 1.1), floats by that of the double which they are
//! (0.35 to one digit is 0.3, as the float is a bit less). Decimals get Spark's result type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    is_validate_decimal_precision,
};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;

use super::decimal_math::pow10;
use super::decimal_type;
use super::fault::{decimal_overflow, overflow, raise};
use super::function::{Call, Nulls, Row, shape};
use super::type_name::shown_type;

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    Row::new("round", round_types, rounded_type, |call| round(call, Way::HalfUp)).nulls(Nulls::Possible),
    Row::new("bround", round_types, rounded_type, |call| round(call, Way::HalfEven)).nulls(Nulls::Possible),
    Row::new("floor", whole_types, whole_type, |call| whole(call, Way::Floor)).nulls(Nulls::Possible),
    Row::new("ceil", whole_types, whole_type, |call| whole(call, Way::Ceiling))
        .also(&["ceiling"])
        .nulls(Nulls::Possible),
];

/// More places than any number has, in front of the point or behind.
const MOST_PLACES: i32 = 1_000;

/// A way of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    HalfUp,
    HalfEven,
    Floor,
    Ceiling,
}

/// `value` without its last digits below `unit`, in units.
fn divided(value: i128, unit: i128, way: Way) -> i128 {
    let (floor, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let up = match way {
        Way::Floor => false,
        Way::Ceiling => rest > 0,
        // Half away from zero: at exactly one half the negative value goes down.
        Way::HalfUp => rest > unit - rest || (rest == unit - rest && value >= 0),
        Way::HalfEven => rest > unit - rest || (rest == unit - rest && floor.rem_euclid(2) == 1),
    };
    floor + i128::from(up)
}

/// `value` of scale `from`, rounded to `places` digits behind the point, at scale `to`.
fn placed(value: i128, from: i8, places: i32, to: i8, way: Way) -> Option<i128> {
    if places >= i32::from(from) {
        return value.checked_mul(pow10(to - from)?);
    }
    let cut = i32::from(from) - places;
    let units = match i8::try_from(cut).ok().and_then(pow10) {
        Some(unit) => divided(value, unit, way),
        // More digits are cut than a decimal has.
        None => match way {
            Way::Ceiling if value > 0 => 1,
            Way::Floor if value < 0 => -1,
            _ => 0,
        },
    };
    if units == 0 {
        return Some(0);
    }
    units.checked_mul(pow10(i8::try_from(i32::from(to) - places).ok()?)?)
}

fn places_of(scalars: &[Option<&ScalarValue>], count: usize) -> i32 {
    let given = scalars.get(1).copied().flatten();
    if count < 2 {
        return 0;
    }
    match given {
        Some(ScalarValue::Int32(Some(places))) => (*places).clamp(-MOST_PLACES, MOST_PLACES),
        Some(ScalarValue::Int64(Some(places))) => {
            (*places).clamp(-i64::from(MOST_PLACES), i64::from(MOST_PLACES)) as i32
        }
        Some(ScalarValue::Int16(Some(places))) => i32::from(*places),
        Some(ScalarValue::Int8(Some(places))) => i32::from(*places),
        _ => 0,
    }
}

fn round_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    match types {
        [one] if shape::number_like(one) => Some(vec![shape::kept(one)]),
        [one, places] if shape::number_like(one) && (places.is_integer() || places.is_null()) => {
            Some(vec![shape::kept(one), DataType::Int32])
        }
        _ => None,
    }
}

fn rounded_type(types: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match types.first() {
        Some(DataType::Decimal128(precision, scale)) => {
            let (precision, scale) = decimal_type::rounded((*precision, *scale), places_of(scalars, types.len()));
            DataType::Decimal128(precision, scale)
        }
        Some(other) => other.clone(),
        None => DataType::Null,
    })
}

/// The constant number of places; `None` when it is NULL.
fn places(call: &Call<'_>) -> Result<Option<i32>> {
    let Some(array) = call.arrays.get(1) else { return Ok(Some(0)) };
    let values = array.as_primitive::<Int32Type>();
    let mut rows = values.iter();
    let first = rows.next().flatten();
    if rows.any(|value| value != first) {
        return exec_err!("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] the number of places must be a constant");
    }
    Ok(first.map(|places| places.clamp(-MOST_PLACES, MOST_PLACES)))
}

fn round(call: &Call<'_>, way: Way) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    let Some(places) = places(call)? else {
        return Ok(arrow::array::new_null_array(call.result, array.len()));
    };
    macro_rules! integers {
        ($kind:ty) => {{
            if places >= 0 {
                return Ok(Arc::clone(array));
            }
            let name = shown_type(array.data_type());
            let ansi = call.ansi;
            let values = array.as_primitive::<$kind>().try_unary::<_, $kind, _>(|value| {
                let rounded = placed(i128::from(value), 0, places, 0, way).unwrap_or(0);
                match rounded.try_into() {
                    Ok(rounded) => Ok(rounded),
                    Err(_) if ansi => Err(overflow(&name)),
                    Err(_) => Ok(rounded as <$kind as arrow::datatypes::ArrowPrimitiveType>::Native),
                }
            });
            Arc::new(values.map_err(raise)?) as ArrayRef
        }};
    }
    Ok(match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|value| round_double(value, places, way)))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(|value| round_float(value, places, way)))
        }
        DataType::Decimal128(_, scale) => decimals(call, *scale, places, way)?,
        other => return exec_err!("a value of type {} cannot be rounded", shown_type(other)),
    })
}

/// Rounds by the double's decimal text.
fn round_double(value: f64, places: i32, way: Way) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return if value == 0.0 { 0.0 } else { value };
    }
    if (0..=15).contains(&places) {
        // Far from a tie the text and the binary value agree.
        let unit = 10_f64.powi(places);
        let scaled = value.abs() * unit;
        if scaled < 1e12 {
            let floor = scaled.floor();
            let fraction = scaled - floor;
            if (fraction - 0.5).abs() > 1e-3 {
                let size = if fraction > 0.5 { floor + 1.0 } else { floor } / unit;
                return if value < 0.0 && size != 0.0 { -size } else { size };
            }
        }
    }
    by_text(&format!("{value:e}"), places, way).and_then(|text| text.parse().ok()).unwrap_or(value)
}

/// Rounds by the decimal text of the float as a double.
fn round_float(value: f32, places: i32, way: Way) -> f32 {
    if !value.is_finite() || value == 0.0 {
        return if value == 0.0 { 0.0 } else { value };
    }
    by_text(&format!("{:e}", f64::from(value)), places, way).and_then(|text| text.parse().ok()).unwrap_or(value)
}

/// Rounds `d.ddde±n`; `None` when there is nothing to cut off.
fn by_text(text: &str, places: i32, way: Way) -> Option<String> {
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    // The value is unscaled · 10^-scale.
    let scale = i32::try_from(fraction.len()).ok()? - exponent;
    if places >= scale {
        return None;
    }
    let rounded = match i8::try_from(scale - places).ok().and_then(pow10) {
        Some(unit) => divided(unscaled, unit, way),
        None => 0,
    };
    Some(format!("{rounded}e{}", -places))
}

fn decimals(call: &Call<'_>, from: i8, places: i32, way: Way) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *call.result else {
        return exec_err!("a decimal was to be rounded to {}", shown_type(call.result));
    };
    let fitting = |value: i128| {
        placed(value, from, places.min(i32::from(scale).max(places.min(0))), scale, way)
            .filter(|v| is_validate_decimal_precision(*v, precision))
    };
    let values = call.arrays[0].as_primitive::<Decimal128Type>();
    let rounded = if call.ansi {
        values
            .try_unary::<_, Decimal128Type, _>(|value| {
                fitting(value).ok_or_else(|| decimal_overflow("of the rounding", precision, scale))
            })
            .map_err(raise)?
    } else {
        values.unary_opt::<_, Decimal128Type>(fitting)
    };
    Ok(Arc::new(rounded.with_precision_and_scale(precision, scale)?))
}

/// One argument keeps integers, decimals and doubles; two make everything a decimal.
fn whole_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    match types {
        [one] if shape::number_like(one) => Some(vec![match one {
            DataType::Decimal128(..) => one.clone(),
            t if t.is_integer() => DataType::Int64,
            _ => DataType::Float64,
        }]),
        [one, places] if shape::number_like(one) && (places.is_integer() || places.is_null()) => {
            let decimal = match one {
                DataType::Decimal128(..) => one.clone(),
                t if t.is_integer() => {
                    let (precision, scale) = decimal_type::of_integer(t)?;
                    DataType::Decimal128(precision, scale)
                }
                DataType::Float32 => DataType::Decimal128(14, 7),
                _ => DataType::Decimal128(30, 15),
            };
            Some(vec![decimal, DataType::Int32])
        }
        _ => None,
    }
}

fn whole_type(types: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
    match types.first() {
        Some(DataType::Decimal128(..)) => rounded_type(types, scalars),
        _ => Ok(DataType::Int64),
    }
}

fn whole(call: &Call<'_>, way: Way) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    let Some(places) = places(call)? else {
        return Ok(arrow::array::new_null_array(call.result, array.len()));
    };
    Ok(match array.data_type() {
        DataType::Int64 => Arc::clone(array),
        DataType::Decimal128(_, scale) => decimals(call, *scale, places, way)?,
        DataType::Float64 => {
            let cut = if way == Way::Floor { f64::floor } else { f64::ceil };
            let array = array.as_primitive::<Float64Type>();
            if call.ansi {
                // Both bounds are doubles, and the upper one is the first that is too large.
                let fits = |value: &f64| (-(2_f64.powi(63))..2_f64.powi(63)).contains(value);
                let exact = |value| Some(cut(value)).filter(fits).map(|value| value as i64);
                Arc::new(
                    array
                        .try_unary::<_, Int64Type, _>(|value| exact(value).ok_or_else(|| raise(overflow("BIGINT"))))?,
                )
            } else {
                Arc::new(array.unary::<_, Int64Type>(|value| cut(value) as i64))
            }
        }
        other => return exec_err!("a value of type {} has no floor", shown_type(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_half_up_on_their_text() {
        for (value, places, expected) in [
            (2.5, 0, 3.0),
            (-2.5, 0, -3.0),
            (1.05, 1, 1.1),
            (0.35, 1, 0.4),
            (14.9, -1, 10.0),
            (15.0, -1, 20.0),
            (-15.0, -1, -20.0),
            (1234.5678, 2, 1234.57),
            (1.0e300, 2, 1.0e300),
            (4.0, -400, 0.0),
        ] {
            assert_eq!(round_double(value, places, Way::HalfUp), expected, "{value} to {places}");
        }
        assert!(round_double(-0.2, 0, Way::HalfUp).is_sign_positive());
    }

    #[test]
    fn floats_round_by_the_double_that_they_are() {
        for (value, places, expected) in [
            (0.35_f32, 1, 0.3_f32),
            (0.25, 1, 0.3),
            (1.15, 1, 1.1),
            (2.5, 0, 3.0),
            (0.1, 3, 0.1),
            (16_777_216.0, 2, 16_777_216.0),
        ] {
            assert_eq!(round_float(value, places, Way::HalfUp), expected, "{value} to {places}");
        }
    }

    #[test]
    fn bankers_rounding_goes_to_the_even_digit() {
        for (value, places, expected) in [(2.5, 0, 2.0), (3.5, 0, 4.0), (-2.5, 0, -2.0), (0.25, 1, 0.2), (0.35, 1, 0.4)]
        {
            assert_eq!(round_double(value, places, Way::HalfEven), expected, "{value} to {places}");
        }
    }

    #[test]
    fn decimals_keep_the_asked_places() {
        assert_eq!(placed(1_005, 3, 1, 1, Way::HalfUp), Some(10));
        assert_eq!(placed(-7_125, 3, 0, 0, Way::Ceiling), Some(-7));
        assert_eq!(placed(-7_125, 3, 0, 0, Way::Floor), Some(-8));
        assert_eq!(placed(999_949, 3, 0, 0, Way::Ceiling), Some(1_000));
        assert_eq!(placed(1_250, 0, -2, 0, Way::HalfUp), Some(1_300));
        assert_eq!(placed(1_250, 0, -2, 0, Way::HalfEven), Some(1_200));
        assert_eq!(placed(5, 0, -60, 0, Way::HalfUp), Some(0));
    }
}
