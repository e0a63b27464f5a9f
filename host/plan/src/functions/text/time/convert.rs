//! Between dates, timestamps, texts and numbers: `to_date`, `date_format`, `unix_timestamp`, `make_timestamp`, …
//!
//! Where it stands: a group of [`Function`]s over the calendar, the patterns and the zones.
//!
//! Rule of its life: a text that does not fit is an error in ANSI mode and NULL otherwise; the `try_` forms give NULL
//! in both. A broken pattern is an error always.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringArray};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};

use super::super::column::{texts, timestamps, values};
use super::super::function::{Call, Column, Function, Nulls, some, timestamp_type};
use super::super::kind::{Kind, Rules, to_text};
use super::super::memo::Memo;
use super::calendar::{HOUR, MINUTE, SECOND, checked_days, date, day_of, midnight, shift};
use super::parse;
use super::pattern::{Pattern, Use};
use super::zone::zone;
use crate::functions::expr::text_in;

/// What `from_unixtime` and `unix_timestamp` use without a pattern.
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn cannot_parse(text: &str, pattern: &str, other: &str) -> DataFusionError {
    exec_datafusion_err!(
        "[CANNOT_PARSE_TIMESTAMP] the text '{text}' does not fit the pattern '{pattern}'; use {other} to get NULL instead"
    )
}

/// Instants of a source argument: texts by the pattern of argument 1, all else as it is.
fn instants(call: &Call<'_>, default: Option<&str>, lenient: bool) -> Result<(ArrayRef, usize)> {
    let (source, stride) = call.raw(0);
    let strict = call.ansi && !lenient;
    if !is_text(source.data_type()) || (!call.has(1) && default.is_none()) {
        return Ok((Kind::Timestamp.canonical(source, Rules { ansi: strict, ..call.rules() })?, stride));
    }
    let source = to_text(source)?;
    let source: &StringArray = source.as_string();
    let patterns: Option<Column<'_, StringArray>> = if call.has(1) { Some(call.text(1)?) } else { None };
    let mut memo = Memo::new();
    let array = timestamps(call.rows, |row| {
        let index = row * stride;
        if source.is_null(index) {
            return Ok(None);
        }
        let pattern = match &patterns {
            Some(patterns) => some!(patterns.get(row)),
            None => default.unwrap_or(DEFAULT_PATTERN),
        };
        let text = source.value(index);
        let compiled = memo.get(pattern, |p| Pattern::compile(p, Use::Read))?;
        match compiled.read(text) {
            Some(instant) => Ok(Some(instant)),
            None if strict => Err(cannot_parse(text, pattern, "try_to_timestamp")),
            None => Ok(None),
        }
    })?;
    Ok((array, 1))
}

fn timestamp_of(call: &Call<'_>, lenient: bool) -> Result<ArrayRef> {
    let (array, stride) = instants(call, None, lenient)?;
    let array: &PrimitiveArray<TimestampMicrosecondType> = array.as_primitive();
    timestamps(call.rows, |row| {
        let index = row * stride;
        Ok((!array.is_null(index)).then(|| array.value(index)))
    })
}

fn date_of(call: &Call<'_>, lenient: bool) -> Result<ArrayRef> {
    let (source, stride) = call.raw(0);
    if call.has(1) && is_text(source.data_type()) {
        let (array, stride) = instants(call, None, lenient)?;
        let array: &PrimitiveArray<TimestampMicrosecondType> = array.as_primitive();
        return values::<Date32Type>(call.rows, |row| {
            let index = row * stride;
            day_of(some!((!array.is_null(index)).then(|| array.value(index)))).map(Some)
        });
    }
    let array = Kind::Date.canonical(source, Rules { ansi: call.ansi && !lenient, ..call.rules() })?;
    let array: &PrimitiveArray<Date32Type> = array.as_primitive();
    values::<Date32Type>(call.rows, |row| {
        let index = row * stride;
        Ok((!array.is_null(index)).then(|| array.value(index)))
    })
}

