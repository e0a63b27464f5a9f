//! Intervals among themselves and with numbers: `interval * n`, `interval / n`, sums, and what makes them comparable.
//!
//! Where it stands: the operators on intervals reach these functions through the planner.
//!
//! Rule of its life: an interval is months, or days and time; days and time are one number of microseconds, so a day is 24
//! hours. Spark has a type for each of the two; here both are INTERVAL, and a difference of timestamps is a DURATION. So days
//! and time are kept in one spelling, whole days first, and two that are equal compare as equal.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};

use super::super::column::values;
use super::super::function::{Call, Function, some};
use super::super::kind::Kind;
use super::calendar::DAY;

/// An interval of days and time as a DURATION, so that it compares with a difference of timestamps.
pub(crate) const INTERVAL_AS_DURATION: &str = "interval_as_duration";
/// An interval whose time of day is less than a day.
pub(crate) const WHOLE_DAYS_FIRST: &str = "interval_whole_days_first";
/// An interval or DURATION times a number.
pub(crate) const INTERVAL_TIMES: &str = "interval_times";
/// An interval or DURATION divided by a number.
pub(crate) const INTERVAL_DIVIDED: &str = "interval_divided";

/// The type of a difference of timestamps.
pub(crate) const DURATION: DataType = DataType::Duration(TimeUnit::Microsecond);
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Argument `index` as intervals, with its stride.
pub(super) fn intervals(call: &Call<'_>, index: usize) -> Result<(PrimitiveArray<IntervalMonthDayNanoType>, usize)> {
    let (array, stride) = call.raw(index);
    let array = cast(array, &INTERVAL)?;
    Ok((array.as_primitive::<IntervalMonthDayNanoType>().clone(), stride))
}

fn out_of_range() -> DataFusionError {
    exec_datafusion_err!("[INTERVAL_ARITHMETIC_OVERFLOW] the interval is out of range")
}

/// The microseconds of days and time.
fn micros(interval: IntervalMonthDayNano) -> Result<i64> {
    let days = i64::from(interval.days).checked_mul(DAY);
    days.and_then(|days| days.checked_add(interval.nanoseconds / 1000)).ok_or_else(out_of_range)
}

/// Microseconds as whole days and the rest.
fn days_and_time(months: i32, micros: i64) -> Result<IntervalMonthDayNano> {
    let days = i32::try_from(micros / DAY).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano { months, days, nanoseconds: micros % DAY * 1000 })
}

/// The same interval with whole days first.
///
/// # Errors
/// When days and time are more than a BIGINT of microseconds.
pub(crate) fn whole_days_first(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    days_and_time(interval.months, micros(interval)?)
}

fn normalized(call: &Call<'_>) -> Result<ArrayRef> {
    let (intervals, stride) = intervals(call, 0)?;
    values::<IntervalMonthDayNanoType>(call.rows, |row| {
        let index = row * stride;
        let interval = some!((!intervals.is_null(index)).then(|| intervals.value(index)));
        whole_days_first(interval).map(Some)
    })
}

fn as_duration(call: &Call<'_>) -> Result<ArrayRef> {
    let (intervals, stride) = intervals(call, 0)?;
    values::<DurationMicrosecondType>(call.rows, |row| {
        let index = row * stride;
        let interval = some!((!intervals.is_null(index)).then(|| intervals.value(index)));
        if interval.months != 0 {
            return exec_err!(
                "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] an interval of months has no place beside one of days"
            );
        }
        micros(interval).map(Some)
    })
}

/// A number that an interval is multiplied with or divided by.
#[derive(Debug, Clone, Copy)]
enum Number {
    /// Digits and how many of them are behind the point: integers and decimals.
    Exact(i128, u32),
    Float(f64),
}

/// A column of numbers.
enum Numbers {
    Exact(PrimitiveArray<Decimal128Type>, u32),
    Float(PrimitiveArray<Float64Type>),
}

impl Numbers {
    fn of(array: &ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => {
                Self::Exact(array.as_primitive::<Decimal128Type>().clone(), u32::try_from(*scale).unwrap_or(0))
            }
            whole if whole.is_integer() => {
                let whole = cast(array, &DataType::Int64)?;
                let digits = whole.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(i128::from);
                Self::Exact(digits, 0)
            }
            _ => Self::Float(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone()),
        })
    }

    fn get(&self, index: usize) -> Option<Number> {
        match self {
            Self::Exact(digits, scale) => (!digits.is_null(index)).then(|| Number::Exact(digits.value(index), *scale)),
            Self::Float(floats) => (!floats.is_null(index)).then(|| Number::Float(floats.value(index))),
        }
    }
}

/// The nearest whole number, away from zero when two are as near: Spark's HALF_UP.
pub(crate) fn half_up(dividend: i128, divisor: i128) -> i128 {
    let (whole, rest) = (dividend / divisor, dividend % divisor);
    let is_half = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    if is_half { whole + if (dividend < 0) == (divisor < 0) { 1 } else { -1 } } else { whole }
}

