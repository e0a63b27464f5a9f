//! Clients of what stands outside of the host: Kafka, schema registries, PostgreSQL, MySQL, Redis, NATS, MQTT, tables of
//! Delta Lake, outputs of file sinks.
//!
//! Sources and sinks of one system share what is here: how options become a connection, which options are refused and
//! why, what its errors mean. One folder per system. Nothing here reads or writes a row, but
//! for the data files of Delta, which source and sink both read; and nothing knows of batches.

pub mod database;
pub mod delta;
pub mod file_log;
pub mod int96;
pub mod kafka;
pub mod mqtt;
pub mod mysql;
pub mod nats;
pub mod patience;
pub mod postgres;
pub mod redis;
pub mod schema_registry;
pub mod server_options;
pub mod store_options;