fn unix_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let (array, stride) = instants(call, Some(DEFAULT_PATTERN), false)?;
    let array: &PrimitiveArray<TimestampMicrosecondType> = array.as_primitive();
    values::<Int64Type>(call.rows, |row| {
        let index = row * stride;
        // Towards zero, unlike unix_seconds.
        Ok((!array.is_null(index)).then(|| array.value(index) / SECOND))
    })
}

fn date_format(call: &Call<'_>) -> Result<ArrayRef> {
    let (instants, patterns) = (call.timestamp(0)?, call.text(1)?);
    let mut memo = Memo::new();
    texts(call.rows, |row, out| {
        let (instant, pattern) = (some!(instants.get(row)), some!(patterns.get(row)));
        memo.get(pattern, |p| Pattern::compile(p, Use::Write))?.write(instant, out);
        Ok(Some(()))
    })
}

fn seconds_to_micros(seconds: i64) -> Result<i64> {
    match seconds.checked_mul(SECOND) {
        Some(micros) => Ok(micros),
        None => exec_err!("[ARITHMETIC_OVERFLOW] {seconds} seconds are out of the range of TIMESTAMP"),
    }
}

fn from_unixtime(call: &Call<'_>) -> Result<ArrayRef> {
    let seconds = call.long(0)?;
    let patterns = if call.has(1) { Some(call.text(1)?) } else { None };
    let mut memo = Memo::new();
    texts(call.rows, |row, out| {
        let micros = seconds_to_micros(some!(seconds.get(row)))?;
        let pattern = match &patterns {
            Some(patterns) => some!(patterns.get(row)),
            None => DEFAULT_PATTERN,
        };
        memo.get(pattern, |p| Pattern::compile(p, Use::Write))?.write(micros, out);
        Ok(Some(()))
    })
}

/// Instants from whole numbers of a unit.
fn from_units(call: &Call<'_>, unit: i64) -> Result<ArrayRef> {
    let counts = call.long(0)?;
    timestamps(call.rows, |row| {
        let count = some!(counts.get(row));
        match count.checked_mul(unit) {
            Some(micros) => Ok(Some(micros)),
            None => exec_err!("[ARITHMETIC_OVERFLOW] {count} is out of the range of TIMESTAMP"),
        }
    })
}

fn timestamp_seconds(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, stride) = call.raw(0);
    match source.data_type() {
        DataType::Float32 | DataType::Float64 => {
            let source = Kind::Double.canonical(source, call.rules())?;
            let source: &PrimitiveArray<Float64Type> = source.as_primitive();
            timestamps(call.rows, |row| {
                let index = row * stride;
                let seconds = some!((!source.is_null(index)).then(|| source.value(index)));
                if !seconds.is_finite() {
                    return Ok(None);
                }
                let micros = seconds * 1e6;
                if micros.abs() >= 9.3e18 {
                    return exec_err!("[ARITHMETIC_OVERFLOW] {seconds} seconds are out of the range of TIMESTAMP");
                }
                #[expect(clippy::cast_possible_truncation, reason = "the range was checked, the fraction is cut")]
                Ok(Some(micros as i64))
            })
        }
        DataType::Decimal128(_, scale) => {
            let scale = u32::try_from(*scale).unwrap_or(0);
            let source: &PrimitiveArray<Decimal128Type> = source.as_primitive();
            timestamps(call.rows, |row| {
                let index = row * stride;
                let value = some!((!source.is_null(index)).then(|| source.value(index)));
                decimal_micros(value, scale).map(Some)
            })
        }
        _ => {
            let source = Kind::Long.canonical(source, call.rules())?;
            let source: &PrimitiveArray<Int64Type> = source.as_primitive();
            timestamps(call.rows, |row| {
                let index = row * stride;
                seconds_to_micros(some!((!source.is_null(index)).then(|| source.value(index)))).map(Some)
            })
        }
    }
}

