//! A small storm; the program `kafka-exactly-once` makes large ones.

use kafka_tests::proof::{Plan, storm};

#[test]
fn counts_from_kafka_to_kafka_are_exact_whoever_dies() {
    if std::env::var_os("MILLSTREAM_TEST_KAFKA").is_some_and(|brokers| !brokers.is_empty()) {
        eprintln!("left out: this test kills brokers");
        return;
    }
    let program = env!("CARGO_BIN_EXE_kafka-exactly-once").into();
    let plan = Plan { records: 50_000, kills: 4, seed: 7, program };
    let mut told = Vec::new();
    let outcome = storm(&plan, &mut |line| told.push(line)).unwrap_or_else(|error| panic!("{error:#}\n{told:#?}"));
    assert_eq!((outcome.lost, outcome.doubled), (0, 0), "{outcome:?} {told:#?}");
    assert!(outcome.kills == 4 && outcome.brokers >= 1 && outcome.windows == 500, "{outcome:?}");
}
