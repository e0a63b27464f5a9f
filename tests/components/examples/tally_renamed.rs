//! `tally_one` with everything renamed that nobody outside can see, and written otherwise.

use millstream_sdk::prelude::*;

/// A sum.
#[derive(Row, Default)]
struct Tally {
    sum_so_far: i64,
}

#[aggregate_function(state_id = "total")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.sum_so_far = [self.sum_so_far, x].iter().sum();
    }

    fn merge(&mut self, other: Self) {
        *self = Self { sum_so_far: self.sum_so_far + other.sum_so_far };
    }

    fn evaluate(&self) -> i64 {
        self.sum_so_far
    }
}

plugin!(aggregates: Tally);
