//! How another process reaches a running query: to swap a plugin, to see what it does, to stop it.
//!
//! Beside the loop: the process that runs a query starts a [`ControlServer`], which listens on a socket in the
//! [`RunDir`]; a [`ControlClient`] finds it there by id, name or query file.
//!
//! ```text
//!   client                                            server
//!     {"command":"swap","plugin":"words",…}  ──────►  reads the file, asks for a verdict, queues it
//!                                            ◄──────  {"answer":"verdict",…}
//!                                            ◄──────  {"answer":"accepted",…}   or {"answer":"refused",…}
//!                                                     … the border between two batches …
//!                                            ◄──────  {"answer":"taken",…}      or {"answer":"refused",…}
//! ```
//!
//! Rule of its life: one line of JSON in, lines of JSON out, sizes limited. Only the user who runs the query gets in: the
//! folder of the sockets is that user's and closed to all others. What comes in is checked as if it came from anybody.
//!
//! It changes nothing on its own: everything goes through [`StreamingQuery`](crate::StreamingQuery).

mod client;
mod protocol;
mod run_dir;
mod server;

#[cfg(test)]
mod tests;

pub use client::{AskedSwap, ControlClient, PendingSwap};
pub use protocol::{Accepted, RunningQuery, SwapTerms, Taken};
pub use run_dir::RunDir;
pub use server::ControlServer;

use crate::RuntimeError;

/// The most bytes of a request.
const REQUEST_BYTES: u64 = 64 << 10;
/// The most bytes of an answer.
const ANSWER_BYTES: u64 = 4 << 20;
/// How long one side waits for the other to send or take a line that it should be sending or taking.
const LINE_TIME: std::time::Duration = std::time::Duration::from_secs(10);

fn failed(reason: impl Into<String>, hint: Option<&str>) -> RuntimeError {
    RuntimeError::Control { reason: reason.into(), hint: hint.map(str::to_owned) }
}
