//! Replayable input: what is new, which rows a range holds, and when the past may be forgotten.
//!
//! First noun of the data path: the runtime asks a [`Source`] for an offset, writes the range to the offset
//! log, and only then reads the rows of that range.
//!
//! Rule of its life: the rows of a range are the same each time it is read, until it is released; a source
//! that cannot promise this (socket) says so. Every connector passes the suite in [`contract`].
//!
//! It knows no batch numbers and no plan, and of plugins only that some bring sources of their own.

pub mod connectors;
pub mod contract;
pub mod decode;
mod error;
mod headers;
mod kept_rows;
mod loss;
mod offset;
mod refresh;
mod registry;
mod sealed;
mod source;

pub use error::SourceError;
pub use offset::Offset;
pub use refresh::Refresh;
pub use registry::{SourceFactory, SourceRegistry};
pub use source::{CommitCallback, DeadLetter, Source, SourceContext, SourceSettings, SourceSpec};
