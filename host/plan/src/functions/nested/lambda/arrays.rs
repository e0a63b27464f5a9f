//! `transform`, `filter`, `exists`, `forall` and `zip_with`.
//!
//! `exists` and `forall` are three-valued: without a deciding element, an unknown one makes the answer unknown.

use super::super::coercion::{element_of, list_of, mismatch, one_list};
use super::super::lists::{Picks, list};
use super::call::{Definition, LambdaCall};
use super::evaluation::{Dense, evaluate, evaluate_condition};
use arrow::array::{Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, UInt32Builder, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let base = Definition {
        name: "transform",
        aliases: &[],
        values: 1,
        lambdas: (1, 1),
        coerce: one_list,
        parameters: element_and_position,
        result: transformed,
        may_be_null: false,
        run: transform,
    };
    vec![
        base,
        Definition { name: "filter", result: filtered, run: filter, ..base },
        Definition {
            name: "exists",
            parameters: element,
            result: answer,
            may_be_null: true,
            run: |call| quantified(call, true),
            ..base
        },
        Definition {
            name: "forall",
            parameters: element,
            result: answer,
            may_be_null: true,
            run: |call| quantified(call, false),
            ..base
        },
        Definition {
            name: "zip_with",
            values: 2,
            coerce: two_lists,
            parameters: two_elements,
            result: transformed,
            run: zip_with,
            ..base
        },
    ]
}

/// Refuses a lambda that does not answer yes or no.
pub(super) fn require_condition(name: &str, lambdas: &[DataType]) -> Result<()> {
    match lambdas.first() {
        Some(DataType::Boolean | DataType::Null) => Ok(()),
        Some(other) => mismatch(name, "a lambda that gives BOOLEAN", other),
        None => Ok(()),
    }
}

fn element_and_position(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    Ok(vec![vec![element_of(definition.name, &values[0])?, DataType::Int32]])
}

fn element(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    Ok(vec![vec![element_of(definition.name, &values[0])?]])
}

fn two_elements(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    Ok(vec![vec![element_of(definition.name, &values[0])?, element_of(definition.name, &values[1])?]])
}

fn two_lists(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    types.iter().map(|t| Ok(list_of(element_of(name, t)?))).collect()
}

fn transformed(_name: &str, _values: &[DataType], lambdas: &[DataType], _ansi: bool) -> Result<DataType> {
    Ok(list_of(lambdas.first().cloned().unwrap_or(DataType::Null)))
}

fn filtered(name: &str, values: &[DataType], lambdas: &[DataType], _ansi: bool) -> Result<DataType> {
    require_condition(name, lambdas)?;
    Ok(values[0].clone())
}

fn answer(name: &str, _values: &[DataType], lambdas: &[DataType], _ansi: bool) -> Result<DataType> {
    require_condition(name, lambdas)?;
    Ok(DataType::Boolean)
}

fn transform(call: &LambdaCall) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let values = evaluate(&call.lambdas[0], &[&dense.values, &dense.positions()], &dense.row_of)?;
    list(values, dense.offsets, dense.nulls, &call.output)
}

fn filter(call: &LambdaCall) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let keep = evaluate_condition(&call.lambdas[0], &[&dense.values, &dense.positions()], &dense.row_of)?;
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
    picks.finish(&dense.values, &call.output)
}

/// `deciding` is the answer of one element that settles the row's answer.
fn quantified(call: &LambdaCall, deciding: bool) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let answers = evaluate_condition(&call.lambdas[0], &[&dense.values], &dense.row_of)?;
    let answers = answers.as_boolean();
    let results = (0..call.rows).map(|row| {
        if dense.is_null(row) {
            return None;
        }
        if dense.row(row).any(|place| answers.is_valid(place) && answers.value(place) == deciding) {
            return Some(deciding);
        }
        (!dense.row(row).any(|place| answers.is_null(place))).then_some(!deciding)
    });
    Ok(Arc::new(results.collect::<BooleanArray>()))
}

/// Element by element; the shorter array is filled with nulls.
fn zip_with(call: &LambdaCall) -> Result<ArrayRef> {
    let (left, right) = (Dense::of(&call.values[0])?, Dense::of(&call.values[1])?);
    let (mut left_places, mut right_places) = (UInt32Builder::new(), UInt32Builder::new());
    let mut row_of = UInt32Builder::new();
    let mut offsets = vec![0_i32];
    for row in 0..call.rows {
        if !left.is_null(row) && !right.is_null(row) {
            let (l, r) = (left.row(row), right.row(row));
            for position in 0..l.len().max(r.len()) {
                left_places.append_option((position < l.len()).then(|| (l.start + position) as u32));
                right_places.append_option((position < r.len()).then(|| (r.start + position) as u32));
                row_of.append_value(row as u32);
            }
        }
        offsets.push(i32::try_from(row_of.len()).map_err(|_| {
            exec_datafusion_err!(
                "[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} array elements",
                i32::MAX
            )
        })?);
    }
    let row_of = row_of.finish();
    let pick = |dense: &Dense, mut places: UInt32Builder| -> Result<ArrayRef> {
        if dense.values.is_empty() {
            return Ok(new_null_array(dense.values.data_type(), row_of.len()));
        }
        Ok(take(&dense.values, &places.finish(), None)?)
    };
    let (l, r) = (pick(&left, left_places)?, pick(&right, right_places)?);
    let values = evaluate(&call.lambdas[0], &[&l, &r], &row_of)?;
    let nulls = NullBuffer::union(left.nulls.as_ref(), right.nulls.as_ref());
    list(values, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls, &call.output)
}
