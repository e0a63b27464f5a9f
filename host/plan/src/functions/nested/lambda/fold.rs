//! `aggregate` (`reduce`): an accumulator goes through the elements of an array.
//!
//! The rows are put in order of length, so that the rows still at work are always the first ones: step `i` is one
//! evaluation over the rows with more than `i` elements.

use super::super::coercion::{element_of, list_of};
use super::super::lists::fit;
use super::call::{Definition, LambdaCall};
use super::evaluation::{Dense, evaluate};
use crate::functions::expr::shown_type;
use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "aggregate",
        aliases: &["reduce"],
        values: 2,
        lambdas: (1, 2),
        coerce,
        parameters,
        result,
        may_be_null: true,
        run: fold,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![list_of(element_of(name, &types[0])?), types[1].clone()])
}

/// Whether the types are one but for names and nullability inside.
fn is_same(one: &DataType, other: &DataType) -> bool {
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (one, other) {
        (DataType::List(one), DataType::List(other)) => is_same(one.data_type(), other.data_type()),
        (DataType::Map(one, _), DataType::Map(other, _)) => is_same(one.data_type(), other.data_type()),
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one.data_type(), other.data_type()))
        }
        (one, other) => one == other || (text(one) && text(other)),
    }
}

/// The accumulator has the type of the start.
fn parameters(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    let (element, start) = (element_of(definition.name, &values[0])?, &values[1]);
    Ok(vec![vec![start.clone(), element], vec![start.clone()]])
}

fn result(name: &str, values: &[DataType], lambdas: &[DataType], _ansi: bool) -> Result<DataType> {
    let start = &values[1];
    if let Some(merged) = lambdas.first()
        && !is_same(start, merged)
    {
        return plan_err!(
            "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the merged value of `{name}` is {}, but its start is {}; give the \
             start or the merged value the type of the other with a CAST",
            shown_type(merged),
            shown_type(start)
        );
    }
    Ok(lambdas.get(1).unwrap_or(start).clone())
}

fn fold(call: &LambdaCall) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let start = &call.values[1];
    let held = start.data_type().clone();
    let mut order: Vec<u32> = (0..call.rows as u32).filter(|&row| !dense.is_null(row as usize)).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(dense.row(row as usize).len()));
    let length = |at: usize| order.get(at).map_or(0, |&row| dense.row(row as usize).len());
    let all = UInt32Array::from(order.clone());
    let mut accumulators = take(start, &all, None)?;
    let mut done = Vec::new();
    let mut active = order.len();
    for step in 0..length(0) {
        let still = order[..active].partition_point(|&row| dense.row(row as usize).len() > step);
        if still < active {
            done.push(accumulators.slice(still, active - still));
            accumulators = accumulators.slice(0, still);
            active = still;
        }
        let places = order[..active].iter().map(|&row| (dense.row(row as usize).start + step) as u32);
        let elements = take(&dense.values, &UInt32Array::from_iter_values(places), None)?;
        let merged = evaluate(&call.lambdas[0], &[&accumulators, &elements], &all.slice(0, active))?;
        accumulators = fit(merged, &held)?;
    }
    done.push(accumulators);
    done.reverse();
    let parts: Vec<&dyn Array> = done.iter().map(|part| part.as_ref()).collect();
    let folded = concat(&parts)?;
    let finished = match call.lambdas.get(1) {
        Some(finish) => evaluate(finish, &[&folded], &all)?,
        None => folded,
    };
    // Back into the order of the rows; null arrays give null.
    let mut place_of = vec![None; call.rows];
    order.iter().enumerate().for_each(|(place, &row)| place_of[row as usize] = Some(place as u32));
    if finished.is_empty() {
        return Ok(arrow::array::new_null_array(&call.output, call.rows));
    }
    fit(take(&finished, &UInt32Array::from(place_of), None)?, &call.output)
}
