//! Guests that do what no guest should. Each is contained, and the slot is as good as new.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod behaviours;
mod empty_world;
mod exports;
mod grants;
mod harness;
mod raw;
mod sinks;
