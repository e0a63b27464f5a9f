//! Arrays as sets: `array_distinct`, `array_union`, `array_intersect`, `array_except`.
//!
//! The first occurrence keeps its place; a null equals a null; results have no duplicates.

use super::super::coercion::{first, one_list, same_lists};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks, stack};
use super::super::order::{comparable, require_order};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::collections::HashSet;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, coerce, run| Definition {
        name,
        aliases: &[],
        arguments: (arguments, arguments),
        coerce,
        result: first,
        may_be_null: false,
        never_null: false,
        run,
    };
    vec![
        definition("array_distinct", 1, coerce_one, distinct),
        definition("array_union", 2, coerce_two, union),
        definition("array_intersect", 2, coerce_two, |call, args| filtered(call, args, true)),
        definition("array_except", 2, coerce_two, |call, args| filtered(call, args, false)),
    ]
}

fn coerce_one(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    require_order(name, &types[0])?;
    one_list(name, types, ansi)
}

fn coerce_two(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let types = same_lists(name, types, ansi)?;
    require_order(name, &types[0])?;
    Ok(types)
}

fn distinct(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let held = comparable(&lists.values)?;
    let mut picks = Picks::with_capacity(call.rows);
    let mut seen = HashSet::new();
    for row in 0..call.rows {
        let Some(range) = lists.row(row) else {
            picks.end_null()?;
            continue;
        };
        seen.clear();
        range.filter(|&place| seen.insert(held.row(place))).for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn union(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let (left, right) = (Lists::of(&args[0])?, Lists::of(&args[1])?);
    let (values, starts) = stack(&[&left.values, &right.values])?;
    let held = comparable(&values)?;
    let mut picks = Picks::with_capacity(call.rows);
    let mut seen = HashSet::new();
    for row in 0..call.rows {
        let (Some(l), Some(r)) = (left.row(row), right.row(row)) else {
            picks.end_null()?;
            continue;
        };
        seen.clear();
        l.chain(r.map(|place| place + starts[1]))
            .filter(|&place| seen.insert(held.row(place)))
            .for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&values, call.output)
}

/// The left array without duplicates, and only what the right one has, or has not.
fn filtered(call: &Call<'_>, args: &[ArrayRef], keep_common: bool) -> Result<ArrayRef> {
    let (left, right) = (Lists::of(&args[0])?, Lists::of(&args[1])?);
    let (left_rows, right_rows) = (comparable(&left.values)?, comparable(&right.values)?);
    let mut picks = Picks::with_capacity(call.rows);
    let (mut seen, mut other) = (HashSet::new(), HashSet::new());
    for row in 0..call.rows {
        let (Some(l), Some(r)) = (left.row(row), right.row(row)) else {
            picks.end_null()?;
            continue;
        };
        seen.clear();
        other.clear();
        other.extend(r.map(|place| right_rows.row(place)));
        l.filter(|&place| other.contains(&left_rows.row(place)) == keep_common)
            .filter(|&place| seen.insert(left_rows.row(place)))
            .for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&left.values, call.output)
}
