//! Parts of dates, timestamps and intervals: `year`, `weekofyear`, `extract(… FROM …)`, `monthname`, …
//!
//! Where it stands: a group of [`Function`]s; `EXTRACT` reaches `date_part` through the expression planner.
//!
//! Rule of its life: a part is an INT, except seconds with their fraction (DECIMAL(8,6)) and the small parts of intervals.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Int8Type, Int32Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};

use super::super::column::{slices, values};
use super::super::function::{Call, Function, some};
use super::super::kind::Kind;
use super::calendar::{DAY, HOUR, MINUTE, SECOND, civil, day_of_year, iso_week, midnight, weekday};
use super::pattern::{MONTHS, WEEKDAYS};

/// A part that can be extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    YearOfWeek,
    Quarter,
    Month,
    Week,
    Day,
    DayOfWeek,
    DayOfWeekIso,
    DayOfYear,
    Hour,
    Minute,
    Second,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "YEAR" | "Y" | "YEARS" | "YR" | "YRS" => Self::Year,
            "YEAROFWEEK" => Self::YearOfWeek,
            "QUARTER" | "QTR" => Self::Quarter,
            "MONTH" | "MON" | "MONS" | "MONTHS" => Self::Month,
            "WEEK" | "W" | "WEEKS" => Self::Week,
            "DAY" | "D" | "DAYS" => Self::Day,
            "DAYOFWEEK" | "DOW" => Self::DayOfWeek,
            "DAYOFWEEK_ISO" | "DOW_ISO" => Self::DayOfWeekIso,
            "DOY" | "DAYOFYEAR" => Self::DayOfYear,
            "HOUR" | "H" | "HOURS" | "HR" | "HRS" => Self::Hour,
            "MINUTE" | "M" | "MIN" | "MINS" | "MINUTES" => Self::Minute,
            "SECOND" | "S" | "SEC" | "SECONDS" | "SECS" => Self::Second,
            _ => return None,
        })
    }

    /// The part of a day.
    fn of_day(self, days: i64) -> i64 {
        let (year, month, day) = civil(days);
        match self {
            Self::Year => year,
            Self::YearOfWeek => iso_week(days).0,
            Self::Quarter => (month - 1) / 3 + 1,
            Self::Month => month,
            Self::Week => iso_week(days).1,
            Self::Day => day,
            Self::DayOfWeek => (weekday(days) + 1) % 7 + 1,
            Self::DayOfWeekIso => weekday(days) + 1,
            Self::DayOfYear => day_of_year(days),
            Self::Hour | Self::Minute | Self::Second => 0,
        }
    }

    /// The whole part of an instant.
    fn of_instant(self, micros: i64) -> i64 {
        let time = micros.rem_euclid(DAY);
        match self {
            Self::Hour => time / HOUR,
            Self::Minute => time % HOUR / MINUTE,
            Self::Second => time % MINUTE / SECOND,
            _ => self.of_day(micros.div_euclid(DAY)),
        }
    }

    /// The type of the part of a source of this type.
    fn result_type(self, source: &DataType) -> Option<DataType> {
        if !is_interval(source) {
            return Some(if self == Self::Second { DataType::Decimal128(8, 6) } else { DataType::Int32 });
        }
        match self {
            Self::Year | Self::Day => Some(DataType::Int32),
            Self::Month | Self::Hour | Self::Minute => Some(DataType::Int8),
            Self::Second => Some(DataType::Decimal128(8, 6)),
            _ => None,
        }
    }
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// The part named by a constant argument.
fn part_of(value: Option<&ScalarValue>) -> Result<Part> {
    let name = match value {
        Some(value) => value.try_as_str().flatten(),
        None => None,
    };
    let Some(name) = name else {
        return plan_err!("[NON_FOLDABLE_ARGUMENT] the field of `date_part` must be a constant STRING");
    };
    match Part::named(name) {
        Some(part) => Ok(part),
        None => plan_err!(
            "[INVALID_EXTRACT_FIELD] cannot extract `{name}`; use YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DAYOFWEEK_ISO, DOY, HOUR, MINUTE or SECOND"
        ),
    }
}

fn date_part_type(types: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
    let part = part_of(scalars.first().copied().flatten())?;
    let Some(source) = types.get(1) else {
        return plan_err!("[WRONG_NUM_ARGS] the function `date_part` takes 2 arguments");
    };
    match part.result_type(source) {
        Some(data_type) => Ok(data_type),
        None => plan_err!("[INVALID_EXTRACT_FIELD] an interval has no such field"),
    }
}

fn date_part(call: &Call<'_>) -> Result<ArrayRef> {
    let names = call.text(0)?;
    let part = match names.get(0) {
        Some(name) => part_of(Some(&ScalarValue::from(name)))?,
        None => return exec_err!("[NON_FOLDABLE_ARGUMENT] the field of `date_part` must be a constant STRING"),
    };
    let (source, stride) = call.raw(1);
    if is_interval(source.data_type()) {
        return interval_part(part, source, stride, call);
    }
    let source = Kind::DateOrTimestamp.canonical(source, call.rules())?;
    if source.data_type() == &DataType::Date32 {
        let days: &PrimitiveArray<Date32Type> = source.as_primitive();
        let at = |row: usize| {
            let index = row * stride;
            (!days.is_null(index)).then(|| i64::from(days.value(index)))
        };
        if part == Part::Second {
            let zeros: PrimitiveArray<Decimal128Type> = (0..call.rows).map(|row| at(row).map(|_| 0)).collect();
            return Ok(Arc::new(zeros.with_precision_and_scale(8, 6)?));
        }
        return values::<Int32Type>(call.rows, |row| small(at(row).map(|days| part.of_day(days))));
    }
    let instants: &PrimitiveArray<TimestampMicrosecondType> = source.as_primitive();
    let at = |row: usize| {
        let index = row * stride;
        (!instants.is_null(index)).then(|| instants.value(index))
    };
    if part == Part::Second {
        let seconds: PrimitiveArray<Decimal128Type> =
            (0..call.rows).map(|row| at(row).map(|micros| i128::from(micros.rem_euclid(MINUTE)))).collect();
        return Ok(Arc::new(seconds.with_precision_and_scale(8, 6)?));
    }
    values::<Int32Type>(call.rows, |row| small(at(row).map(|micros| part.of_instant(micros))))
}

