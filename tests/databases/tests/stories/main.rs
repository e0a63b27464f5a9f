//! Sinks, tables and changes against real servers: each story is told of PostgreSQL and of MariaDB.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod changes;
mod columns;
mod mysql;
mod sink;
mod stopping;
mod tables;

use databases_tests::{Database, Product};
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One server of each product for all; who kills it waits until nobody else needs it.
static POSTGRES: LazyLock<RwLock<Database>> = LazyLock::new(|| RwLock::new(Database::start(Product::Postgres)));
static MARIADB: LazyLock<RwLock<Database>> = LazyLock::new(|| RwLock::new(Database::start(Product::Mysql)));

fn lock(product: Product) -> &'static RwLock<Database> {
    match product {
        Product::Postgres => &POSTGRES,
        Product::Mysql => &MARIADB,
    }
}

/// The server, in company.
fn server(product: Product) -> RwLockReadGuard<'static, Database> {
    lock(product).read().unwrap_or_else(PoisonError::into_inner)
}

/// The server, alone; `None` when it is the user's, which is not killed.
fn server_to_kill(product: Product) -> Option<RwLockWriteGuard<'static, Database>> {
    let server = lock(product).write().unwrap_or_else(PoisonError::into_inner);
    server.is_own().then_some(server)
}

/// Tells each story of both products.
macro_rules! stories {
    ($($story:ident)*) => {
        mod postgresql {
            $(#[test] fn $story() { super::$story(databases_tests::Product::Postgres); })*
        }
        mod mariadb {
            $(#[test] fn $story() { super::$story(databases_tests::Product::Mysql); })*
        }
    };
}
use stories;
