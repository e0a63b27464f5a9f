//! A real broker of MQTT for tests, in a temporary folder and on a port of its own.
//!
//! The flow: [`broker`] starts, stops and restarts the program; [`client`] writes and reads as other programs would;
//! [`proxy`] stands between and breaks connections at a chosen packet.
//!
//! Rule of its life: a broker is there as long as somebody holds it, and dies with the process in any case. A user may name
//! a broker of their own with `MILLSTREAM_TEST_MQTT`; it is never stopped, and topics of tests have names of their own there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

pub mod broker;
pub mod client;
pub mod proxy;

pub use broker::Broker;
pub use client::Client;
