//! An aggregate function whose state is a total. With another mark in its data it sums squares under the same state id, which
//! is a lie.

use millstream_sdk::prelude::*;
use std::hint::black_box;

/// The mark: a head to find it by, and the name of the edition, filled up with dots.
static EDITION: [u8; 40] = *b"upgrade-edition:base....................";

fn is(name: &str) -> bool {
    let mark = black_box(&EDITION);
    let end = 16 + name.len();
    mark[16..end] == *name.as_bytes() && mark[end] == b'.'
}

/// A sum.
#[derive(Row, Default)]
struct Tally {
    total: i64,
}

#[aggregate_function(state_id = "total")]
impl Tally {
    fn accumulate(&mut self, x: i64) {
        self.total += if is("lies") { x * x } else { x };
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

plugin!(aggregates: Tally);
