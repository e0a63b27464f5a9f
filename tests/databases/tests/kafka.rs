//! A small storm; the program `kafka-databases` makes large ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use databases_tests::kafka::Tables;
use databases_tests::{Product, is_of_user};
use kafka_tests::proof::{Plan, storm_into};

#[test]
fn counts_from_kafka_to_databases_are_exact_whoever_dies() {
    let has_brokers = std::env::var_os("MILLSTREAM_TEST_KAFKA").is_some_and(|value| !value.is_empty());
    if has_brokers || is_of_user(Product::Postgres) || is_of_user(Product::Mysql) {
        eprintln!("left out: this test kills brokers and servers");
        return;
    }
    let program = env!("CARGO_BIN_EXE_kafka-databases").into();
    let plan = Plan { records: 20_000, kills: 3, seed: 7, program };
    let (tables, mut told) = (Tables::start(), Vec::new());
    let outcome = storm_into(&plan, &tables, &mut |line| told.push(line));
    let outcome = outcome.unwrap_or_else(|error| panic!("{error:#}\n{told:#?}"));
    assert_eq!((outcome.lost, outcome.doubled), (0, 0), "{outcome:?} {told:#?}");
    assert!(outcome.kills == 3 && outcome.brokers >= 1 && outcome.windows == 200, "{outcome:?}");
    assert_eq!(tables.deaths(), (2, 2), "{told:#?}");
}
