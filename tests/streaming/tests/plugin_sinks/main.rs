//! Queries whose sink is a plugin that writes to a server on this machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod at_least_once;
mod exactly_once;
mod http;
mod ledger;
mod place;
mod refusals;
mod swaps;
