//! A plugin of many editions in one file: what it does depends on a mark in its data, which tests of upgrades write over.
//!
//! `price` and `label` are called from an aggregation, `parts` from a lateral view, `spare` by nobody.

use millstream_sdk::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

/// The mark: a head to find it by, and the name of the edition, filled up with dots.
static EDITION: [u8; 40] = *b"upgrade-edition:base....................";

/// Whether this is that edition.
fn is(name: &str) -> bool {
    let mark = black_box(&EDITION);
    let end = 16 + name.len();
    mark[16..end] == *name.as_bytes() && mark[end] == b'.'
}

/// Cents with a tenth on top.
#[scalar_function]
fn price(cents: i64) -> Result<i64, String> {
    static SEEN: AtomicI64 = AtomicI64::new(0);
    let price = cents + cents / 10;
    if is("traps-on-an-old-value") {
        assert!(cents != 7, "no price for {cents}");
    }
    if is("refuses-an-old-value") && cents == 7 {
        return Err(format!("{cents} cents are too few"));
    }
    if is("never-returns") {
        while black_box(cents == 7) {}
    }
    if is("hoards") {
        let mut all = Vec::new();
        while black_box(cents == 7) {
            all.push(vec![1u8; 1 << 20]);
            black_box(&all);
        }
    }
    if is("remembers") {
        return Ok(price + SEEN.fetch_add(1, Ordering::Relaxed));
    }
    if is("slow") {
        let mut sum = cents;
        for n in 0..150_000 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
        black_box(sum);
    }
    if is("doubles") {
        return Ok(2 * price);
    }
    if is("rounds-one-value") && cents == 7 {
        return Ok(10);
    }
    if is("wraps-around") {
        return Ok(i64::from(price as i8));
    }
    if is("same-by-other-means") {
        return Ok((0..10).map(|_| cents).sum::<i64>() / 10 + cents / 10);
    }
    if is("new-case") && cents < 0 {
        return Ok(0);
    }
    if is("memoises") {
        // Each place has the price of the number that was there last, with that number: what it gives is the same.
        static LAST: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];
        if LAST[0].load(Ordering::Relaxed) == cents && cents != 0 {
            return Ok(LAST[1].load(Ordering::Relaxed));
        }
        LAST[0].store(cents, Ordering::Relaxed);
        LAST[1].store(price, Ordering::Relaxed);
    }
    if is("logs") {
        log(LogLevel::Debug, "one more price");
    }
    Ok(price)
}

/// A code as a key.
#[scalar_function]
fn label(code: &str) -> String {
    if is("other-keys") {
        return code.to_uppercase();
    }
    if is("merges-keys") {
        return "all".to_owned();
    }
    if is("faster") {
        let mut bytes = code.to_owned();
        bytes.make_ascii_lowercase();
        return bytes;
    }
    code.to_lowercase()
}

/// A word and its place.
#[derive(Row)]
struct Part {
    word: String,
    place: i64,
}

/// The words of a line.
#[table_function]
fn parts(line: &str) -> Vec<Part> {
    let words = line.split(' ').zip(0..).map(|(word, place)| Part { word: word.to_owned(), place });
    if is("drops-rows") {
        return words.filter(|part| part.place != 1).collect();
    }
    if is("doubles-rows") {
        return words.flat_map(|part| [Part { word: part.word.clone(), place: part.place }, part]).collect();
    }
    if is("other-order") {
        let mut words: Vec<Part> = words.collect();
        words.reverse();
        return words;
    }
    words.collect()
}

/// Nobody calls it.
#[scalar_function]
fn spare(x: i64) -> i64 {
    x
}

plugin!(price, label, parts, spare);
