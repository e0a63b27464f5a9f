//! `array_sort` with a comparator: negative, zero or positive for less, equal or greater.
//!
//! All rows are sorted side by side by binary insertion, so that one evaluation answers one question for each row.

use super::super::coercion::{element_of, mismatch, one_list};
use super::super::lists::Picks;
use super::call::{Definition, LambdaCall};
use super::evaluation::{Dense, evaluate};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err};

/// The functions of this file. The syntax rewrite gives `array_sort` this name when it has a comparator.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "__array_sort_by",
        aliases: &[],
        values: 1,
        lambdas: (1, 1),
        coerce: one_list,
        parameters,
        result,
        may_be_null: false,
        run,
    }]
}

fn parameters(definition: &Definition, values: &[DataType]) -> Result<Vec<Vec<DataType>>> {
    let element = element_of(definition.name, &values[0])?;
    Ok(vec![vec![element.clone(), element]])
}

fn result(_name: &str, values: &[DataType], lambdas: &[DataType], _ansi: bool) -> Result<DataType> {
    match lambdas.first() {
        Some(order) if order.is_integer() => Ok(values[0].clone()),
        Some(other) => mismatch("array_sort", "a comparator that gives INT", other),
        None => Ok(values[0].clone()),
    }
}

/// A row in work: its sorted beginning, the place being put in, and where it may go.
struct Insertion {
    row: u32,
    sorted: Vec<usize>,
    next: usize,
    end: usize,
    low: usize,
    high: usize,
}

fn run(call: &LambdaCall) -> Result<ArrayRef> {
    let dense = Dense::of(&call.values[0])?;
    let mut rows: Vec<_> = (0..call.rows)
        .map(|row| {
            let range = dense.row(row);
            let first = range.start;
            let sorted = range.clone().take(1).collect::<Vec<_>>();
            let high = sorted.len();
            Insertion { row: row as u32, sorted, next: first + 1, end: range.end, low: 0, high }
        })
        .collect();
    loop {
        let asking: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].next < rows[at].end).collect();
        if asking.is_empty() {
            break;
        }
        let middle = |at: &usize| rows[*at].low.midpoint(rows[*at].high);
        let new = UInt32Array::from_iter_values(asking.iter().map(|&at| rows[at].next as u32));
        let old = UInt32Array::from_iter_values(asking.iter().map(|at| rows[*at].sorted[middle(at)] as u32));
        let row_of = UInt32Array::from_iter_values(asking.iter().map(|&at| rows[at].row));
        let (new, old) = (take(&dense.values, &new, None)?, take(&dense.values, &old, None)?);
        let order = cast(&evaluate(&call.lambdas[0], &[&new, &old], &row_of)?, &DataType::Int64)?;
        let order = order.as_primitive::<Int64Type>();
        for (answer, at) in asking.into_iter().enumerate() {
            if order.is_null(answer) {
                return exec_err!(
                    "[COMPARATOR_RETURNS_NULL] the comparator of `array_sort` gave NULL; it must give a number"
                );
            }
            let row = &mut rows[at];
            let middle = row.low.midpoint(row.high);
            if order.value(answer) < 0 {
                row.high = middle;
            } else {
                row.low = middle + 1;
            }
            if row.low == row.high {
                row.sorted.insert(row.low, row.next);
                row.next += 1;
                row.low = 0;
                row.high = row.sorted.len();
            }
        }
    }
    let mut picks = Picks::with_capacity(call.rows);
    for (row, insertion) in rows.iter().enumerate() {
        if dense.is_null(row) {
            picks.end_null()?;
            continue;
        }
        insertion.sorted.iter().for_each(|&place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&dense.values, &call.output)
}
