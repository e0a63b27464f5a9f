//! Operators: what stands between the rows of a batch and the rows of its result.
//!
//! Middle of the data path: `plan` builds a [`Pipeline`] of operators once per run; the runtime pushes the rows
//! of each batch through it, then the barrier, and takes what comes out to the sink.
//!
//! Rule of its life: an operator sees batches and barriers in order and gives batches out; it knows no mode of
//! execution, no source and no sink. What must survive a batch is in the state store, nowhere else.
//!
//! It parses no SQL, and decides nothing about offsets, triggers or commits.

pub mod aggregate;
mod context;
pub mod dedup;
mod error;
mod event_order;
pub mod filter;
mod fixed_rows;
mod float_identity;
pub mod join;
pub mod late;
pub mod limit;
pub mod map;
mod operator;
mod partitions;
mod pipeline;
pub mod processor;
pub mod project;
mod row_codec;
pub mod segment;
pub mod session;
pub mod sort;
pub mod state_family;
pub mod union;
pub mod unnest;
pub mod watermark;

#[cfg(test)]
mod stateless_tests;
#[cfg(test)]
mod testing;

pub use aggregate::{Aggregate, AggregateSpec, EventTimeKey, EventTimeKind};
pub use context::BatchContext;
pub use dedup::{DedupSpec, Deduplicate};
pub use error::OperatorError;
pub use filter::Filter;
pub use join::{Join, JoinKind, JoinSide, JoinSpec, TimeBound};
pub use late::{LateRows, LateRowsPolicy, TakeLate};
pub use limit::{BatchLimit, GlobalLimit};
pub use map::{MapBatches, MapFunction};
pub use operator::{EventTimeSeen, Operator, OperatorMetrics, StateOpener, Stateful};
pub use partitions::Partitions;
pub use pipeline::{Node, Pipeline};
pub use processor::{PluginProcessor, Processor, ProcessorCode, ProcessorSpec};
pub use project::Project;
pub use segment::{Segment, SegmentSlot};
pub use session::SessionWindows;
pub use sort::Sort;
pub use state_family::{
    ColumnsChange, Convert, FamilyMigrator, FamilyReader, PluginColumns, RowPart, StateFamily, StatePart,
    mark_plugin_state,
};
pub use union::Union;
pub use unnest::Unnest;
pub use watermark::WatchEventTime;
