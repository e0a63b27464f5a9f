//! Some swaps under load; the program `swaps` makes more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use swap_tests::migrating::migrating_storm;

#[test]
fn swaps_under_load_with_kills_lose_and_double_nothing() {
    let outcome = swap_tests::storm(40, 3).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((outcome.lost, outcome.doubled, outcome.unexplained), (0, 0, 0), "{outcome:?}");
    assert!(outcome.done == 40 && outcome.refused > 1 && outcome.kills > 1, "{outcome:?}");
}

#[test]
fn swaps_of_code_whose_state_changes_its_form_lose_and_double_nothing_wherever_the_query_dies() {
    let program = Path::new(env!("CARGO_BIN_EXE_swaps"));
    let storm = migrating_storm(50, (8, program), 5, &mut |_| {}).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((storm.lost, storm.doubled), (0, 0), "{storm:?}");
    assert!(storm.done >= 50 && storm.in_processes >= 8 && storm.rows > 1000 && storm.borders > 20, "{storm:?}");
    assert!(storm.all_deaths() > 10 && storm.kills > 2 && storm.deaths.len() > 5, "{storm:?}");
}
