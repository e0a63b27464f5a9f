//! Files in a folder or object store, exactly once.
//!
//! ```text
//!   <path>/part-<batch>-<part>-<uuid>.<ending>   data, written first, under names that are never used again
//!   <path>/_millstream/<batch>.manifest          names the files of the batch: its commit
//!   <path>/_millstream/owner                     the query that the folder belongs to
//! ```
//!
//! With option `sparkMetadata` Spark's own log in `_spark_metadata` stands in the place of the manifests ([`spark_log`]):
//! an output has one log, in one of the two forms. With option `partitionBy` the data files are in folders `k=v`.
//!
//! Rule of its life: a batch is there when it is in the log. Its entry is written once, as a whole, after
//! all its files; a batch at or below the newest entry is not written again. Files that no entry names are
//! left by an attempt that died: readers of the log ([`read_committed`], [`read_spark_log`]) never see them, and the next
//! start removes them.
//!
//! It does not overwrite files, and it does not share a folder between queries.

mod config;
pub(crate) mod encode;
mod log;
mod manifest;
mod partition;
mod segments;
mod sink;
mod spark_log;
#[cfg(test)]
mod tests;

pub use config::FileFormat;
pub use manifest::{CommittedBatch, CommittedFile, read_committed, read_committed_in};
pub use segments::CommittedBatches;
pub use sink::{FileSinkFactory, OpenFiles};
pub use spark_log::{SparkFile, read_spark_log};
