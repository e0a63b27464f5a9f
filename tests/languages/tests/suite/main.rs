//! What a plugin answers does not depend on the language it is written in. `README.md` says what it answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod aggregates;
mod columns;
mod faults;
mod functions;
mod load;
mod natively;
mod processors;
mod sources;
mod values;
