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
//! Small files of earlier batches can be put together with a later one ([`compaction`]).
//!
//! Rule of its life: a batch is there when it is in the log. Its entry is written once, as a whole, after
//! all its files; a batch at or below the newest entry is not written again. Files that no entry names are
//! left by an attempt that died: readers of the log ([`read_committed`], [`read_spark_log`], the file source) never see
//! them, and they are removed once their batch is in the log without them. Not before: an attempt that was thought to be
//! dead may still come to its end.
//!
//! It does not overwrite files, and it does not share a folder between queries.

mod compaction;
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
pub use manifest::{read_committed, read_committed_in, read_live_files};
pub use millstream_client::file_log::{
    CommittedBatch, CommittedBatches, CommittedFile, FileLogError, MergedFile, ReplacedFile, SparkFile, read_spark_log,
};
pub use sink::{FileSinkFactory, OpenFiles};
