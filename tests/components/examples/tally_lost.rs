//! `tally_one` with another state and no way there.

use millstream_sdk::prelude::*;

/// A sum and a count.
#[derive(Row, Default)]
struct Tally {
    count: i64,
    total: i64,
}

#[aggregate_function(state_id = "count and total")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.total += x;
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.count += other.count;
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

plugin!(aggregates: Tally);
