//! Stories of streaming programs: what each batch has, as Spark has it; the same with restarts and crashes; and what a
//! program may not do.
//!
//! A clock that the story moves says when; batches run when the story says so, so nothing waits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod changes;
mod contexts;
mod crashes;
mod files;
mod harness;
mod listeners;
mod outputs;
mod plugins;
mod rates;
mod receivers;
mod socket;
mod state;
mod stateless;
mod windows;
