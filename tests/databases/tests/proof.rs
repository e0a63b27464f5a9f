//! A small run of the proof.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use databases_tests::{Database, Product, proof};
use std::path::Path;

fn prove(product: Product) {
    let proof = proof::into(&Database::start(product), Path::new(env!("CARGO_BIN_EXE_databases")), 2_000, 6).unwrap();
    assert!(proof.rows >= 2_000 && proof.kills == 6, "{proof:?}");
}

#[test]
fn processes_and_servers_that_are_killed_leave_each_number_once_in_postgresql() {
    prove(Product::Postgres);
}

#[test]
fn processes_and_servers_that_are_killed_leave_each_number_once_in_mariadb() {
    prove(Product::Mysql);
}
