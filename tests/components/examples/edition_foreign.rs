//! What no edition may become: `version` answers with text.

use millstream_sdk::prelude::*;

/// As in every edition.
#[table_function]
fn halves(x: i64) -> impl Iterator<Item = i64> {
    [2 * x, 2 * x + 1].into_iter()
}

/// Another type of result.
#[scalar_function]
fn version(_x: i64) -> String {
    "four".to_owned()
}

plugin!(halves, version);
