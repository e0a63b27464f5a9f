//! Idempotent output: the rows of a batch go out, and the same batch twice counts once.
//!
//! Last noun of the data path before the commit log: the runtime hands every batch to [`Sink::add_batch`],
//! and hands it again after a crash.
//!
//! Rule of its life: `add_batch` is all or nothing, and idempotent by batch id where the sink's guarantee says
//! exactly once. Every connector passes the suite in [`contract`].
//!
//! It knows no source, no plan, no state.

mod byte_length;
pub mod connectors;
pub mod contract;
mod error;
mod export;
mod grouping;
mod json;
mod message_columns;
mod registry;
mod render;
mod sink;

pub use error::SinkError;
pub use export::Export;
pub use registry::{SinkFactory, SinkRegistry};
pub use sink::{Guarantee, Sink, SinkBatch, SinkContext, SinkReport, SinkSpec};
