//! The input rows without which a row does not come out: tried, by leaving out half of them, and half of what cannot go.

use crate::RuntimeError;
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use std::time::{Duration, Instant};

/// The most runs of a batch, and the longest time for them.
const RUNS: usize = 400;
const TIME: Duration = Duration::from_secs(60);

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

/// Leaves out rows as long as `comes_out` holds for the others. One that fails on fewer rows does not hold.
pub(super) fn narrow(
    inputs: &Rows,
    mut comes_out: impl FnMut(&Rows) -> Result<bool, RuntimeError>,
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
    let mut open: Vec<std::ops::Range<usize>> = if before > 0 { vec![0..before] } else { Vec::new() };
    let kept = |is_left: &[bool]| {
        let left = all.iter().zip(is_left).filter(|(_, left)| **left).map(|(row, _)| *row);
        taken(inputs, left)
    };
    while let Some(range) = open.pop() {
        if runs == RUNS || start.elapsed() > TIME {
            is_least = false;
            break;
        }
        runs += 1;
        is_left[range.clone()].fill(false);
        let tried = kept(&is_left).and_then(|inputs| Ok(comes_out(&inputs).unwrap_or(false)))?;
        if tried {
            continue;
        }
        is_left[range.clone()].fill(true);
        if range.len() > 1 {
            let middle = range.start + range.len() / 2;
            open.push(middle..range.end);
            open.push(range.start..middle);
        }
    }
    let left = is_left.iter().filter(|left| **left).count();
    Ok(Narrow { inputs: kept(&is_left)?, rows: (before as u64, left as u64), runs: runs as u64, is_least })
}

/// Some rows, in their order.
fn taken(inputs: &Rows, rows: impl Iterator<Item = (usize, usize, u32)>) -> Result<Rows, RuntimeError> {
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

    fn values(inputs: &Rows) -> Vec<i64> {
        let of = |rows: &RecordBatch| rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        inputs.iter().flatten().flat_map(of).collect()
    }

    #[test]
    fn what_is_left_is_what_cannot_be_left_out() {
        let inputs = vec![vec![numbers(&[1, 2, 3]), numbers(&[4])], vec![], vec![numbers(&[5, 6, 7, 8])]];
        let found = narrow(&inputs, |inputs| {
            let left = values(inputs);
            Ok([2, 7, 8].iter().all(|wanted| left.contains(wanted)))
        })
        .unwrap();
        assert_eq!(values(&found.inputs), [2, 7, 8]);
        assert_eq!((found.rows, found.is_least), ((8, 3), true));
        assert!(found.runs < 20, "{}", found.runs);
        assert_eq!(values(&narrow(&inputs, |_| Ok(true)).unwrap().inputs), Vec::<i64>::new());
        let failing = narrow(&inputs, |_| Err(RuntimeError::Thread { reason: "no".into() })).unwrap();
        assert_eq!(failing.rows, (8, 8));
        assert!(narrow(&vec![], |_| Ok(true)).unwrap().is_least);
    }

    #[test]
    fn runs_have_an_end() {
        let inputs = vec![vec![numbers(&(0..10_000).collect::<Vec<_>>())]];
        let found = narrow(&inputs, |_| Ok(false)).unwrap();
        assert_eq!((found.rows, found.runs, found.is_least), ((10_000, 10_000), RUNS as u64, false));
    }
}
