//! Edition 3 of a plugin that is swapped under load: the same rows as every edition, and its own number.

use millstream_sdk::prelude::*;

/// Two rows for each.
#[table_function]
fn halves(x: i64) -> impl Iterator<Item = i64> {
    [2 * x, 2 * x + 1].into_iter()
}

/// The number of this edition, whatever the argument.
#[scalar_function]
fn version(_x: i64) -> i64 {
    3
}

plugin!(halves, version);
