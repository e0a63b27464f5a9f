//! SQL and DataFrame → streaming plan; what may not stream, and why.
//!
//! Before the data path: the runtime hands a [`QueryInput`] to [`plan()`] once per run and gets a
//! [`StreamingPlan`], whose pipeline then sees every batch.
//!
//! Rule of its life: planned once per run, the same input gives the same plan, and the uid of a stateful operator
//! depends only on the names that the user gave. A query that cannot mean what Spark means is refused here,
//! with the reason and the way out, before anything is opened.
//!
//! It reads no data, opens no checkpoint and knows no connector.

pub mod batch_query;
mod called_functions;
pub mod ddl;
mod dedup;
mod deep_stack;
mod error;
mod event_time;
pub mod frame;
mod front;
pub mod functions;
mod input;
mod lower;
mod plan;
mod plugins;
mod processor;
mod session;
mod session_window;
mod sql;
mod static_subquery;
mod stream_join;
mod stream_table;
mod time_window;
mod uid;
mod union_event_time;
mod unsupported;
mod watermark;

pub use error::PlanError;
pub use frame::{Frame, FramePlanner};
pub use input::{BeyondSpark, DropDuplicates, EventTime, PlanSettings, Query, QueryInput, StaticTable, StreamInput};
pub use plan::{SourceSlot, StreamingPlan, plan};
pub use sql::create_function::{CreateFunction, leading_functions};
