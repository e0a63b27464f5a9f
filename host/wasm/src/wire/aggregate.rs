//! Interface `aggregate`: functions that make one value of many rows, whose state the host keeps.

use wasmtime::component::{ComponentType, Lift};

use super::{AGGREGATE, Batch, BatchRef, Field, Nulls, RowError};
use crate::export::{answers, export};

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct AggregateFunction {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Field>,
    pub(crate) result: Vec<Field>,
    pub(crate) state: Vec<Field>,
    #[component(name = "state-id")]
    pub(crate) state_id: String,
    pub(crate) nulls: Nulls,
    pub(crate) retracts: bool,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct StatesOutput {
    pub(crate) states: Batch,
    #[component(name = "row-errors")]
    pub(crate) row_errors: Vec<RowError>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ResultsOutput {
    pub(crate) values: Batch,
    #[component(name = "row-errors")]
    pub(crate) row_errors: Vec<RowError>,
}

export! {
    /// `aggregate.describe`: what aggregate functions there are.
    DescribeAggregates = AGGREGATE, "describe", () -> Vec<AggregateFunction>;
}

answers! {
    /// `aggregate.accumulate`: function number, groups, group of each row, arguments.
    Accumulate = AGGREGATE, "accumulate", (u32, u32, &'a [u8], BatchRef<'a>) -> StatesOutput;
    /// `aggregate.merge`: function number, groups, group of each state, states.
    Merge = AGGREGATE, "merge", (u32, u32, &'a [u8], BatchRef<'a>) -> StatesOutput;
    /// `aggregate.retract`: function number, states, group of each row, arguments.
    Retract = AGGREGATE, "retract", (u32, BatchRef<'a>, &'a [u8], BatchRef<'a>) -> StatesOutput;
    /// `aggregate.evaluate`: function number, states.
    Evaluate = AGGREGATE, "evaluate", (u32, BatchRef<'a>) -> ResultsOutput;
}
