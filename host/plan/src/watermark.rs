//! The watermark as a node of the logical plan.
//!
//! It passes rows through and marks the event-time column. Filters that read that column stay above it: rows that
//! they remove have advanced the watermark; other filters may be pushed below it (Spark's
//! `EventTimeWatermark` and `PushPredicateThroughNonJoin`).

use crate::event_time;
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// `withWatermark(column, delay)` on a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WatermarkNode {
    /// The name of the stream: names the node in the tracker.
    pub(crate) node: String,
    /// The event-time column.
    pub(crate) column: Column,
    /// The delay in microseconds.
    pub(crate) delay_us: i64,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl PartialOrd for WatermarkNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.node.partial_cmp(&other.node)
    }
}

impl WatermarkNode {
    /// The node above `input`.
    ///
    /// # Errors
    /// When `input` has no such column.
    pub(crate) fn new(node: String, column: Column, delay_us: i64, input: LogicalPlan) -> Result<Self> {
        let index = input.schema().index_of_column(&column)?;
        let fields = input.schema().iter().enumerate().map(|(i, (qualifier, field))| {
            let field = if i == index { Arc::new(event_time::mark(field, delay_us)) } else { Arc::clone(field) };
            (qualifier.cloned(), field)
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), input.schema().metadata().clone())?;
        Ok(Self { node, column, delay_us, input, schema: Arc::new(schema) })
    }

    /// What the rows come from.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }
}

impl UserDefinedLogicalNodeCore for WatermarkNode {
    fn name(&self) -> &str {
        "Watermark"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![Expr::Column(self.column.clone())]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::from([self.column.name.clone()])
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watermark: {} delay {} ms", self.column, self.delay_us / 1000)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("a watermark has one input") };
        Self::new(self.node.clone(), self.column.clone(), self.delay_us, input)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let event_time = self.schema.index_of_column(&self.column).ok()?;
        let mut columns = output_columns.to_vec();
        columns.push(event_time);
        columns.sort_unstable();
        columns.dedup();
        Some(vec![columns])
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
