//! Moving, cutting and comparing dates and timestamps: `date_add`, `add_months`, `date_trunc`, `timestampdiff`, …
//!
//! Where it stands: a group of [`Function`]s; the operators `+` and `-` on dates reach some of them through the planner.
//!
//! Rule of its life: months clip to the month's end, what leaves the type's range is an error.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Float64Type, Int32Type, Int64Type, IntervalMonthDayNano, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};

use super::super::column::{timestamps, values};
use super::super::function::{Call, Function, Nulls, some, timestamp_type};
use super::super::kind::Kind;
use super::calendar::{
    DAY, HOUR, MINUTE, SECOND, Unit, add_months, civil, date, midnight, month_length, months_between,
    months_between_whole, shift, weekday,
};
use super::interval::intervals;

fn moved(call: &Call<'_>, sign: i64) -> Result<ArrayRef> {
    let (days, counts) = (call.date(0)?, call.int(1)?);
    values::<Date32Type>(call.rows, |row| {
        let (day, count) = (some!(days.get(row)), some!(counts.get(row)));
        date(i64::from(day) + sign * i64::from(count)).map(Some)
    })
}

fn date_diff(call: &Call<'_>) -> Result<ArrayRef> {
    let (ends, starts) = (call.date(0)?, call.date(1)?);
    values::<Int32Type>(call.rows, |row| {
        let (end, start) = (some!(ends.get(row)), some!(starts.get(row)));
        match end.checked_sub(start) {
            Some(days) => Ok(Some(days)),
            None => exec_err!("[ARITHMETIC_OVERFLOW] the dates are more days apart than INT can count"),
        }
    })
}

fn add_months_to_date(call: &Call<'_>) -> Result<ArrayRef> {
    let (days, counts) = (call.date(0)?, call.int(1)?);
    values::<Date32Type>(call.rows, |row| {
        let (day, count) = (some!(days.get(row)), some!(counts.get(row)));
        date(add_months(i64::from(day), i64::from(count))).map(Some)
    })
}

fn last_day(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.date(0)?;
    values::<Date32Type>(call.rows, |row| {
        let days = i64::from(some!(days.get(row)));
        let (year, month, day) = civil(days);
        date(days + month_length(year, month) - day).map(Some)
    })
}

/// Monday = 0, by name of two, three or all letters.
fn named_weekday(name: &str) -> Option<i64> {
    Some(match name.trim().to_ascii_uppercase().as_str() {
        "MO" | "MON" | "MONDAY" => 0,
        "TU" | "TUE" | "TUESDAY" => 1,
        "WE" | "WED" | "WEDNESDAY" => 2,
        "TH" | "THU" | "THURSDAY" => 3,
        "FR" | "FRI" | "FRIDAY" => 4,
        "SA" | "SAT" | "SATURDAY" => 5,
        "SU" | "SUN" | "SUNDAY" => 6,
        _ => return None,
    })
}

fn next_day(call: &Call<'_>) -> Result<ArrayRef> {
    let (days, names) = (call.date(0)?, call.text(1)?);
    values::<Date32Type>(call.rows, |row| {
        let (day, name) = (i64::from(some!(days.get(row))), some!(names.get(row)));
        match named_weekday(name) {
            Some(wanted) => date(day + 1 + (wanted - weekday(day + 1)).rem_euclid(7)).map(Some),
            None if call.ansi => exec_err!("[ILLEGAL_DAY_OF_WEEK] '{name}' is not the name of a day of the week"),
            None => Ok(None),
        }
    })
}

fn trunc(call: &Call<'_>) -> Result<ArrayRef> {
    let (days, units) = (call.date(0)?, call.text(1)?);
    values::<Date32Type>(call.rows, |row| {
        let day = i64::from(some!(days.get(row)));
        match some!(Unit::of_truncation(some!(units.get(row)))) {
            unit @ (Unit::Week | Unit::Month | Unit::Quarter | Unit::Year) => date(unit.cut_days(day)).map(Some),
            _ => Ok(None),
        }
    })
}

