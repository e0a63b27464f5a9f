//! Functions that do what no function should.

use millstream_sdk::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

/// Panics, always.
#[scalar_function]
fn panics(x: i64) -> i64 {
    assert!(x == i64::MIN, "no luck with {x}");
    x
}

/// Never returns.
#[scalar_function]
fn spins(x: i64) -> i64 {
    let mut n = x;
    while black_box(true) {
        n = black_box(n.wrapping_add(1));
    }
    n
}

/// Takes memory until there is none.
#[scalar_function]
fn hoards(x: i64) -> i64 {
    let mut all = Vec::new();
    while black_box(true) {
        all.push(vec![1u8; 1 << 20]);
        black_box(&all);
    }
    x
}

/// Calls itself without end.
#[scalar_function]
fn recurses(x: i64) -> i64 {
    #[allow(unconditional_recursion, reason = "on purpose")]
    fn deeper(x: i64) -> i64 {
        let here = black_box([x; 16]);
        black_box(deeper(here[3] + 1) + here[5])
    }
    deeper(x)
}

/// A result of a mebibyte per row.
#[scalar_function]
fn swells(x: i64) -> String {
    let letter = if x == 0 { "a" } else { "b" };
    letter.repeat(1 << 20)
}

/// Panics on rows where both arguments are equal, else gives the first.
#[scalar_function]
fn panics_on(x: i64, at: i64) -> i64 {
    assert!(x != at, "hit {x}");
    x
}

/// Never returns on rows where both arguments are equal, else gives the first.
#[scalar_function]
fn spins_on(x: i64, at: i64) -> i64 {
    if x == at {
        return spins(x);
    }
    x
}

/// Says that multiples of three fail.
#[scalar_function]
fn dislikes_threes(x: i64) -> Result<i64, String> {
    if x % 3 == 0 { Err(format!("{x} is a multiple of three")) } else { Ok(x) }
}

/// Refuses the call when there is a negative number in it.
#[scalar_function]
fn refuses_negatives(x: i64) -> CallResult<i64> {
    if x < 0 { Err(CallError::invalid_input("a negative number")) } else { Ok(x) }
}

/// Says that the world is not there.
#[scalar_function]
fn waits_for_the_world(x: i64) -> CallResult<i64> {
    Err(CallError::unavailable(format!("nobody answers {x}")))
}

/// Writes a thousand long lines of log per row.
#[scalar_function]
fn chatters(x: i64) -> i64 {
    let line = "blah ".repeat(2000);
    (0..1000).for_each(|_| log(LogLevel::Info, &line));
    x
}

/// Counts its rows over calls, in a place where no count is safe.
#[scalar_function(volatile)]
fn rows_seen(x: i64) -> i64 {
    static SEEN: AtomicI64 = AtomicI64::new(0);
    SEEN.fetch_add(x.signum(), Ordering::Relaxed) + 1
}

/// Keeps a mebibyte per call for ever.
#[scalar_function]
fn leaks(x: i64) -> i64 {
    std::mem::forget(black_box(vec![1u8; 1 << 20]));
    x
}

/// `x` rows, and a panic on rows where both arguments are equal.
#[table_function]
fn counts_to(x: i64, at: i64) -> impl Iterator<Item = i64> {
    assert!(x != at, "hit {x}");
    0..x
}

/// `x` rows, of which the last fails when `x` is even.
#[table_function]
fn stumbles(x: i64) -> impl Iterator<Item = Result<i64, String>> {
    (0..x).map(move |n| if x % 2 == 0 && n + 1 == x { Err(format!("{n} is the last")) } else { Ok(n) })
}

plugin!(
    panics,
    spins,
    hoards,
    recurses,
    swells,
    panics_on,
    spins_on,
    dislikes_threes,
    refuses_negatives,
    waits_for_the_world,
    chatters,
    rows_seen,
    leaks,
    counts_to,
    stumbles
);
