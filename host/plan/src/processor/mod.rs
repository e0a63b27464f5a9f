//! Stateful processors of plugins in queries: Spark's `transformWithState` and `flatMapGroupsWithState`.
//!
//! ```text
//!   FROM sessions(TABLE(clicks) PARTITION BY user, event_time => 'at')      frame.group_by([…]).transform_with_state(…)
//!                                      └───────────────┬────────────────────────────────┘
//!                        ProcessorNode    rows of the described output columns
//!                          Project        key columns, input columns, event time
//!                            input
//! ```
//!
//! Columns of the input are found by their names and widened to the types that the code has described; what would lose
//! something is refused. Nothing is pushed below a processor: what it makes of its rows only the code knows.

mod columns;
mod known;
mod node;

pub(crate) use columns::{ProcessorCall, plan_call};
pub(crate) use known::{KnownProcessor, Processors};
pub(crate) use node::{Form, ProcessorNode};
