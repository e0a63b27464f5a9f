//! Swaps a plugin of a running query again and again, kills the query between, and counts.
//!
//! ```text
//!   rate-micro-batch ─► halves() (table, plugin) ─► version() (scalar, plugin) ─► count per second ─► files
//! ```
//! Every batch of the source has its own second, so the windows tell which batch a row was read in. Every edition of
//! the plugin gives the same rows and another number from `version`. So the output shows what is lost and what is
//! doubled, which edition read the rows of a batch, and which edition was at work when they went out; both must be the
//! edition whose digest the offset log names for that batch.
//!
//! [`migrating`] swaps editions whose state has other forms.
//!
//! The *pause* of a swap is the time between the end of the last batch of the old component and the end of the first
//! batch of the new one, as the query's listener sees them. It contains the first new batch itself; compiling the
//! component does not count, because it happens beside the running query.

mod editions;
pub mod migrating;
pub mod pause;
mod query;
mod storm;
mod verdict;

pub use storm::{Outcome, storm};
