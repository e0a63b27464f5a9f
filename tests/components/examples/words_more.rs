//! What `plugins/text` could become: `words` as before, in upper case, and one function more.

use millstream_sdk::prelude::*;

/// The parts of a line between single spaces, in upper case.
#[table_function]
fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(' ').map(str::to_uppercase)
}

/// As in `plugins/text`.
#[table_function]
fn tokens(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()).map(str::to_lowercase)
}

/// New.
#[scalar_function]
fn length(line: &str) -> i64 {
    line.chars().count() as i64
}

plugin!(length, words, tokens);
