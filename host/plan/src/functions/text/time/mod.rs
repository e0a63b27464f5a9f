//! Dates and timestamps: the calendar, reading and writing, and Spark's functions over them.
//!
//! Where it stands: beside the functions of text; `planner` of the topic uses its operators.
//!
//! Rule of its life: a DATE is days, a TIMESTAMP is microseconds, both since 1970-01-01 in UTC.

pub(crate) mod arithmetic;
pub(crate) mod calendar;
pub(crate) mod convert;
mod fields;
pub(crate) mod format;
pub(crate) mod interval;
pub(crate) mod parse;
pub(crate) mod pattern;
pub(crate) mod zone;

use super::function::Function;

/// All functions of dates and timestamps.
pub(super) fn functions() -> Vec<Function> {
    let mut all = fields::functions();
    all.extend(arithmetic::functions());
    all.extend(convert::functions());
    all.extend(interval::functions());
    all
}
