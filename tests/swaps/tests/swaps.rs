//! Forty swaps under load; the program `swaps` makes more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[test]
fn swaps_under_load_with_kills_lose_and_double_nothing() {
    let outcome = swap_tests::storm(40, 3).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((outcome.lost, outcome.doubled, outcome.unexplained), (0, 0, 0), "{outcome:?}");
    assert!(outcome.done == 40 && outcome.refused > 1 && outcome.kills > 1, "{outcome:?}");
}
