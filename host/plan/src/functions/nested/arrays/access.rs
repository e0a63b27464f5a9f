//! One element: `size`, `element_at`, `get`, `a[i]`, `m[k]`.
//!
//! `element_at` counts from 1 and from the end with negative numbers; `a[i]` and `get` count from 0. Out of range is
//! an error in ANSI mode, except for `get` and `try_element_at`. A key that a map does not have gives null.

use super::super::coercion::{common, element_of, int, list_of, map_of, mismatch, pair_of};
use super::super::function::{Call, Definition};
use super::super::lists::Lists;
use super::super::order::{comparable, require_order};
use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Builder, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let element = |name, run| Definition {
        name,
        aliases: &[],
        arguments: (2, 2),
        coerce: coerce_lookup,
        result: looked_up,
        may_be_null: true,
        never_null: false,
        run,
    };
    let size = |name, aliases, run| Definition {
        name,
        aliases,
        arguments: (1, 1),
        coerce: coerce_collection,
        result: int,
        may_be_null: false,
        never_null: false,
        run,
    };
    vec![
        size("size", &["cardinality"], run_size),
        size("array_size", &[], run_array_size),
        element("element_at", |call, args| lookup(call, args, Counting::FromOne, call.ansi)),
        element("try_element_at", |call, args| lookup(call, args, Counting::FromOne, false)),
        element("get", |call, args| lookup(call, args, Counting::FromZero, false)),
        element("__item", |call, args| lookup(call, args, Counting::FromZero, call.ansi)),
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum Counting {
    FromZero,
    FromOne,
}

fn coerce_collection(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    match &types[0] {
        DataType::Map(..) if name != "array_size" => Ok(types.to_vec()),
        other => Ok(vec![list_of(element_of(name, other)?)]),
    }
}

fn coerce_lookup(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    if let DataType::Map(..) = &types[0]
        && name != "get"
    {
        let (key, value) = pair_of(name, &types[0])?;
        let key = common(name, [&key, &types[1]], ansi)?;
        require_order(name, &key)?;
        return Ok(vec![map_of(key.clone(), value), key]);
    }
    let list = list_of(element_of(name, &types[0])?);
    match &types[1] {
        index if index.is_integer() || index.is_null() => Ok(vec![list, DataType::Int64]),
        other => mismatch(name, "an integer index", other),
    }
}

fn looked_up(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    match &types[0] {
        DataType::Map(..) => Ok(pair_of(name, &types[0])?.1),
        other => element_of(name, other),
    }
}

fn sizes(array: &ArrayRef, of_null: Option<i32>) -> Result<ArrayRef> {
    let lists = Lists::of(array)?;
    // A row of a list with 32-bit offsets has fewer than 2^31 values.
    let sizes = (0..lists.rows()).map(|row| lists.row(row).map_or(of_null, |range| Some(range.len() as i32)));
    Ok(Arc::new(Int32Array::from_iter(sizes)))
}

fn run_size(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    sizes(&args[0], if call.ansi { None } else { Some(-1) })
}

fn run_array_size(_call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    sizes(&args[0], None)
}

fn lookup(call: &Call<'_>, args: &[ArrayRef], counting: Counting, errors: bool) -> Result<ArrayRef> {
    if matches!(args[0].data_type(), DataType::Map(..)) {
        return find_key(&args[0], &args[1]);
    }
    let lists = Lists::of(&args[0])?;
    let indexes = args[1].as_primitive::<Int64Type>();
    let mut places = UInt32Builder::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(range) = lists.row(row).filter(|_| indexes.is_valid(row)) else {
            places.append_null();
            continue;
        };
        let index = indexes.value(row);
        let len = range.len() as i64;
        let from_start = match counting {
            Counting::FromZero => index,
            Counting::FromOne if index == 0 => {
                return exec_err!("[INVALID_INDEX_OF_ZERO] the index 0 is invalid: elements are counted from 1 or -1");
            }
            Counting::FromOne if index > 0 => index - 1,
            Counting::FromOne => index.saturating_add(len),
        };
        if (0..len).contains(&from_start) {
            places.append_value((range.start + from_start as usize) as u32);
        } else if errors {
            let (class, advice) = match counting {
                Counting::FromZero => ("INVALID_ARRAY_INDEX", "use get to have NULL instead"),
                Counting::FromOne => ("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "use try_element_at to have NULL instead"),
            };
            return exec_err!("[{class}] the index {index} is out of bounds: the array has {len} elements; {advice}");
        } else {
            places.append_null();
        }
    }
    if lists.values.is_empty() {
        return Ok(new_null_array(call.output, call.rows));
    }
    Ok(take(&lists.values, &places.finish(), None)?)
}

/// The value under a key, per row; null where the map has no such key.
pub(in super::super) fn find_key(maps: &ArrayRef, keys: &ArrayRef) -> Result<ArrayRef> {
    let maps = Lists::of(maps)?;
    let values = maps.map_values();
    let (held, wanted) = (comparable(&maps.keys())?, comparable(keys)?);
    let mut places = UInt32Builder::with_capacity(maps.rows());
    for row in 0..maps.rows() {
        let found = maps
            .row(row)
            .filter(|_| keys.is_valid(row))
            .and_then(|mut range| range.find(|&place| held.row(place) == wanted.row(row)));
        places.append_option(found.map(|place| place as u32));
    }
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), maps.rows()));
    }
    Ok(take(&values, &places.finish(), None)?)
}
