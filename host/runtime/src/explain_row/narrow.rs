//! The input rows without which a row does not come out: tried, by leaving out half of them, and half of what cannot go.
//!
//! Most rows come out of rows that have a value in common with them: the key. So those are tried first, which is one run in
//! place of very many.

use crate::RuntimeError;
use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::util::display::array_value_to_string;
use std::time::{Duration, Instant};

/// The most runs of a batch, and the longest time for them.
const RUNS: usize = 400;
const TIME: Duration = Duration::from_secs(20);

/// The most shares that are tried before halves are.
const SHARES: usize = 16;

/// Rows per place where they enter.
pub(super) type Rows = Vec<Vec<RecordBatch>>;

/// What is left of an input.
pub(super) struct Narrow {
    pub(super) inputs: Rows,
    /// Rows before, and rows that are left.
    pub(super) rows: (u64, u64),
    pub(super) runs: u64,
    /// Whether no row that is left can be left out, too.
    pub(super) is_least: bool,
}

/// Leaves out rows as long as `comes_out` holds for the others. One that fails on fewer rows does not hold. `values` are those
/// of the row, as text.
pub(super) fn narrow(
    inputs: &[Vec<RecordBatch>],
    values: &[String],
    mut comes_out: impl FnMut(&[Vec<RecordBatch>]) -> Result<bool, RuntimeError>,
) -> Result<Narrow, RuntimeError> {
    let all: Vec<(usize, usize, u32)> = inputs
        .iter()
        .enumerate()
        .flat_map(|(slot, batches)| {
            let of_batch = move |(number, rows): (usize, &RecordBatch)| {
                (0..rows.num_rows() as u32).map(move |row| (slot, number, row)).collect::<Vec<_>>()
            };
            batches.iter().enumerate().flat_map(of_batch)
        })
        .collect();
    let (before, start) = (all.len(), Instant::now());
    let mut is_left = vec![true; before];
    let (mut runs, mut is_least) = (0, true);
    let kept = |is_left: &[bool]| {
        let left = all.iter().zip(is_left).filter(|(_, left)| **left).map(|(row, _)| *row);
        taken(inputs, left)
    };
    for share in shares(inputs, values, before) {
        runs += 1;
        if kept(&share).map(|inputs| comes_out(&inputs).unwrap_or(false))? {
            is_left = share;
            break;
        }
    }
    let tried: Vec<usize> = (0..before).filter(|row| is_left[*row]).collect();
    let mut open = Vec::from_iter((!tried.is_empty()).then_some(0..tried.len()));
    while let Some(range) = open.pop() {
        if runs >= RUNS || start.elapsed() > TIME {
            is_least = false;
            break;
        }
        runs += 1;
        tried[range.clone()].iter().for_each(|row| is_left[*row] = false);
        if kept(&is_left).map(|inputs| comes_out(&inputs).unwrap_or(false))? {
            continue;
        }
        tried[range.clone()].iter().for_each(|row| is_left[*row] = true);
        if range.len() > 1 {
            let middle = range.start + range.len() / 2;
            open.push(middle..range.end);
            open.push(range.start..middle);
        }
    }
    let left = is_left.iter().filter(|left| **left).count();
    Ok(Narrow { inputs: kept(&is_left)?, rows: (before as u64, left as u64), runs: runs as u64, is_least })
}

/// Shares of the rows that have a value in common with the row, the smallest first: those that have it in a column, and those
/// that have it in a text.
fn shares(inputs: &[Vec<RecordBatch>], values: &[String], count: usize) -> Vec<Vec<bool>> {
    let values: Vec<&String> = values.iter().filter(|value| !value.is_empty()).collect();
    let mut shares = vec![Vec::with_capacity(count); 2 * values.len()];
    for rows in inputs.iter().flatten() {
        for row in 0..rows.num_rows() {
            let cells = rows.columns().iter().filter(|column| column.is_valid(row));
            let cells: Vec<String> = cells.filter_map(|column| array_value_to_string(column, row).ok()).collect();
            for (number, value) in values.iter().enumerate() {
                shares[2 * number].push(cells.contains(value));
                shares[2 * number + 1].push(cells.iter().any(|cell| cell.contains(value.as_str())));
            }
        }
    }
    let size = |share: &Vec<bool>| share.iter().filter(|is_in| **is_in).count();
    shares.retain(|share| (1..count).contains(&size(share)));
    shares.sort_by_key(size);
    shares.dedup();
    shares.truncate(SHARES);
    shares
}