fn date_trunc(call: &Call<'_>) -> Result<ArrayRef> {
    let (units, instants) = (call.text(0)?, call.timestamp(1)?);
    timestamps(call.rows, |row| {
        let unit = some!(Unit::of_truncation(some!(units.get(row))));
        unit.cut(some!(instants.get(row))).map(Some)
    })
}

fn months_between_instants(call: &Call<'_>) -> Result<ArrayRef> {
    let (to, from) = (call.timestamp(0)?, call.timestamp(1)?);
    let round = if call.has(2) { Some(call.bool(2)?) } else { None };
    values::<Float64Type>(call.rows, |row| {
        let (to, from) = (some!(to.get(row)), some!(from.get(row)));
        let round = match &round {
            Some(round) => some!(round.get(row)),
            None => true,
        };
        Ok(Some(months_between(to, from, round)))
    })
}

fn unknown_unit<T>(unit: &str) -> Result<T> {
    exec_err!(
        "[INVALID_PARAMETER_VALUE.DATETIME_UNIT] '{unit}' is not a unit of time; use YEAR, QUARTER, MONTH, WEEK, DAY, \
         DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND"
    )
}

/// A unit as (months, microseconds); exactly one is not zero.
fn step(unit: &str) -> Result<(i64, i64)> {
    Ok(match unit.to_ascii_uppercase().as_str() {
        "YEAR" | "YEARS" => (12, 0),
        "QUARTER" | "QUARTERS" => (3, 0),
        "MONTH" | "MONTHS" => (1, 0),
        "WEEK" | "WEEKS" => (0, 7 * DAY),
        "DAY" | "DAYS" | "DAYOFYEAR" => (0, DAY),
        "HOUR" | "HOURS" => (0, HOUR),
        "MINUTE" | "MINUTES" => (0, MINUTE),
        "SECOND" | "SECONDS" => (0, SECOND),
        "MILLISECOND" | "MILLISECONDS" => (0, 1000),
        "MICROSECOND" | "MICROSECONDS" => (0, 1),
        _ => return unknown_unit(unit),
    })
}

fn timestamp_add(call: &Call<'_>) -> Result<ArrayRef> {
    let (units, counts, instants) = (call.text(0)?, call.long(1)?, call.timestamp(2)?);
    timestamps(call.rows, |row| {
        let (months, micros) = step(some!(units.get(row)))?;
        let (count, instant) = (some!(counts.get(row)), some!(instants.get(row)));
        let overflow =
            || exec_datafusion_err!("[DATETIME_OVERFLOW] adding {count} units leaves the range of TIMESTAMP");
        // A month count beyond any date is refused before the calendar multiplies it.
        let months = months.checked_mul(count).filter(|m| m.abs() < 12 * 1_000_000).ok_or_else(overflow)?;
        let micros = micros.checked_mul(count).ok_or_else(overflow)?;
        shift(instant, months, 0, micros).map(Some)
    })
}

fn timestamp_diff(call: &Call<'_>) -> Result<ArrayRef> {
    let (units, starts, ends) = (call.text(0)?, call.timestamp(1)?, call.timestamp(2)?);
    values::<Int64Type>(call.rows, |row| {
        let (months, micros) = step(some!(units.get(row)))?;
        let (start, end) = (some!(starts.get(row)), some!(ends.get(row)));
        if months > 0 {
            return Ok(Some(months_between_whole(start, end) / months));
        }
        match end.checked_sub(start) {
            Some(difference) => Ok(Some(difference / micros)),
            None => exec_err!("[ARITHMETIC_OVERFLOW] the timestamps are too far apart"),
        }
    })
}

/// Days and months of a DATE moved by an interval; an interval with a time of day makes a TIMESTAMP.
pub(crate) const DATE_PLUS_INTERVAL: &str = "date_plus_interval";