/// Microseconds of a decimal number of seconds; a finer fraction is an error.
fn decimal_micros(value: i128, scale: u32) -> Result<i64> {
    let micros = if scale <= 6 {
        value.checked_mul(10_i128.pow(6 - scale))
    } else {
        let unit = 10_i128.checked_pow(scale - 6).unwrap_or(i128::MAX);
        if value % unit != 0 {
            return exec_err!("[ARITHMETIC_OVERFLOW] the seconds have a fraction finer than microseconds");
        }
        Some(value / unit)
    };
    match micros.and_then(|m| i64::try_from(m).ok()) {
        Some(micros) => Ok(micros),
        None => exec_err!("[ARITHMETIC_OVERFLOW] the seconds are out of the range of TIMESTAMP"),
    }
}

/// Whole units since 1970 of an instant, towards the past.
fn to_units(call: &Call<'_>, unit: i64) -> Result<ArrayRef> {
    let instants = call.timestamp(0)?;
    values::<Int64Type>(call.rows, |row| Ok(instants.get(row).map(|micros| micros.div_euclid(unit))))
}

fn unix_date(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.date(0)?;
    values::<arrow::datatypes::Int32Type>(call.rows, |row| Ok(days.get(row)))
}

fn date_from_unix_date(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.int(0)?;
    values::<Date32Type>(call.rows, |row| Ok(days.get(row)))
}

fn make_date(call: &Call<'_>, lenient: bool) -> Result<ArrayRef> {
    let (years, months, days) = (call.int(0)?, call.int(1)?, call.int(2)?);
    values::<Date32Type>(call.rows, |row| {
        let (year, month, day) = (some!(years.get(row)), some!(months.get(row)), some!(days.get(row)));
        match checked_days(i64::from(year), i64::from(month), i64::from(day)) {
            Some(days) => date(days).map(Some),
            None if call.ansi && !lenient => exec_err!(
                "[DATETIME_FIELD_OUT_OF_BOUNDS] there is no date of year {year}, month {month}, day {day}; use \
                 try_make_date or switch off ANSI mode to get NULL instead"
            ),
            None => Ok(None),
        }
    })
}

/// Microseconds of the seconds argument of `make_timestamp`.
fn second_micros(call: &Call<'_>) -> Result<Vec<Option<i64>>> {
    let (source, stride) = call.raw(5);
    let whole =
        if source.data_type().is_integer() { Kind::Long } else { Kind::Number }.canonical(source, call.rules())?;
    let source =
        if source.data_type() == &DataType::Float32 { &Kind::Double.canonical(source, call.rules())? } else { source };
    let one = |index: usize| -> Result<Option<i64>> {
        if source.is_null(index) {
            return Ok(None);
        }
        match source.data_type() {
            DataType::Decimal128(_, scale) => {
                let value = source.as_primitive::<Decimal128Type>().value(index);
                let scale = u32::try_from(*scale).unwrap_or(0);
                if scale <= 6 {
                    decimal_micros(value, scale).map(Some)
                } else {
                    decimal_micros(value / 10_i128.checked_pow(scale - 6).unwrap_or(i128::MAX), 6).map(Some)
                }
            }
            DataType::Float64 => {
                let seconds = source.as_primitive::<Float64Type>().value(index);
                if seconds.is_nan() || seconds.abs() >= 1e9 {
                    return exec_err!(
                        "[DATETIME_FIELD_OUT_OF_BOUNDS] {seconds} is not a number of seconds of a minute"
                    );
                }
                #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
                Ok(Some((seconds * 1e6).round() as i64))
            }
            _ => seconds_to_micros(whole.as_primitive::<Int64Type>().value(index)).map(Some),
        }
    };
    (0..call.rows).map(|row| one(row * stride)).collect()
}

