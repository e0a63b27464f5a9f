//! Files in a folder or object store, exactly once.
//!
//! ```text
//!   <path>/part-<batch>-<part>-<uuid>.<ending>   data, written first, under names that are never used again
//!   <path>/_millstream/<batch>.manifest          names the files of the batch: its commit
//!   <path>/_millstream/owner                     the query that the folder belongs to
//! ```
//!
//! Rule of its life: a batch is there when its manifest is there. The manifest is written once, as a whole, after
//! all its files; a batch at or below the newest manifest is not written again. Files that no manifest names are
//! left by an attempt that died: readers of the manifests ([`read_committed`]) never see them, and the next start
//! removes them.
//!
//! It does not overwrite, merge or partition files, and it does not share a folder between queries.

mod config;
pub(crate) mod encode;
mod manifest;
mod sink;
#[cfg(test)]
mod tests;

pub use config::FileFormat;
pub use manifest::{CommittedBatch, CommittedFile, read_committed, read_committed_in};
pub use sink::{FileSinkFactory, OpenFiles};
