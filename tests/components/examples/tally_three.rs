//! `tally_two` with the greatest value in its state: from the total it is two steps.

use millstream_sdk::prelude::*;

/// A sum, of how many, and the greatest.
#[derive(Row, Default)]
struct Tally {
    total: i64,
    count: i64,
    greatest: Option<i64>,
}

#[aggregate_function(state_id = "total, count, greatest")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.total += x;
        self.count += 1;
        self.greatest = self.greatest.max(Some(x));
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.count += other.count;
        self.greatest = self.greatest.max(other.greatest);
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

/// The state of the first edition.
#[derive(Row, Default)]
struct First {
    total: i64,
}

/// The state of the second edition.
#[derive(Row, Default)]
struct Second {
    total: i64,
    count: i64,
}

/// As the second edition had it.
#[migration(state = "tally", from_id = "total", to_id = "total and count")]
fn first_to_second(old: First) -> Second {
    Second { total: old.total, count: 0 }
}

/// Nobody knows the greatest.
#[migration(state = "tally", from_id = "total and count", to_id = "total, count, greatest")]
fn second_to_third(old: Second) -> Tally {
    Tally { total: old.total, count: old.count, greatest: None }
}

plugin!(aggregates: Tally; migrations: first_to_second, second_to_third);
