//! HDFS under all that keeps files: durable files by their contract, a query with source, sink and checkpoint there, tables of
//! Delta Lake, wrong addresses, and a name node that goes away.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod delta;
mod files;
mod outages;
mod query;
mod refusals;
mod store;
mod world;
