//! Clients of what stands outside of the host: Kafka, PostgreSQL, MySQL, Redis, tables of Delta Lake.
//!
//! Sources and sinks of one system share what is here: how options become a connection, which options are refused and
//! why, what its errors mean. One folder per system. Nothing here reads or writes a row, and nothing knows of batches.

pub mod database;
pub mod delta;
pub mod kafka;
pub mod mysql;
pub mod postgres;
pub mod redis;
