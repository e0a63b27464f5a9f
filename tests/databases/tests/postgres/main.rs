//! PostgreSQL as sink and source, against a real server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod changes;
mod sink;
mod tables;

use databases_tests::Postgres;
use std::sync::{LazyLock, RwLock, RwLockReadGuard};

/// One server for all; who kills it waits until nobody else needs it.
static SERVER: LazyLock<RwLock<Postgres>> = LazyLock::new(|| RwLock::new(Postgres::start()));

/// The server, in company.
fn server() -> RwLockReadGuard<'static, Postgres> {
    SERVER.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}
