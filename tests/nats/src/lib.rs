//! A real server of NATS for tests, in a temporary folder and on a port of its own.
//!
//! The flow: [`server`] starts, kills and restarts the program; [`client`] makes streams, fills and empties them, and looks at
//! what is there.
//!
//! Rule of its life: a server is there as long as somebody holds it, and dies with the process in any case. A user may name
//! servers of their own with `MILLSTREAM_TEST_NATS`; they are never killed, and streams of tests have names of their own there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

pub mod client;
pub mod server;

pub use client::Client;
pub use server::Nats;