fn make_timestamp(call: &Call<'_>, lenient: bool) -> Result<ArrayRef> {
    let (years, months, days) = (call.int(0)?, call.int(1)?, call.int(2)?);
    let (hours, minutes) = (call.int(3)?, call.int(4)?);
    let seconds = second_micros(call)?;
    let zones = if call.has(6) { Some(call.text(6)?) } else { None };
    timestamps(call.rows, |row| {
        let (year, month, day) = (some!(years.get(row)), some!(months.get(row)), some!(days.get(row)));
        let (hour, minute) = (i64::from(some!(hours.get(row))), i64::from(some!(minutes.get(row))));
        let micros = some!(seconds.get(row).copied().flatten());
        // 60 seconds are the next minute, but only exactly 60.
        let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60 * SECOND).contains(&micros);
        let days = checked_days(i64::from(year), i64::from(month), i64::from(day)).filter(|_| fits);
        let Some(days) = days else {
            if call.ansi && !lenient {
                return exec_err!(
                    "[DATETIME_FIELD_OUT_OF_BOUNDS] there is no timestamp of year {year}, month {month}, day {day}, hour \
                     {hour}, minute {minute} and these seconds; use try_make_timestamp to get NULL instead"
                );
            }
            return Ok(None);
        };
        let local = shift(midnight(days)?, 0, 0, hour * HOUR + minute * MINUTE + micros)?;
        match &zones {
            Some(zones) => in_zone(some!(zones.get(row)), |zone| zone.to_utc(local)).map(Some),
            None => Ok(Some(local)),
        }
    })
}

fn in_zone(name: &str, apply: impl FnOnce(super::zone::Zone) -> Option<i64>) -> Result<i64> {
    let Some(zone) = zone(name) else {
        return exec_err!(
            "[INVALID_TIMEZONE] '{name}' is not a time zone; use a region such as Europe/Berlin or an offset such as +02:00"
        );
    };
    match apply(zone) {
        Some(micros) => Ok(micros),
        None => exec_err!("[DATETIME_OVERFLOW] the timestamp leaves the range of TIMESTAMP in the time zone '{name}'"),
    }
}

/// Reads an instant as UTC and shows it in a zone, or the other way round.
fn between_zones(call: &Call<'_>, to_local: bool) -> Result<ArrayRef> {
    let (instants, zones) = (call.timestamp(0)?, call.text(1)?);
    let mut memo = Memo::new();
    timestamps(call.rows, |row| {
        let (micros, name) = (some!(instants.get(row)), some!(zones.get(row)));
        let zone = *memo.get(name, |name| match zone(name) {
            Some(zone) => Ok(zone),
            None => exec_err!("[INVALID_TIMEZONE] '{name}' is not a time zone; use a region such as Europe/Berlin or an offset such as +02:00"),
        })?;
        match if to_local { zone.to_local(micros) } else { zone.to_utc(micros) } {
            Some(micros) => Ok(Some(micros)),
            None => {
                exec_err!("[DATETIME_OVERFLOW] the timestamp leaves the range of TIMESTAMP in the time zone '{name}'")
            }
        }
    })
}

/// The value of `DATE'…'`.
pub(crate) const DATE_LITERAL: &str = "date_literal";
/// The value of `TIMESTAMP'…'`.
pub(crate) const TIMESTAMP_LITERAL: &str = "timestamp_literal";

fn invalid_literal<T>(text: &str, kind: &str) -> Result<T> {
    exec_err!("[INVALID_TYPED_LITERAL] the value of the {kind} literal '{text}' is malformed")
}

fn date_literal(call: &Call<'_>) -> Result<ArrayRef> {
    let literals = call.text(0)?;
    values::<Date32Type>(call.rows, |row| {
        let text = some!(literals.get(row));
        parse::date(text).map_or_else(|| invalid_literal(text, "DATE"), |days| Ok(Some(days)))
    })
}

