//! The program as people run it: arguments in, standard output, standard error and exit code out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod checkpoints;
mod console;
mod plugins;
mod queries;
mod refusals;
mod replays;
mod signals;
mod state;
mod swaps;
