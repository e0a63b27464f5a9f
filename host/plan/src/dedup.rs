//! `dropDuplicates` as a node of the logical plan.
//!
//! Which row of a key is the first one depends on every row, so no filter is pushed below it.

use arrow::datatypes::Field;
use datafusion::common::{Column, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::collections::HashSet;
use std::fmt;

/// Drops rows whose key was seen before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DedupNode {
    /// The name of the stream if duplicates of one are dropped: the scope of the operator's uid.
    pub(crate) scope: Option<String>,
    /// The columns that make the key.
    pub(crate) keys: Vec<Column>,
    /// Remember keys only until the watermark reaches the first row's event time plus this delay (µs).
    pub(crate) within_us: Option<i64>,
    input: LogicalPlan,
}

impl PartialOrd for DedupNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.scope.partial_cmp(&other.scope)
    }
}

impl DedupNode {
    /// The node above `input`.
    ///
    /// # Errors
    /// When `input` lacks one of the columns.
    pub(crate) fn new(
        scope: Option<String>,
        keys: Vec<Column>,
        within_us: Option<i64>,
        input: LogicalPlan,
    ) -> Result<Self> {
        for key in &keys {
            input.schema().index_of_column(key)?;
        }
        Ok(Self { scope, keys, within_us, input })
    }

    /// What the rows come from.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// The position of the event-time column in the rows, if there is one.
    pub(crate) fn event_time(&self) -> Option<usize> {
        let is_marked = |field: &Field| crate::event_time::is_marked(field);
        self.input.schema().fields().iter().position(|field| is_marked(field))
    }
}

impl UserDefinedLogicalNodeCore for DedupNode {
    fn name(&self) -> &str {
        "Deduplicate"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        self.keys.iter().cloned().map(Expr::Column).collect()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.input.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let within = if self.within_us.is_some() { " within the watermark" } else { "" };
        write!(f, "Deduplicate: {keys}{within}")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("a deduplication has one input") };
        Self::new(self.scope.clone(), self.keys.clone(), self.within_us, input)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut columns = output_columns.to_vec();
        for key in &self.keys {
            columns.push(self.input.schema().index_of_column(key).ok()?);
        }
        columns.extend(self.event_time());
        columns.sort_unstable();
        columns.dedup();
        Some(vec![columns])
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
