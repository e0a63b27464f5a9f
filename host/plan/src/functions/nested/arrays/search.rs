//! Finding in arrays: `array_contains`, `array_position`, `array_min`, `array_max`, `arrays_overlap`.
//!
//! Three-valued: an array with a null and without a match answers "unknown" where the question is yes or no.

use super::super::coercion::{boolean, element, list_and_element, one_list, same_lists};
use super::super::function::{Call, Definition};
use super::super::lists::Lists;
use super::super::order::{comparable, require_order};
use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Builder, new_null_array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use std::collections::HashSet;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, coerce, result, may_be_null, run| Definition {
        name,
        aliases: &[],
        arguments: (arguments, arguments),
        coerce,
        result,
        may_be_null,
        never_null: false,
        run,
    };
    vec![
        definition("array_contains", 2, coerce_search, boolean, true, contains),
        definition("array_position", 2, coerce_search, position_type, false, position),
        definition("array_min", 1, coerce_extreme, element, true, |call, args| extreme(call, args, true)),
        definition("array_max", 1, coerce_extreme, element, true, |call, args| extreme(call, args, false)),
        definition("arrays_overlap", 2, coerce_overlap, boolean, true, overlap),
    ]
}

fn coerce_search(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let types = list_and_element(name, types, ansi)?;
    require_order(name, &types[1])?;
    Ok(types)
}

fn coerce_extreme(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    require_order(name, &types[0])?;
    one_list(name, types, ansi)
}

fn coerce_overlap(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let types = same_lists(name, types, ansi)?;
    require_order(name, &types[0])?;
    Ok(types)
}

fn position_type(_name: &str, _types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int64)
}

fn contains(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let (held, wanted) = (comparable(&lists.values)?, comparable(&args[1])?);
    let nulls = lists.values.logical_nulls();
    let answers = (0..call.rows).map(|row| {
        let range = lists.row(row).filter(|_| !is_null(&args[1], row))?;
        if range.clone().any(|place| held.row(place) == wanted.row(row)) {
            return Some(true);
        }
        let unknown = nulls.as_ref().is_some_and(|nulls| range.clone().any(|place| nulls.is_null(place)));
        (!unknown).then_some(false)
    });
    Ok(Arc::new(answers.collect::<BooleanArray>()))
}

fn position(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let (held, wanted) = (comparable(&lists.values)?, comparable(&args[1])?);
    let answers = (0..call.rows).map(|row| {
        let mut range = lists.row(row).filter(|_| !is_null(&args[1], row))?;
        let start = range.start;
        Some(range.find(|&place| held.row(place) == wanted.row(row)).map_or(0, |place| (place - start + 1) as i64))
    });
    Ok(Arc::new(answers.collect::<Int64Array>()))
}

fn extreme(call: &Call<'_>, args: &[ArrayRef], smallest: bool) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    if lists.values.is_empty() {
        return Ok(new_null_array(call.output, call.rows));
    }
    let held = comparable(&lists.values)?;
    let nulls = lists.values.logical_nulls();
    let mut places = UInt32Builder::with_capacity(call.rows);
    for row in 0..call.rows {
        let some = lists
            .row(row)
            .into_iter()
            .flatten()
            .filter(|&place| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(place)));
        let best = some.reduce(|best, place| {
            let better = if smallest { held.row(place) < held.row(best) } else { held.row(place) > held.row(best) };
            if better { place } else { best }
        });
        places.append_option(best.map(|place| place as u32));
    }
    Ok(take(&lists.values, &places.finish(), None)?)
}

fn overlap(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let (left, right) = (Lists::of(&args[0])?, Lists::of(&args[1])?);
    let (left_rows, right_rows) = (comparable(&left.values)?, comparable(&right.values)?);
    let (left_nulls, right_nulls) = (left.values.logical_nulls(), right.values.logical_nulls());
    let answers = (0..call.rows).map(|row| {
        let (l, r) = (left.row(row)?, right.row(row)?);
        let mut unknown = false;
        let mut known = HashSet::with_capacity(l.len());
        for place in l.clone() {
            if left_nulls.as_ref().is_some_and(|nulls| nulls.is_null(place)) {
                unknown = true;
            } else {
                known.insert(left_rows.row(place));
            }
        }
        for place in r.clone() {
            if right_nulls.as_ref().is_some_and(|nulls| nulls.is_null(place)) {
                unknown = true;
            } else if known.contains(&right_rows.row(place)) {
                return Some(true);
            }
        }
        (!(unknown && !l.is_empty() && !r.is_empty())).then_some(false)
    });
    Ok(Arc::new(answers.collect::<BooleanArray>()))
}

/// Whether the value is null, also in a column of type VOID.
fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.data_type().is_null() || array.is_null(row)
}
