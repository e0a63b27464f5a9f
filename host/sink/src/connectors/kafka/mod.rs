//! Rows as records of Kafka topics.
//!
//! Columns `value`, `key`, `topic`, `partition` and `headers` become the parts of a record, as in Spark. Spark writes at
//! least once; here a batch is one transaction, in which the batch's id is committed, too, so that a batch that is handed
//! over again after a crash is known.
//!
//! ```text
//!   begin ─► records ─► offset of the group `millstream-sink-<query>` := batch + 1 ─► commit
//!      └──────────── trouble: abort, and once more ─────────────┘         └ unknown: a new client asks for the offset
//! ```
//!
//! Rule of its life: of two runs of one query the younger one writes; the brokers refuse the older one from the moment
//! that the younger has opened its sink. Nothing is told to be written before the brokers have said so.
//!
//! It creates no topic, and reads no record.

mod columns;
mod config;
mod marker;
mod sink;
mod transaction;
mod verdict;
mod writer;

#[cfg(test)]
mod tests;

pub use sink::KafkaSinkFactory;

/// The name in `.format("…")`.
pub(super) const FORMAT: &str = "kafka";