fn small(value: Option<i64>) -> Result<Option<i32>> {
    match value.map(i32::try_from).transpose() {
        Ok(value) => Ok(value),
        Err(_) => exec_err!("[ARITHMETIC_OVERFLOW] the part of the date or interval is out of the range of INT"),
    }
}

/// Parts of an interval: months for the calendar parts, days and microseconds for the rest.
fn interval_part(part: Part, source: &ArrayRef, stride: usize, call: &Call<'_>) -> Result<ArrayRef> {
    let parts: Vec<Option<(i64, i64)>> = match source.data_type() {
        DataType::Duration(_) => {
            let source = cast(source, &DataType::Duration(TimeUnit::Microsecond))?;
            let source: &PrimitiveArray<DurationMicrosecondType> = source.as_primitive();
            source.iter().map(|v| v.map(|micros| (0, micros))).collect()
        }
        _ => {
            let source = cast(source, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let source: &PrimitiveArray<IntervalMonthDayNanoType> = source.as_primitive();
            let one = |i: IntervalMonthDayNano| -> Result<(i64, i64)> {
                match midnight(i64::from(i.days))?.checked_add(i.nanoseconds / 1000) {
                    Some(micros) => Ok((i64::from(i.months), micros)),
                    None => exec_err!("[ARITHMETIC_OVERFLOW] the interval is out of range"),
                }
            };
            source.iter().map(|v| v.map(one).transpose()).collect::<Result<_>>()?
        }
    };
    let whole = |row: usize| {
        parts.get(row * stride).copied().flatten().map(|(months, micros)| match part {
            Part::Year => months / 12,
            Part::Month => months % 12,
            Part::Day => micros / DAY,
            Part::Hour => micros % DAY / HOUR,
            Part::Minute => micros % HOUR / MINUTE,
            _ => micros % MINUTE,
        })
    };
    match part {
        Part::Second => {
            let seconds: PrimitiveArray<Decimal128Type> = (0..call.rows).map(|r| whole(r).map(i128::from)).collect();
            Ok(Arc::new(seconds.with_precision_and_scale(8, 6)?))
        }
        Part::Month | Part::Hour | Part::Minute => {
            let small: PrimitiveArray<Int8Type> =
                (0..call.rows).map(|r| whole(r).and_then(|v| i8::try_from(v).ok())).collect();
            Ok(Arc::new(small))
        }
        _ => values::<Int32Type>(call.rows, |row| small(whole(row))),
    }
}

/// A function that gives one part of a date.
macro_rules! day_part {
    ($name:literal, $aliases:expr, $part:expr) => {
        Function::new($name, &[Kind::Date], DataType::Int32, |call| {
            let days = call.date(0)?;
            values::<Int32Type>(call.rows, |row| small(days.get(row).map(|days| $part.of_day(i64::from(days)))))
        })
        .aliases($aliases)
    };
}

/// A function that gives one part of the time of day.
macro_rules! time_part {
    ($name:literal, $part:expr) => {
        Function::new($name, &[Kind::Timestamp], DataType::Int32, |call| {
            let instants = call.timestamp(0)?;
            values::<Int32Type>(call.rows, |row| small(instants.get(row).map(|micros| $part.of_instant(micros))))
        })
    };
}

fn day_name(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.date(0)?;
    slices(call.rows, |row| {
        let day = some!(days.get(row));
        Ok(usize::try_from(weekday(i64::from(day))).ok().and_then(|i| WEEKDAYS.get(i)).map(|name| &name[..3]))
    })
}

fn month_name(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.date(0)?;
    slices(call.rows, |row| {
        let (_, month, _) = civil(i64::from(some!(days.get(row))));
        Ok(usize::try_from(month - 1).ok().and_then(|i| MONTHS.get(i)).map(|name| &name[..3]))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    vec![
        day_part!("year", &[], Part::Year),
        day_part!("quarter", &[], Part::Quarter),
        day_part!("month", &[], Part::Month),
        day_part!("day", &["dayofmonth"], Part::Day),
        day_part!("dayofweek", &[], Part::DayOfWeek),
        Function::new("weekday", &[Kind::Date], DataType::Int32, |call| {
            let days = call.date(0)?;
            values::<Int32Type>(call.rows, |row| small(days.get(row).map(|days| weekday(i64::from(days)))))
        }),
        day_part!("dayofyear", &[], Part::DayOfYear),
        day_part!("weekofyear", &[], Part::Week),
        time_part!("hour", Part::Hour),
        time_part!("minute", Part::Minute),
        time_part!("second", Part::Second),
        Function::new("date_part", &[Kind::Text, Kind::Any], DataType::Int32, date_part)
            .aliases(&["datepart"])
            .returns_by(date_part_type),
        Function::new("dayname", &[Kind::Date], DataType::Utf8, day_name),
        Function::new("monthname", &[Kind::Date], DataType::Utf8, month_name),
    ]
}
