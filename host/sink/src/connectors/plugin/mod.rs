//! Rows handed to a sink of a plugin (Spark's `foreach`, by columns).
//!
//! ```text
//!   batch N ──► columns that the sink takes ──► partitions, by what is in a row ──► each: open, process …, close
//!                                                                                    │ transactional: prepare
//!   tokens, kept with the batch ◄────────────────────────────────────────────────────┘
//!   batch N is done ──► commit(token) each          batch N is not done ──► abort(token) each
//! ```
//!
//! Rule of its life: a row is in the partition that its values say, so a partition of a batch has the same rows whenever it
//! is written, whatever their order. A partition that fails fails the batch, and what the others prepared is dropped.
//! At least once with the same (partition, batch); exactly once when the component has `sink-transaction`.
//!
//! It does not know where tokens are kept, and grants nothing.

mod config;
mod partition;
mod prepared;
mod sink;

pub use sink::PluginSinkFactory;

/// The format under which a query names it.
pub const FORMAT: &str = "plugin";
