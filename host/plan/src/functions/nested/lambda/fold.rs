//! `aggregate` (`reduce`): an accumulator goes through the elements of an array.
//!
//! The rows are put in order of length, so that the rows still at work are always the first ones: step `i` is one
//! evaluation over the rows with more than `i` elements.

use super::super::coercion::{element_of, list_of, widest};
use super::super::lists::fit;
use super::call::{Definition, LambdaCall, Parameters};
use super::evaluation::{Dense, evaluate};
use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{cast_with_options, concat, take};
use arrow::datatypes::DataType;
use datafusion::common::Result;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "aggregate",
        aliases: &["reduce"],
        values: 2,
        lambdas: (1, 2),
        coerce,
        parameters,
        recoerce,
        result,
        may_be_null: true,
        run: fold,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![list_of(element_of(name, &types[0])?), types[1].clone()])
}

/// The accumulator's type: the start's, unless the merged value is a wider number or the start is an untyped null.
fn accumulator(start: &DataType, merged: &DataType, ansi: bool) -> DataType {
    let number = |t: &DataType| t.is_integer() || t.is_floating();
    match (start, merged) {
        (DataType::Null, other) => other.clone(),
        (start, merged) if number(start) && number(merged) || start.is_nested() => {
            widest(start, merged, ansi).unwrap_or_else(|| start.clone())
        }
        _ => start.clone(),
    }
}

fn parameters(
    definition: &Definition,
    values: &[DataType],
    lambdas: &[Option<DataType>],
    step: usize,
    ansi: bool,
) -> Result<Parameters> {
    let element = element_of(definition.name, &values[0])?;
    let with_finish = |merge: Vec<DataType>, accumulator: DataType| {
        let mut all = vec![merge];
        if lambdas.len() > 1 {
            all.push(vec![accumulator]);
        }
        all
    };
    let start = &values[1];
    let Some(Some(merged)) = lambdas.first() else {
        let mut some = vec![Some(vec![start.clone(), element])];
        some.resize(lambdas.len(), None);
        return Ok(Parameters::Some(some));
    };
    let accumulator = accumulator(start, merged, ansi);
    if step == 1 && accumulator != *start {
        // The merged value may become wider still when the accumulator does.
        let mut some = vec![Some(vec![accumulator, element])];
        some.resize(lambdas.len(), None);
        return Ok(Parameters::Some(some));
    }
    Ok(Parameters::All(with_finish(vec![accumulator.clone(), element], accumulator)))
}

fn recoerce(values: &[DataType], lambdas: &[DataType], ansi: bool) -> Vec<DataType> {
    match (values, lambdas) {
        ([list, start], [merged, ..]) => vec![list.clone(), accumulator(start, merged, ansi)],
        _ => values.to_vec(),
    }
}

fn result(_name: &str, values: &[DataType], lambdas: &[DataType], ansi: bool) -> Result<DataType> {
    Ok(match lambdas {
        [merged] => accumulator(&values[1], merged, ansi),
        [_, finished, ..] => finished.clone(),
        [] => values[1].clone(),
    })
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
        accumulators = as_type(merged, &held)?;
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

/// The merged value as the accumulator's type; what does not fit is an error.
fn as_type(merged: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if merged.data_type() == data_type {
        return Ok(merged);
    }
    let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
    Ok(cast_with_options(&merged, data_type, &options)?)
}
