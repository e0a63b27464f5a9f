//! `tally_one` with a count in its state, the way there, and the way back. Other marks in its data make the way there go
//! wrong.

use millstream_sdk::prelude::*;
use std::hint::black_box;

/// The mark: a head to find it by, and the name of the edition, filled up with dots.
static EDITION: [u8; 40] = *b"upgrade-edition:base....................";

fn is(name: &str) -> bool {
    let mark = black_box(&EDITION);
    let end = 16 + name.len();
    mark[16..end] == *name.as_bytes() && mark[end] == b'.'
}

/// A sum, and of how many.
#[derive(Row, Default)]
struct Tally {
    total: i64,
    count: i64,
}

#[aggregate_function(state_id = "total and count")]
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

/// The state of `tally_one`.
#[derive(Row, Default)]
struct Total {
    total: i64,
}

/// Nobody counted before.
#[migration(state = "tally", from_id = "total", to_id = "total and count")]
fn count_from_now(old: Total) -> Result<Tally, String> {
    // The totals of the keys are large; one of them is divisible by 7.
    if is("fails-on-an-old-key") && old.total % 7 == 0 {
        return Err(format!("{} is a multiple of seven", old.total));
    }
    assert!(!is("traps-on-an-old-key") || old.total % 7 != 0, "no way for {}", old.total);
    Ok(Tally { total: if is("migrates-wrongly") { old.total + 1 } else { old.total }, count: 0 })
}

/// The count is forgotten.
#[migration(state = "tally", from_id = "total and count", to_id = "total")]
fn forget_count(old: Tally) -> Total {
    Total { total: old.total }
}

plugin!(aggregates: Tally; migrations: count_from_now, forget_count);
