//! Kafka → windowed count → an output, exactly once: through three brokers of which one after the other is killed, by a host
//! that is killed again and again.
//!
//! ```text
//!   parent: records ──► topic ──► child: the query ──► output ──► parent: every window once, with its exact count
//!                         └─ brokers, killed ─┘└─ killed ─┘
//! ```
//!
//! The output is a topic, or what implements [`Output`]: the tests of other connectors bring their own.
//!
//! A record's time is its number in milliseconds after [`BEGIN_MS`], and records are written in the order of their times, a
//! portion at a time. So the count of each window and key is known, and no record is late.

mod host;
mod output;
mod storm;
mod verdict;

pub use host::{Given, host};
pub use output::Output;
pub use storm::{Outcome, Plan, storm, storm_into};
pub use verdict::Found;

/// How many keys there are. A portion has all of them equally often.
const KEYS: u64 = 100;
/// The time of the first record, where a window begins; 0 would mean the time at which it is written.
const BEGIN_MS: u64 = 1_700_000_000_000;
/// How long a window is.
const WINDOW_MS: u64 = 10_000;
