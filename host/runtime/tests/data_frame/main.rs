//! The DataFrame API: what it gives is what SQL gives, batch by batch, with the same state under the same names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod example;
mod functions;
mod names;
mod pairs;
mod refusals;
mod sinks;
mod world;
