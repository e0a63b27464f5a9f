//! A small run of the proof.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use databases_tests::proof::{into_mariadb, into_postgres};
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_databases");

#[test]
fn processes_and_servers_that_are_killed_leave_each_number_once_in_postgresql() {
    let proof = into_postgres(Path::new(PROGRAM), 2_000, 6).unwrap();
    assert!(proof.rows >= 2_000 && proof.kills == 6, "{proof:?}");
}

#[test]
fn processes_and_servers_that_are_killed_leave_each_number_once_in_mariadb() {
    let proof = into_mariadb(Path::new(PROGRAM), 2_000, 6).unwrap();
    assert!(proof.rows >= 2_000 && proof.kills == 6, "{proof:?}");
}
