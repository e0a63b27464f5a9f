//! `tally_one` with everything renamed that nobody outside can see, and written otherwise.

use millstream_sdk::prelude::*;

/// A sum.
#[derive(Row, Default)]
struct RunningSum {
    total: i64,
}

#[aggregate_function(name = "tally", state_id = "total")]
impl RunningSum {
    fn accumulate(&mut self, x: i64) {
        self.total = [self.total, x].iter().sum();
    }

    fn merge(&mut self, other: Self) {
        *self = Self { total: self.total + other.total };
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

plugin!(aggregates: RunningSum);
