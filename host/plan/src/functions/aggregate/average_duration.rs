//! The average of durations, which is a duration: `avg(ends - starts)`.
//!
//! Rounded half up to a microsecond, as Spark's `DivideDTInterval` does; a sum that leaves its type fails.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{DurationMicrosecondType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::EmitTo;

use super::group_states::{GroupStates, each_row};
use super::sum::{ExactSums, Overflow, overflowed};
use crate::functions::text::time::interval::{DURATION, half_up};

/// Sums and counts per group.
pub(super) struct DurationAverages {
    overflow: Overflow,
    sums: ExactSums<DurationMicrosecondType>,
    counts: Vec<i64>,
}

impl DurationAverages {
    pub(super) fn new(overflow: Overflow) -> Self {
        Self { overflow, sums: ExactSums::new(&DURATION, None, overflow, false), counts: Vec::new() }
    }

    fn count(&mut self, group: usize, values: i64) {
        self.counts[group] = self.counts[group].saturating_add(values);
    }
}

impl GroupStates for DurationAverages {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::new(self.overflow))
    }

    fn grow(&mut self, groups: usize) {
        self.sums.grow(groups);
        if self.counts.len() < groups {
            self.counts.resize(groups, 0);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        self.sums.update(values, groups, filter)?;
        each_row(values[0].nulls(), filter, groups, |_, group| {
            self.count(group, 1);
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<DurationMicrosecondType>();
        let counts = states[1].as_primitive::<Int64Type>();
        // A sum that is NULL although values were counted has overflowed.
        let marks = (0..sums.len()).map(|row| sums.is_null(row) && counts.is_valid(row) && counts.value(row) > 0);
        let marks = BooleanArray::from(marks.collect::<Vec<bool>>());
        self.sums.merge_sums(sums, Some(&marks), groups)?;
        each_row(counts.nulls(), None, groups, |row, group| {
            self.count(group, counts.value(row));
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, _) = self.sums.take(emit);
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(emit.take_needed(&mut self.counts)))])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, _) = self.sums.take(emit);
        let counts = emit.take_needed(&mut self.counts);
        let averages = sums.iter().zip(counts).map(|(sum, count)| {
            let Some(sum) = sum else { return Ok(None) };
            match i64::try_from(half_up(i128::from(sum), i128::from(count.max(1)))) {
                Ok(average) => Ok(Some(average)),
                Err(_) => overflowed(&DURATION),
            }
        });
        Ok(Arc::new(averages.collect::<Result<PrimitiveArray<DurationMicrosecondType>>>()?))
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.counts.capacity() * size_of::<i64>()
    }
}
