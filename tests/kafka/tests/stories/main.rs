//! What source, sink and discretised streams must do against real brokers. One program, so that one broker serves all: each
//! story has topics of its own, and those that kill brokers have one in turns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod broker;
mod dstream;
mod exactly_once;
mod secured;
mod sink;
mod source;
