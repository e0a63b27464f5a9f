//! What an aggregate is made of: handed over by the planner once per run.

use crate::OperatorError;
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use millstream_common::{OperatorUid, OutputMode};
use millstream_wasm::PluginSlot;
use std::sync::Arc;

/// What an aggregate is made of.
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// The operator's stable name.
    pub uid: OperatorUid,
    /// The grouping keys, with grouping sets if there are any; without keys the aggregate is global.
    pub group_by: PhysicalGroupBy,
    /// The functions.
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    /// The FILTER clause of each function.
    pub filters: Vec<Option<PhysicalExprRef>>,
    /// The plugins whose functions are among them.
    pub plugins: Vec<Arc<PluginSlot>>,
    /// The columns of the rows that come in.
    pub input: SchemaRef,
    /// The columns of the rows that go out: the keys, `__grouping_id` for grouping sets, the functions' results.
    pub output: SchemaRef,
    /// Which groups leave in each batch.
    pub mode: OutputMode,
    /// The key that carries event time, if one does: without it no group is ever late or evicted.
    pub event_time: Option<EventTimeKey>,
    /// Over how many partitions the state is spread; a global aggregate has one whatever this says.
    pub partitions: u32,
}

impl AggregateSpec {
    /// Checks that the output has the columns of `keys` and then those of the functions.
    pub(crate) fn check_output(&self, keys: &[FieldRef], operator: &str) -> Result<(), OperatorError> {
        let functions = self.functions.iter().map(|function| function.field().data_type().clone());
        let wanted: Vec<DataType> = keys.iter().map(|field| field.data_type().clone()).chain(functions).collect();
        let has: Vec<DataType> = self.output.fields().iter().map(|field| field.data_type().clone()).collect();
        if wanted != has {
            let reason = format!("its columns are {wanted:?}, {has:?} are wanted");
            return Err(OperatorError::Misfit { operator: operator.to_owned(), reason });
        }
        Ok(())
    }
}

/// The grouping key that carries event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTimeKey {
    /// Its position among the keys.
    pub index: usize,
    /// Which time of it counts.
    pub kind: EventTimeKind,
}

/// Which time of a key is compared with the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTimeKind {
    /// The key is a struct with a field `end`: that time.
    Window,
    /// The key is the time itself.
    Timestamp,
}
