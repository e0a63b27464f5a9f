//! Tables in memory: for looking at results, and for tests.
//!
//! A query's table has the query's name. The handle ([`MemorySinkTable`]) can be read at any time and from
//! any thread.
//!
//! Rule of its life: a table belongs to one query. Batches are kept by their id, and a batch that is there is
//! not taken again, so a restart in the same process neither loses nor doubles rows; a new query of the same
//! name starts an empty table. Nothing outlives the process.

mod sink;
mod table;
#[cfg(test)]
mod tests;

pub use table::{MemorySinkTable, MemorySinkTables};
