//! `tally_one` beside functions that were not there before.

use millstream_sdk::prelude::*;

/// A sum.
#[derive(Row, Default)]
struct Tally {
    total: i64,
}

#[aggregate_function(state_id = "total")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.total += x;
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

/// How many.
#[derive(Row, Default)]
struct HowMany {
    count: i64,
}

#[aggregate_function(state_id = "count")]
impl HowMany {
    fn accumulate(&mut self, _x: i64) {
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
    }

    fn evaluate(&self) -> i64 {
        self.count
    }
}

/// Twice the number.
#[scalar_function]
fn twice(x: i64) -> i64 {
    2 * x
}

plugin!(twice; aggregates: HowMany, Tally);