fn timestamp_literal(call: &Call<'_>) -> Result<ArrayRef> {
    let literals = call.text(0)?;
    timestamps(call.rows, |row| {
        let text = some!(literals.get(row));
        text_in::timestamp(text, call.today)
            .map_or_else(|| invalid_literal(text, "TIMESTAMP"), |micros| Ok(Some(micros)))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, long, int, instant) = (Kind::Text, Kind::Long, Kind::Int, Kind::Timestamp);
    let source = Kind::Any;
    let parts = [int, int, int, int, int, Kind::Number, text];
    let possible = Nulls::Possible;
    let stamp = timestamp_type();
    vec![
        Function::new("to_date", &[source, text], DataType::Date32, |c| date_of(c, false))
            .fails_on(&[0, 1])
            .optional(1)
            .nulls(possible),
        Function::new("try_to_date", &[source, text], DataType::Date32, |c| date_of(c, true))
            .fails_on(&[1])
            .optional(1)
            .nulls(possible),
        Function::new("to_timestamp", &[source, text], stamp.clone(), |c| timestamp_of(c, false))
            .fails_on(&[0, 1])
            .aliases(&["to_timestamp_ltz"])
            .optional(1)
            .nulls(possible),
        Function::new("try_to_timestamp", &[source, text], stamp.clone(), |c| timestamp_of(c, true))
            .fails_on(&[1])
            .optional(1)
            .nulls(possible),
        Function::new("date_format", &[instant, text], DataType::Utf8, date_format).fails_on(&[1]),
        // Of dates and timestamps only; the formats of numbers are others.
        Function::new("to_char", &[instant, text], DataType::Utf8, date_format).fails_on(&[1]).aliases(&["to_varchar"]),
        Function::new("from_unixtime", &[long, text], DataType::Utf8, from_unixtime).fails_on(&[0, 1]).optional(1),
        Function::new("unix_timestamp", &[source, text], DataType::Int64, unix_timestamp)
            .fails_on(&[0, 1])
            .aliases(&["to_unix_timestamp"])
            .optional(1)
            .nulls(possible),
        Function::new("unix_seconds", &[instant], DataType::Int64, |c| to_units(c, SECOND)),
        Function::new("unix_millis", &[instant], DataType::Int64, |c| to_units(c, 1000)),
        Function::new("unix_micros", &[instant], DataType::Int64, |c| to_units(c, 1)),
        Function::new("unix_date", &[Kind::Date], DataType::Int32, unix_date),
        Function::new("date_from_unix_date", &[int], DataType::Date32, date_from_unix_date),
        Function::new("timestamp_seconds", &[Kind::Number], stamp.clone(), timestamp_seconds)
            .fails_on(&[0])
            .nulls(possible),
        Function::new("timestamp_millis", &[long], stamp.clone(), |c| from_units(c, 1000)).fails_on(&[0]),
        Function::new("timestamp_micros", &[long], stamp.clone(), |c| from_units(c, 1)).fails_on(&[0]),
        Function::new("make_date", &[int, int, int], DataType::Date32, |c| make_date(c, false))
            .fails_on(&[0, 1, 2])
            .nulls(possible),
        Function::new("try_make_date", &[int, int, int], DataType::Date32, |c| make_date(c, true)).nulls(possible),
        Function::new("make_timestamp", &parts, stamp.clone(), |c| make_timestamp(c, false))
            .fails_on(&[0, 1, 2, 3, 4, 5, 6])
            .aliases(&["make_timestamp_ltz"])
            .optional(1)
            .nulls(possible),
        Function::new("try_make_timestamp", &parts, stamp.clone(), |c| make_timestamp(c, true))
            .fails_on(&[6])
            .aliases(&["try_make_timestamp_ltz"])
            .optional(1)
            .nulls(possible),
        Function::new("from_utc_timestamp", &[instant, text], stamp.clone(), |c| between_zones(c, true)).fails_on(&[1]),
        Function::new("to_utc_timestamp", &[instant, text], stamp.clone(), |c| between_zones(c, false)).fails_on(&[1]),
        Function::new(DATE_LITERAL, &[text], DataType::Date32, date_literal).fails_on(&[0]),
        Function::new(TIMESTAMP_LITERAL, &[text], stamp, timestamp_literal).fails_on(&[0]),
    ]
}