/// Some rows, in their order.
fn taken(inputs: &[Vec<RecordBatch>], rows: impl Iterator<Item = (usize, usize, u32)>) -> Result<Rows, RuntimeError> {
    let mut places: Vec<Vec<Vec<u32>>> = inputs.iter().map(|batches| vec![Vec::new(); batches.len()]).collect();
    rows.for_each(|(slot, batch, row)| places[slot][batch].push(row));
    let of_batch = |(rows, places): (&RecordBatch, Vec<u32>)| {
        take_record_batch(rows, &UInt32Array::from(places)).map_err(|error| RuntimeError::Invalid {
            reason: format!("rows of the input cannot be taken out: {error}"),
            hint: None,
        })
    };
    let of_slot = |(batches, places): (&Vec<RecordBatch>, Vec<Vec<u32>>)| {
        let filled = batches.iter().zip(places).filter(|(_, places)| !places.is_empty());
        filled.map(of_batch).collect::<Result<Vec<_>, _>>()
    };
    inputs.iter().zip(places).map(of_slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use std::sync::Arc;

    fn numbers(values: &[i64]) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
    }

    fn values(inputs: &[Vec<RecordBatch>]) -> Vec<i64> {
        let of = |rows: &RecordBatch| rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        inputs.iter().flatten().flat_map(of).collect()
    }

    #[test]
    fn what_is_left_is_what_cannot_be_left_out() {
        let inputs = vec![vec![numbers(&[1, 2, 3]), numbers(&[4])], vec![], vec![numbers(&[5, 6, 7, 8])]];
        let found = narrow(&inputs, &[], |inputs| {
            let left = values(inputs);
            Ok([2, 7, 8].iter().all(|wanted| left.contains(wanted)))
        })
        .unwrap();
        assert_eq!(values(&found.inputs), [2, 7, 8]);
        assert_eq!((found.rows, found.is_least), ((8, 3), true));
        assert!(found.runs < 20, "{}", found.runs);
        assert_eq!(values(&narrow(&inputs, &[], |_| Ok(true)).unwrap().inputs), Vec::<i64>::new());
        let failing = narrow(&inputs, &[], |_| Err(RuntimeError::Thread { reason: "no".into() })).unwrap();
        assert_eq!(failing.rows, (8, 8));
        assert!(narrow(&[], &[], |_| Ok(true)).unwrap().is_least);
    }

    #[test]
    fn rows_that_have_a_value_of_the_row_are_tried_first() {
        let inputs = vec![vec![numbers(&(0..10_000).map(|n| n % 100).collect::<Vec<_>>())]];
        let all_of_seven = |inputs: &[Vec<RecordBatch>]| Ok(values(inputs).iter().filter(|n| **n == 7).count() == 100);
        let found = narrow(&inputs, &["7".into(), "100".into()], all_of_seven).unwrap();
        assert_eq!((found.rows, found.is_least), ((10_000, 100), true));
        assert!(found.runs <= 250, "{}", found.runs);
        // A value that leads nowhere.
        let found = narrow(&inputs, &["8".into()], |inputs| Ok(values(inputs).contains(&9))).unwrap();
        assert_eq!((found.rows.1, found.is_least), (1, true));
    }

    #[test]
    fn runs_have_an_end() {
        let inputs = vec![vec![numbers(&(0..10_000).collect::<Vec<_>>())]];
        let found = narrow(&inputs, &[], |_| Ok(false)).unwrap();
        assert_eq!((found.rows, found.runs, found.is_least), ((10_000, 10_000), RUNS as u64, false));
    }
}
