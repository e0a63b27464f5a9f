//! `tally_one` with a narrower column under the same state id.

use millstream_sdk::prelude::*;

/// A sum that is soon too large.
#[derive(Row, Default)]
struct Tally {
    total: i32,
}

#[aggregate_function(state_id = "total")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.total = self.total.wrapping_add(x as i32);
    }

    fn merge(&mut self, other: Self) {
        self.total = self.total.wrapping_add(other.total);
    }

    fn evaluate(&self) -> i64 {
        i64::from(self.total)
    }
}

plugin!(aggregates: Tally);
