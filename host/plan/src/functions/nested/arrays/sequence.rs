//! `sequence`: numbers, dates or times from a start to an inclusive stop, by a step.
//!
//! Without a step the sequence goes by one (numbers) or by one day (dates and times), up or down as the stop
//! demands. A step that leads away from the stop is an error.

use super::super::coercion::{common, list_of, mismatch};
use super::super::function::{Call, Definition};
use super::super::lists::list;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use chrono::{DateTime, Months};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use std::sync::Arc;

const DAY_US: i64 = 86_400_000_000;

/// The most elements in one batch.
const MOST: usize = 1 << 27;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "sequence",
        aliases: &[],
        arguments: (2, 3),
        coerce,
        result,
        may_be_null: false,
        never_null: false,
        run,
    }]
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn coerce(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let bound = common(name, &types[..2], ansi)?;
    if bound.is_integer() || bound.is_null() {
        let all = common(name, types, ansi)?;
        let all = if all.is_null() { DataType::Int32 } else { all };
        return if all.is_integer() { Ok(vec![all; types.len()]) } else { mismatch(name, "an integer step", &all) };
    }
    let bound = match bound {
        DataType::Date32 => bound,
        DataType::Timestamp(..) => timestamp(),
        other => return mismatch(name, "integers, dates or timestamps", &other),
    };
    let mut coerced = vec![bound.clone(), bound];
    match types.get(2) {
        None => {}
        Some(DataType::Interval(_) | DataType::Duration(_) | DataType::Null) => {
            coerced.push(DataType::Interval(IntervalUnit::MonthDayNano));
        }
        Some(other) => return mismatch(name, "an interval as step", other),
    }
    Ok(coerced)
}

fn result(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(types[0].clone()))
}

/// One step of a sequence.
#[derive(Clone, Copy)]
struct Step {
    months: i64,
    /// Plain units: the number itself, or microseconds.
    units: i64,
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let element = args[0].data_type().clone();
    let (starts, stops) = (plain(&args[0])?, plain(&args[1])?);
    let mut values = Vec::new();
    let mut offsets = vec![0_i32];
    let mut valid = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let known = starts.is_valid(row) && stops.is_valid(row) && args.get(2).is_none_or(|step| step.is_valid(row));
        valid.push(known);
        if known {
            let (start, stop) = (starts.value(row), stops.value(row));
            let step = match args.get(2) {
                Some(steps) => given_step(steps, row)?,
                None => {
                    let one = if element.is_integer() { 1 } else { DAY_US };
                    Step { months: 0, units: if start <= stop { one } else { -one } }
                }
            };
            fill(call.name, &mut values, start, stop, step)?;
        }
        offsets.push(i32::try_from(values.len()).map_err(|_| exec_datafusion_err!("sequence is too long"))?);
    }
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    let values = match &element {
        DataType::Date32 => {
            let days = values.as_primitive::<Int64Type>().unary::<_, Int64Type>(|us| us.div_euclid(DAY_US));
            cast(&cast(&days, &DataType::Int32)?, &DataType::Date32)?
        }
        other => cast(&values, other)?,
    };
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    list(values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls, call.output)
}

/// The bounds as 64-bit numbers: themselves, or microseconds since 1970.
fn plain(array: &ArrayRef) -> Result<Int64Array> {
    let array = match array.data_type() {
        DataType::Date32 => cast(array, &timestamp())?,
        _ => Arc::clone(array),
    };
    Ok(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn given_step(steps: &ArrayRef, row: usize) -> Result<Step> {
    if let DataType::Interval(_) = steps.data_type() {
        let interval = steps.as_primitive::<IntervalMonthDayNanoType>().value(row);
        let units = i64::from(interval.days) * DAY_US + interval.nanoseconds / 1000;
        return Ok(Step { months: i64::from(interval.months), units });
    }
    let numbers = cast(&steps.slice(row, 1), &DataType::Int64)?;
    Ok(Step { months: 0, units: numbers.as_primitive::<Int64Type>().value(0) })
}

fn fill(name: &str, values: &mut Vec<i64>, start: i64, stop: i64, step: Step) -> Result<()> {
    let direction = if step.months != 0 { step.months.signum() } else { step.units.signum() };
    if direction == 0 && start == stop {
        values.push(start);
        return Ok(());
    }
    if direction == 0 || (direction > 0) != (start <= stop) && start != stop {
        return exec_err!(
            "[ILLEGAL_SEQUENCE_BOUNDARIES] `{name}` cannot go from {start} to {stop} by steps of {} months and {}",
            step.months,
            step.units
        );
    }
    for count in 0.. {
        let Some(next) = nth(start, step, count) else { return Ok(()) };
        if direction > 0 && next > stop || direction < 0 && next < stop {
            return Ok(());
        }
        if values.len() >= MOST {
            return exec_err!(
                "[COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION] `{name}` may make at most {MOST} elements in one batch"
            );
        }
        values.push(next);
    }
    Ok(())
}

/// The start and `count` steps; months are counted from the start, so that the 31st comes back after a short month.
fn nth(start: i64, step: Step, count: i64) -> Option<i64> {
    let moved = start.checked_add(step.units.checked_mul(count)?)?;
    if step.months == 0 {
        return Some(moved);
    }
    let months = step.months.checked_mul(count)?;
    let time = DateTime::from_timestamp_micros(start)?;
    let distance = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let shifted = if months >= 0 { time.checked_add_months(distance)? } else { time.checked_sub_months(distance)? };
    shifted.timestamp_micros().checked_add(step.units.checked_mul(count)?)
}