fn date_plus_interval_type(_: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match scalars.get(1).copied().flatten() {
        Some(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { nanoseconds, .. })))
            if *nanoseconds != 0 =>
        {
            timestamp_type()
        }
        Some(ScalarValue::IntervalDayTime(Some(interval))) if interval.milliseconds != 0 => timestamp_type(),
        _ => DataType::Date32,
    })
}

fn date_plus_interval(call: &Call<'_>) -> Result<ArrayRef> {
    let (days, signs) = (call.date(0)?, call.int(2)?);
    let (intervals, stride) = intervals(call, 1)?;
    let at = |row: usize| {
        let index = row * stride;
        (!intervals.is_null(index)).then(|| intervals.value(index))
    };
    if call.returns == &DataType::Date32 {
        return values::<Date32Type>(call.rows, |row| {
            let (day, sign) = (i64::from(some!(days.get(row))), i64::from(some!(signs.get(row)).signum()));
            let interval = some!(at(row));
            if interval.nanoseconds != 0 {
                return exec_err!(
                    "[INVALID_INTERVAL_WITH_MICROSECONDS_ADDITION] cannot add an interval with a time of day to a DATE; cast it to TIMESTAMP first"
                );
            }
            let day = add_months(day, sign * i64::from(interval.months));
            date(day + sign * i64::from(interval.days)).map(Some)
        });
    }
    timestamps(call.rows, |row| {
        let (day, sign) = (i64::from(some!(days.get(row))), i64::from(some!(signs.get(row)).signum()));
        let interval = some!(at(row));
        let (months, days) = (sign * i64::from(interval.months), sign * i64::from(interval.days));
        shift(midnight(day)?, months, days, sign * (interval.nanoseconds / 1000)).map(Some)
    })
}

/// The DURATION between two dates.
pub(crate) const DATE_MINUS_DATE: &str = "date_minus_date";

fn date_minus_date(call: &Call<'_>) -> Result<ArrayRef> {
    let (ends, starts) = (call.date(0)?, call.date(1)?);
    values::<DurationMicrosecondType>(call.rows, |row| {
        let (end, start) = (i64::from(some!(ends.get(row))), i64::from(some!(starts.get(row))));
        midnight(end - start).map(Some)
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (day, instant, text) = (Kind::Date, Kind::Timestamp, Kind::Text);
    let duration = DataType::Duration(TimeUnit::Microsecond);
    vec![
        Function::new("date_add", &[day, Kind::Int], DataType::Date32, |call| moved(call, 1))
            .fails_on(&[0, 1])
            .aliases(&["dateadd"]),
        Function::new("date_sub", &[day, Kind::Int], DataType::Date32, |call| moved(call, -1)).fails_on(&[0, 1]),
        Function::new("datediff", &[day, day], DataType::Int32, date_diff).aliases(&["date_diff"]),
        Function::new("add_months", &[day, Kind::Int], DataType::Date32, add_months_to_date),
        Function::new("last_day", &[day], DataType::Date32, last_day),
        Function::new("next_day", &[day, text], DataType::Date32, next_day).fails_on(&[1]).nulls(Nulls::Possible),
        Function::new("trunc", &[day, text], DataType::Date32, trunc).nulls(Nulls::Possible),
        Function::new("date_trunc", &[text, instant], timestamp_type(), date_trunc).nulls(Nulls::Possible),
        Function::new("months_between", &[instant, instant, Kind::Bool], DataType::Float64, months_between_instants)
            .optional(1),
        Function::new("timestampadd", &[text, Kind::Long, instant], timestamp_type(), timestamp_add).fails_on(&[0, 1]),
        Function::new("timestampdiff", &[text, instant, instant], DataType::Int64, timestamp_diff).fails_on(&[0]),
        Function::new(DATE_PLUS_INTERVAL, &[day, Kind::Any, Kind::Int], DataType::Date32, date_plus_interval)
            .returns_by(date_plus_interval_type),
        Function::new(DATE_MINUS_DATE, &[day, day], duration, date_minus_date),
    ]
}
