//! What a map holds: `map_keys`, `map_values`, `map_contains_key`.

use super::super::coercion::{boolean, common, list_of, map_of, one_map, pair_of};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks};
use super::super::order::comparable;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, coerce, result, run| Definition {
        name,
        aliases: &[],
        arguments: (arguments, arguments),
        coerce,
        result,
        may_be_null: false,
        never_null: false,
        run,
    };
    vec![
        definition("map_keys", 1, one_map, keys_type, |call, args| side(call, args, true)),
        definition("map_values", 1, one_map, values_type, |call, args| side(call, args, false)),
        definition("map_contains_key", 2, coerce_key, boolean, contains_key),
    ]
}

fn keys_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(pair_of(name, &types[0])?.0))
}

fn values_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(pair_of(name, &types[0])?.1))
}

fn coerce_key(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let (key, value) = pair_of(name, &types[0])?;
    let key = common(name, [&key, &types[1]], ansi)?;
    Ok(vec![map_of(key.clone(), value), key])
}

fn side(call: &Call<'_>, args: &[ArrayRef], keys: bool) -> Result<ArrayRef> {
    let maps = Lists::of(&args[0])?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match maps.row(row) {
            None => picks.end_null()?,
            Some(range) => {
                picks.extend(range);
                picks.end()?;
            }
        }
    }
    picks.finish(&if keys { maps.keys() } else { maps.map_values() }, call.output)
}

fn contains_key(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let maps = Lists::of(&args[0])?;
    let (held, wanted) = (comparable(&maps.keys())?, comparable(&args[1])?);
    let answers = (0..call.rows).map(|row| {
        let mut range = maps.row(row).filter(|_| args[1].is_valid(row))?;
        Some(range.any(|place| held.row(place) == wanted.row(row)))
    });
    Ok(Arc::new(answers.collect::<BooleanArray>()))
}
