//! `sort_array`, `array_sort` and the reversal of arrays.
//!
//! `sort_array` puts nulls first when ascending and last when descending, `array_sort` always last. With a comparator,
//! `array_sort` is one of the functions that take lambdas.

use super::super::coercion::{first, one_list};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks};
use super::super::order::{comparable, require_order};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![
        Definition {
            name: "sort_array",
            aliases: &[],
            arguments: (1, 2),
            coerce: coerce_sort,
            result: first,
            may_be_null: false,
            never_null: false,
            run: sort,
        },
        Definition {
            name: "array_sort",
            aliases: &[],
            arguments: (1, 1),
            coerce: coerce_sort,
            result: first,
            may_be_null: false,
            never_null: false,
            run: sort_nulls_last,
        },
        Definition {
            name: "__reverse_array",
            aliases: &[],
            arguments: (1, 1),
            coerce: one_list,
            result: first,
            may_be_null: false,
            never_null: false,
            run: reverse,
        },
    ]
}

fn coerce_sort(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    require_order(name, &types[0])?;
    let mut types = one_list(name, types, ansi)?;
    types.iter_mut().skip(1).for_each(|ascending| *ascending = DataType::Boolean);
    Ok(types)
}

fn sort(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let held = comparable(&lists.values)?;
    let ascending = args.get(1).map(|array| array.as_boolean());
    let mut picks = Picks::with_capacity(call.rows);
    let mut places = Vec::new();
    for row in 0..call.rows {
        let direction = ascending.map_or(Some(true), |ascending| ascending.is_valid(row).then(|| ascending.value(row)));
        let (Some(range), Some(ascending)) = (lists.row(row), direction) else {
            picks.end_null()?;
            continue;
        };
        places.clear();
        places.extend(range);
        if ascending {
            places.sort_by(|&l, &r| held.row(l).cmp(&held.row(r)));
        } else {
            places.sort_by(|&l, &r| held.row(r).cmp(&held.row(l)));
        }
        places.iter().for_each(|&place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn sort_nulls_last(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let held = comparable(&lists.values)?;
    let nulls = lists.values.logical_nulls();
    let is_null = |place: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(place));
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(range) = lists.row(row) else {
            picks.end_null()?;
            continue;
        };
        let mut places: Vec<_> = range.collect();
        places.sort_by(|&l, &r| is_null(l).cmp(&is_null(r)).then_with(|| held.row(l).cmp(&held.row(r))));
        places.into_iter().for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn reverse(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match lists.row(row) {
            None => picks.end_null()?,
            Some(range) => {
                range.rev().for_each(|place| picks.push(place));
                picks.end()?;
            }
        }
    }
    picks.finish(&lists.values, call.output)
}
