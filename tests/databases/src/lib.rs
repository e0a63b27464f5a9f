//! Real servers of PostgreSQL and MariaDB for tests, each in a temporary folder and on a port of its own.
//!
//! The flow: [`folder`] makes the place and lets nothing outlive the test; [`server`] starts, kills and restarts a
//! program there; [`postgres`] and [`mariadb`] say which program and how it is asked. [`query`] runs queries from
//! memory streams into them; [`kafka`] is the proof that counts of Kafka's records get into them exactly once.
//!
//! Rule of its life: a server is there as long as somebody holds it, and dies with the process in any case. A user
//! may name servers of their own with `MILLSTREAM_TEST_POSTGRES` and `MILLSTREAM_TEST_MYSQL`; those are never killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod folder;
pub mod kafka;
pub mod mariadb;
pub mod postgres;
pub mod proof;
pub mod proxy;
pub mod query;
mod server;

pub use mariadb::MariaDb;
pub use postgres::Postgres;