fn rounded(float: f64) -> Result<i64> {
    let rounded = float.round();
    // The largest doubles below 2^63 are whole, so the comparison is exact.
    if rounded.is_nan() || rounded < -(2_f64.powi(63)) || rounded >= 2_f64.powi(63) {
        return Err(out_of_range());
    }
    Ok(rounded as i64)
}

fn times(amount: i64, number: Number) -> Result<i64> {
    match number {
        Number::Exact(digits, scale) => {
            let product = i128::from(amount).checked_mul(digits).ok_or_else(out_of_range)?;
            let divisor = 10_i128.checked_pow(scale).ok_or_else(out_of_range)?;
            i64::try_from(half_up(product, divisor)).map_err(|_| out_of_range())
        }
        Number::Float(float) => rounded(amount as f64 * float),
    }
}

fn divided(amount: i64, number: Number) -> Result<i64> {
    let by_zero = || exec_err!("[INTERVAL_DIVIDED_BY_ZERO] an interval was divided by zero; use try_divide for NULL");
    match number {
        Number::Exact(0, _) => by_zero(),
        Number::Float(0.0) => by_zero(),
        Number::Exact(digits, scale) => {
            let factor = 10_i128.checked_pow(scale).ok_or_else(out_of_range)?;
            let dividend = i128::from(amount).checked_mul(factor).ok_or_else(out_of_range)?;
            i64::try_from(half_up(dividend, digits)).map_err(|_| out_of_range())
        }
        Number::Float(float) => rounded(amount as f64 / float),
    }
}

fn scaled(call: &Call<'_>, scale: fn(i64, Number) -> Result<i64>) -> Result<ArrayRef> {
    let (numbers, number_stride) = call.raw(1);
    let numbers = Numbers::of(numbers)?;
    if call.returns == &DURATION {
        let (durations, stride) = call.raw(0);
        let durations = cast(durations, &DURATION)?;
        let durations: &PrimitiveArray<DurationMicrosecondType> = durations.as_primitive();
        return values::<DurationMicrosecondType>(call.rows, |row| {
            let index = row * stride;
            let amount = some!((!durations.is_null(index)).then(|| durations.value(index)));
            scale(amount, some!(numbers.get(row * number_stride))).map(Some)
        });
    }
    let (intervals, stride) = intervals(call, 0)?;
    values::<IntervalMonthDayNanoType>(call.rows, |row| {
        let index = row * stride;
        let interval = some!((!intervals.is_null(index)).then(|| intervals.value(index)));
        let number = some!(numbers.get(row * number_stride));
        let months = scale(i64::from(interval.months), number)?;
        let months = i32::try_from(months).map_err(|_| out_of_range())?;
        days_and_time(months, scale(micros(interval)?, number)?).map(Some)
    })
}

fn scaled_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match types.first() {
        Some(DataType::Duration(_)) => Ok(DURATION),
        Some(DataType::Interval(_)) => Ok(INTERVAL),
        _ => plan_err!("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] only an interval can be scaled"),
    }
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(INTERVAL_AS_DURATION, &[Kind::Any], DURATION, as_duration),
        Function::new(WHOLE_DAYS_FIRST, &[Kind::Any], INTERVAL, normalized),
        Function::new(INTERVAL_TIMES, &[Kind::Any, Kind::Any], INTERVAL, |call| scaled(call, times))
            .returns_by(scaled_type),
        Function::new(INTERVAL_DIVIDED, &[Kind::Any, Kind::Any], INTERVAL, |call| scaled(call, divided))
            .fails_on(&[1])
            .returns_by(scaled_type),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (dividend, divisor, result) in [(5, 2, 3), (-5, 2, -3), (5, -2, -3), (7, 3, 2), (8, 3, 3), (-1, 3, 0)] {
            assert_eq!(half_up(dividend, divisor), result, "{dividend} / {divisor}");
        }
    }

    #[test]
    fn intervals_are_scaled_as_in_spark() {
        assert_eq!(times(1_000_000, Number::Exact(15, 1)).unwrap(), 1_500_000);
        assert_eq!(times(3, Number::Float(0.5)).unwrap(), 2);
        assert_eq!(divided(DAY, Number::Exact(7, 0)).unwrap(), 12_342_857_143);
        assert_eq!(divided(DAY, Number::Exact(25, 1)).unwrap(), 34_560_000_000);
        assert!(times(i64::MAX, Number::Exact(2, 0)).unwrap_err().to_string().contains("INTERVAL_ARITHMETIC_OVERFLOW"));
        assert!(divided(1, Number::Exact(0, 2)).unwrap_err().to_string().contains("INTERVAL_DIVIDED_BY_ZERO"));
        assert!(divided(1, Number::Float(0.0)).is_err());
    }

    #[test]
    fn twenty_four_hours_are_a_day() {
        let hours = |hours: i64| IntervalMonthDayNano { months: 0, days: 0, nanoseconds: hours * 3_600_000_000_000 };
        let day = IntervalMonthDayNano { months: 0, days: 1, nanoseconds: 0 };
        assert_eq!(whole_days_first(hours(24)).unwrap(), day);
        assert!(whole_days_first(hours(30)).unwrap() > day);
        assert!(whole_days_first(hours(-30)).unwrap() < whole_days_first(hours(-25)).unwrap());
    }
}
