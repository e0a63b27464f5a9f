//! Rows handed to a writer of the program, one by one (Spark's `foreach`).
//!
//! ```text
//!   batch N ──► open(partition, N) ──true──► process(row) … ──► close(none)
//!                    │        │                   └─ failed ──► close(error), the batch fails
//!                    │        └─false───────────────────────► close(none), the rows are skipped
//!                    └─ failed: the batch fails, nothing is closed
//! ```
//!
//! Rule of its life: at least once. Each batch has a copy of the writer of its own; what it opened is closed before the batch ends,
//! also when `process` fails or panics. There is one partition, number 0. What stands in a batch that is run again is the same.

mod row;
mod sink;
#[cfg(test)]
mod tests;

pub use row::{Row, RowError};
pub use sink::{ForeachFactory, ForeachWriter};
