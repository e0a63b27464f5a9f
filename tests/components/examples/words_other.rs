//! What `plugins/text` must not become under a running query: other arguments, other columns, a function gone.

use millstream_sdk::prelude::*;

/// A word and its place.
#[derive(Row)]
struct Placed {
    word: String,
    place: i32,
}

/// Takes bytes, gives two columns.
#[table_function]
fn words(text: &[u8]) -> Vec<Placed> {
    let text = String::from_utf8_lossy(text);
    text.split(' ').zip(0..).map(|(word, place)| Placed { word: word.to_owned(), place }).collect()
}

plugin!(words);
