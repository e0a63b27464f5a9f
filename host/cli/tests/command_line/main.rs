//! The program as people run it: arguments in, standard output, standard error and exit code out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod canaries;
mod checkpoints;
mod console;
mod packages;
mod permissions;
mod plugins;
mod queries;
#[allow(dead_code, reason = "shared with another test")]
#[path = "../../../wasm/tests/hostile/raw.rs"]
mod raw;
mod refusals;
mod rows;
#[allow(dead_code, reason = "shared with another test")]
#[path = "../../../package/tests/registry/server.rs"]
mod server;
mod signals;
mod signatures;
mod state;
mod swaps;
