//! `map_filter`, `transform_keys`, `transform_values`, `map_zip_with`.

use super::super::coercion::{common, map_of, one_map, pair_of};
use super::super::lists::{Lists, Picks, map, stack};
use super::super::maps::unique_keys;
use super::super::order::comparable;
use super::arrays::require_condition;
use super::call::{Definition, LambdaCall};
use super::evaluation::{Dense, evaluate, evaluate_condition};
use arrow::array::{Array, ArrayBuilder, ArrayRef, AsArray, UInt32Builder, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use std::collections::HashMap;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let base = Definition {
        name: "map_filter",
        aliases: &[],
        values: 1,
        lambdas: (1, 1),
        coerce: one_map,
        parameters: key_and_value,
        result: |name, values, lambdas, _| {
            require_condition(name, lambdas)?;
            Ok(values[0].clone())
        },
        may_be_null: false,
        run: filter,
    };
    vec![
        base,
        Definition {
            name: "transform_keys",
            result: |name, values, lambdas, _| Ok(map_of(lambdas[0].clone(), pair_of(name, &values[0])?.1)),
            run: |call| transform(call, true),
            ..base
        },
        Definition {
            name: "transform_values",
            result: |name, values, lambdas, _| Ok(map_of(pair_of(name, &values[0])?.0, lambdas[0].clone())),
            run: |call| transform(call, false),
            ..base
        },
        Definition {
            name: "map_zip_with",
            values: 2,
            coerce: two_maps,
            parameters: key_and_values,
            result: |name, values, lambdas, _| Ok(map_of(pair_of(name, &values[0])?.0, lambdas[0].clone())),
            run: zip_with,
            ..base
        },
    ]
}

fn key_and_value(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    let (key, value) = pair_of(definition.name, &values[0])?;
    Ok(vec![vec![key, value]])
}

fn key_and_values(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    let (key, left) = pair_of(definition.name, &values[0])?;
    let (_, right) = pair_of(definition.name, &values[1])?;
    Ok(vec![vec![key, left, right]])
}

fn two_maps(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let ((k1, v1), (k2, v2)) = (pair_of(name, &types[0])?, pair_of(name, &types[1])?);
    let key = common(name, [&k1, &k2], ansi)?;
    Ok(vec![map_of(key.clone(), v1), map_of(key, v2)])
}

/// Keys and values of the entries.
fn sides(dense: &Dense) -> (ArrayRef, ArrayRef) {
    let entries = dense.values.as_struct();
    (Arc::clone(entries.column(0)), Arc::clone(entries.column(1)))
}

fn filter(call: &LambdaCall) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let (keys, values) = sides(&dense);
    let keep = evaluate_condition(&call.lambdas[0], &[&keys, &values], &dense.row_of)?;
    let keep = keep.as_boolean();
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        if dense.is_null(row) {
            picks.end_null()?;
            continue;
        }
        dense.row(row).filter(|&place| keep.is_valid(place) && keep.value(place)).for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish_map(&keys, &values, &call.output)
}

fn transform(call: &LambdaCall, of_keys: bool) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let (keys, values) = sides(&dense);
    let made = evaluate(&call.lambdas[0], &[&keys, &values], &dense.row_of)?;
    let (keys, values) = if of_keys { (made, values) } else { (keys, made) };
    if of_keys {
        let held = comparable(&keys)?;
        (0..call.rows).try_for_each(|row| unique_keys(&keys, &held, dense.row(row)))?;
    }
    map(keys, values, dense.offsets, dense.nulls, &call.output)
}

/// One entry per key of either map; a value that is missing is null.
fn zip_with(call: &LambdaCall) -> Result<ArrayRef> {
    let (left, right) = (Lists::of(&call.values[0])?, Lists::of(&call.values[1])?);
    let (keys, starts) = stack(&[&left.keys(), &right.keys()])?;
    let held = comparable(&keys)?;
    let (mut key_places, mut left_places, mut right_places) =
        (UInt32Builder::new(), UInt32Builder::new(), UInt32Builder::new());
    let mut row_of = UInt32Builder::new();
    let mut offsets = vec![0_i32];
    for row in 0..call.rows {
        if let (Some(l), Some(r)) = (left.row(row), right.row(row)) {
            let mut others: HashMap<_, _> = r.clone().map(|place| (held.row(starts[1] + place), place)).collect();
            for place in l {
                key_places.append_value(place as u32);
                left_places.append_value(place as u32);
                right_places.append_option(others.remove(&held.row(place)).map(|place| place as u32));
                row_of.append_value(row as u32);
            }
            for place in r.filter(|&place| others.contains_key(&held.row(starts[1] + place))) {
                key_places.append_value((starts[1] + place) as u32);
                left_places.append_null();
                right_places.append_value(place as u32);
                row_of.append_value(row as u32);
            }
        }
        offsets.push(i32::try_from(row_of.len()).map_err(|_| {
            exec_datafusion_err!(
                "[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} map entries",
                i32::MAX
            )
        })?);
    }
    let row_of = row_of.finish();
    let pick = |values: &ArrayRef, mut places: UInt32Builder| -> Result<ArrayRef> {
        if values.is_empty() {
            return Ok(new_null_array(values.data_type(), row_of.len()));
        }
        Ok(take(values, &places.finish(), None)?)
    };
    let keys = take(&keys, &key_places.finish(), None)?;
    let (l, r) = (pick(&left.map_values(), left_places)?, pick(&right.map_values(), right_places)?);
    let values = evaluate(&call.lambdas[0], &[&keys, &l, &r], &row_of)?;
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    map(keys, values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls, &call.output)
}
