//! A thousand random queries over random streams give what the batch query gives.

#![allow(clippy::panic, reason = "tests")]

/// Seeds per test, so that they share the cores.
const SEEDS: u64 = 250;

fn run(quarter: u64) {
    let (mut rows, mut restarts) = (0, 0);
    for seed in quarter * SEEDS..(quarter + 1) * SEEDS {
        let outcome = equivalence_tests::run(seed).unwrap_or_else(|error| panic!("{error:#}"));
        rows += outcome.rows;
        restarts += outcome.restarts;
    }
    assert!(rows > SEEDS && restarts > SEEDS / 4, "{rows} rows and {restarts} restarts are too few to tell");
}

#[test]
fn the_first_quarter_of_the_seeds_is_equal() {
    run(0);
}

#[test]
fn the_second_quarter_of_the_seeds_is_equal() {
    run(1);
}

#[test]
fn the_third_quarter_of_the_seeds_is_equal() {
    run(2);
}

#[test]
fn the_fourth_quarter_of_the_seeds_is_equal() {
    run(3);
}
