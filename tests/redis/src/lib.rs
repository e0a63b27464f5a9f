//! A real server of Redis for tests, in a temporary folder and on a port of its own.
//!
//! The flow: [`server`] starts, kills and restarts the program; [`client`] asks it as a person would; [`proxy`] stands
//! between and breaks connections at a chosen word.
//!
//! Rule of its life: a server is there as long as somebody holds it, and dies with the process in any case. A user may name
//! a server of their own with `MILLSTREAM_TEST_REDIS`; it is never killed, and keys of tests have names of their own there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

pub mod client;
pub mod proxy;
pub mod server;

pub use client::Client;
pub use server::Redis;
