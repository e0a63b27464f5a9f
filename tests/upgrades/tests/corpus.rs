//! Every case of the corpus.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use upgrade_tests::{Stage, bad, good};

#[test]
fn every_bad_upgrade_is_refused_or_held_and_every_good_one_goes_through() {
    let stage = Stage::new().unwrap();
    let cases = bad().unwrap().into_iter().chain(good().unwrap());
    let wrong: Vec<String> =
        cases.filter_map(|case| case.check(&stage).err()).map(|error| format!("{error:#}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
