//! Real servers of PostgreSQL and MariaDB for tests, each in a temporary folder and on a port of its own.
//!
//! The flow: [`folder`] makes the place and lets nothing outlive the test; [`server`] starts, kills and restarts a
//! program there; [`postgres`] and [`mariadb`] say which program; [`database`] is either of them, and asks it by its URL.
//! [`query`] runs queries from memory streams into them, [`query_file`] those of a file; [`proof`] and [`kafka`] are what is shown at size.
//!
//! Rule of its life: a server is there as long as somebody holds it, and dies with the process in any case. A user
//! may name servers of their own with `MILLSTREAM_TEST_POSTGRES` and `MILLSTREAM_TEST_MYSQL`; those are never killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod database;
mod folder;
pub mod kafka;
mod mariadb;
mod postgres;
pub mod proof;
pub mod proxy;
pub mod query;
mod query_file;
mod server;

pub use database::{Connection, Database, execute, has_table, is_of_user, product_of, rows, variable};
pub use folder::Folder;
pub use millstream_client::database::Product;
pub use query_file::QueryFile;
pub use server::free_port;
