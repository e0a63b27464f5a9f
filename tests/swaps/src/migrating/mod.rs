//! Swaps between editions whose state has other forms, under load, with a death at every step of the protocol.
//!
//! ```text
//!   driver ──orders──► host: a query over `ledger` or `tracker`, in this process or in one of its own
//!     │  swap, with a verdict, with a shadow, rollback, rollback that restores, a refused swap, another edition in the
//!     │  query file; before each a step at which the host is to die, or none
//!     │                                └── files that die at that step; a process of its own is killed (SIGKILL) there
//!     └──────► oracle: reads the offset log, computes every batch with the edition that it names, compares all rows
//! ```
//! A storm has episodes, each with a query of its own, so that they stay short. The oracle shares no code with the editions
//! nor with the engine; it takes from the log which rows a batch read, its watermark, its edition, and what a border did.

mod driver;
mod editions;
mod host;
mod model;
mod oracle;
mod process;
mod step_files;

pub use driver::{Storm, migrating_storm};
pub(crate) use editions::EDITION_FILES;
pub(crate) use host::PLUGIN as LEDGER;
pub use process::serve;

use serde::{Deserialize, Serialize};

/// What the query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Windows of an aggregate function of the plugin.
    Ledger,
    /// A processor of the plugin, with a value, a list, a map and timers.
    Tracker,
}

/// How a component is to take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Way {
    /// At once; state is migrated when its form changes.
    Swap,
    /// After a verdict with a dry run.
    Verdict,
    /// After a verdict, and two batches in the shadow of the query.
    Shadow,
    /// Back to the component before the last swap, whose state is made again.
    Restore,
}

/// A step at which the host dies: its name, and how often it is passed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Strike {
    step: String,
    passes: u32,
}

/// What a host is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Order {
    /// The query starts; its file names that edition.
    Start { edition: usize, dry_run: u64, strike: Option<Strike> },
    /// An edition takes over.
    Swap { to: usize, way: Way, strike: Option<Strike> },
    /// A component asks that must be refused.
    Refuse { which: usize, strike: Option<Strike> },
    /// The query stops.
    Stop,
}

/// What a host answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Answer {
    /// It is done; of a swap, how many microseconds the query stood still.
    Done { pause_us: Option<u64> },
    /// The restore was not possible any more, so there was no swap.
    Passed,
    /// It died at a step.
    Struck { step: String },
    /// Something went wrong that must not.
    Wrong { what: String },
}
