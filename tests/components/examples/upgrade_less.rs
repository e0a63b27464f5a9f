//! `upgrade` without what some queries do not call: good for those, bad for the others.

use millstream_sdk::prelude::*;

/// As before.
#[scalar_function]
fn price(cents: i64) -> Result<i64, String> {
    Ok(cents + cents / 10)
}

/// As before.
#[scalar_function]
fn label(code: &str) -> String {
    code.to_lowercase()
}

plugin!(price, label);
