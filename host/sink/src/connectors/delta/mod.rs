//! A table of Delta Lake, exactly once.
//!
//! ```text
//!   batch ──► files (nobody sees them) ──► one commit: add files, txn(query id, batch id) ──► _delta_log/<version>.json
//! ```
//!
//! [`config`] has the options, [`compaction`] puts small files together between batches, [`rows`] brings the query's columns into the table's, [`sink`] makes the transactions, all by
//! Delta's own kernel.
//!
//! Rule of its life: a batch is in the table when the log has it as transaction of the query; a batch that is there is not
//! written again. A commit that meets another writer's is made again on what that one has left. Files of an attempt that
//! died are in no version; Delta's `VACUUM` removes them.
//!
//! It does not change the columns of a table that is there, and does not update rows by key.

mod compaction;
mod config;
mod rows;
mod sink;
#[cfg(test)]
mod tests;

pub use sink::DeltaSinkFactory;
