//! What the editions of `ledger` share: the forms of their state, and the ways between them.
//!
//! `ledger` is an aggregate function and `tracker` a processor. Edition one keeps the first form of everything, two and four
//! the second, three the third; four gives other results than two over the same state.

use millstream_sdk::prelude::*;
use millstream_sdk::processor::prelude::Timestamp;

/// `ledger` in edition one.
#[derive(Clone, Debug, Default, Row)]
pub struct Total {
    /// The sum.
    pub total: i64,
}

/// `ledger` in editions two and four.
#[derive(Clone, Debug, Default, Row)]
pub struct Counted {
    /// The sum.
    pub total: i64,
    /// Of how many.
    pub count: i64,
}

/// `ledger` in edition three.
#[derive(Clone, Debug, Default, Row)]
pub struct Greatest {
    /// The sum.
    pub total: i64,
    /// Of how many.
    pub count: i64,
    /// The greatest of them, as far as that is known.
    pub greatest: Option<i64>,
}

/// Nobody counted before.
#[migration(state = "ledger", from_id = "1", to_id = "2")]
pub fn count_from_now(old: Total) -> Counted {
    Counted { total: old.total, count: 0 }
}

/// The count is forgotten.
#[migration(state = "ledger", from_id = "2", to_id = "1")]
pub fn forget_count(old: Counted) -> Total {
    Total { total: old.total }
}

/// Nobody knows the greatest.
#[migration(state = "ledger", from_id = "2", to_id = "3")]
pub fn greatest_from_now(old: Counted) -> Greatest {
    Greatest { total: old.total, count: old.count, greatest: None }
}

/// The greatest is forgotten.
#[migration(state = "ledger", from_id = "3", to_id = "2")]
pub fn forget_greatest(old: Greatest) -> Counted {
    Counted { total: old.total, count: old.count }
}

/// A row of `tracker`.
#[derive(Clone, Debug, Row)]
pub struct Number {
    /// The number.
    pub v: i64,
    /// Its time.
    pub at: Timestamp,
}

/// What `tracker` gives.
#[derive(Clone, Debug, Row)]
pub struct Told {
    /// The key.
    pub k: i64,
    /// `rows` or `timer`.
    pub what: String,
    /// The sum, or the second of the timer.
    pub n: i64,
    /// All that is known of the key.
    pub text: String,
}

/// The variable `sum` from edition two on.
#[derive(Clone, Debug, Default, Row)]
pub struct Sums {
    /// The sum.
    pub sum: i64,
    /// Calls with rows.
    pub calls: i64,
}

/// An entry of the map `seen`, whole, in edition one.
#[derive(Clone, Debug, Default, Row)]
pub struct SeenEntry {
    /// The map's key.
    pub key: i64,
    /// How often.
    pub n: i64,
}

/// A value of the map `seen` from edition two on.
#[derive(Clone, Debug, Default, Row)]
pub struct Seen {
    /// How often.
    pub n: i64,
    /// The last number, -1 when it is not known.
    pub last: i64,
}

/// An entry of the map `seen`, whole, from edition two on.
#[derive(Clone, Debug, Default, Row)]
pub struct SeenLastEntry {
    /// The map's key.
    pub key: i64,
    /// How often.
    pub n: i64,
    /// The last number, -1 when it is not known.
    pub last: i64,
}

/// An entry of the list `last` in edition three.
#[derive(Clone, Debug, Default, Row)]
pub struct Weighted {
    /// The number.
    pub v: i64,
    /// Its last digit.
    pub weight: i64,
}

/// Nobody counted calls before.
#[migration(state = "tracker.sum", from_id = "1", to_id = "2")]
pub fn call_from_now(sum: i64) -> Sums {
    Sums { sum, calls: 0 }
}

/// The calls are forgotten.
#[migration(state = "tracker.sum", from_id = "2", to_id = "1")]
pub fn forget_calls(old: Sums) -> i64 {
    old.sum
}

/// Nobody knows the last.
#[migration(state = "tracker.seen", from_id = "1", to_id = "2")]
pub fn last_from_now(old: SeenEntry) -> SeenLastEntry {
    SeenLastEntry { key: old.key, n: old.n, last: -1 }
}

/// The last is forgotten.
#[migration(state = "tracker.seen", from_id = "2", to_id = "1")]
pub fn forget_last(old: SeenLastEntry) -> SeenEntry {
    SeenEntry { key: old.key, n: old.n }
}

/// The weight is in the number.
#[migration(state = "tracker.last", from_id = "1", to_id = "2")]
pub fn weigh(v: i64) -> Weighted {
    Weighted { v, weight: v % 10 }
}

/// The number is all that stays.
#[migration(state = "tracker.last", from_id = "2", to_id = "1")]
pub fn unweigh(old: Weighted) -> i64 {
    old.v
}
