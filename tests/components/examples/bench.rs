//! The functions of `host/wasm/benches/boundary.rs`; there they are once more, over Arrow arrays.

use millstream_sdk::prelude::*;

/// Arithmetic.
#[scalar_function]
fn mix(a: i64, b: f64) -> f64 {
    a as f64 * 0.5 + b.sqrt() * 3.0
}

/// Text: the host of the URL in the third field of a line, in upper case.
#[scalar_function]
fn host(line: &str) -> String {
    let field = line.trim().split(',').nth(2).unwrap_or("");
    let rest = field.split_once("://").map_or(field, |(_, rest)| rest);
    rest.split('/').next().unwrap_or("").to_uppercase()
}

/// Text to rows: words of three characters or more.
#[table_function]
fn long_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ').filter(|word| word.len() >= 3)
}

plugin!(mix, host, long_words);
