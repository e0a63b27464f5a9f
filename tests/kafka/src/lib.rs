//! A real Apache Kafka for tests: brokers in KRaft mode on loopback, started, killed, paused and started again.
//!
//! [`Kafka`] is a cluster of one broker or three, [`Kafka::shared`] one broker that all tests of a program have in common,
//! each with topics of its own,
//! [`Kafka::mortal`] one that they may kill, in turns. Records are written and read by plain clients that know nothing of Millstream.
//!
//! Rule of its life: whatever becomes of the test program, its brokers end with it, and so do their folders.
//!
//! [`RegistryServer`] is a schema registry that ends in the same way; `MILLSTREAM_TEST_SCHEMA_REGISTRY` names another one.
//!
//! With `MILLSTREAM_TEST_KAFKA` set to the addresses of other brokers, [`Kafka::shared`] is those; what kills brokers is
//! then left out, with a line that says so.

#![allow(clippy::panic, reason = "helpers of tests may fail a test")]

mod cluster;
mod jars;
mod node;
pub mod proof;
mod records;
mod schema_registry;
mod secured;
mod topics;
mod zombie;

pub use cluster::{Kafka, Mortal};
pub use records::{Isolation, Record};
pub use schema_registry::RegistryServer;
pub use secured::Secured;
pub use zombie::Zombie;
