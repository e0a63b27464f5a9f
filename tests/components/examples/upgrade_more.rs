//! `upgrade` with its functions in another order and one more: a good edition.

use millstream_sdk::prelude::*;

/// New.
#[scalar_function]
fn added(x: i64) -> i64 {
    x + 1
}

/// As before.
#[scalar_function]
fn label(code: &str) -> String {
    code.to_lowercase()
}

/// A word and its place.
#[derive(Row)]
struct Part {
    word: String,
    place: i64,
}

/// As before.
#[table_function]
fn parts(line: &str) -> Vec<Part> {
    line.split(' ').zip(0..).map(|(word, place)| Part { word: word.to_owned(), place }).collect()
}

/// As before.
#[scalar_function]
fn price(cents: i64) -> Result<i64, String> {
    Ok(cents + cents / 10)
}

/// Of another type; nobody calls it.
#[scalar_function]
fn spare(x: &str) -> String {
    x.to_owned()
}

plugin!(added, spare, parts, label, price);
