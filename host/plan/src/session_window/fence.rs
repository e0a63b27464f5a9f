//! A fence above an aggregation by sessions, for filters that ask about the sessions.
//!
//! The optimiser takes a filter on grouping keys for one on the rows, which it is unless the key grows: below the aggregation
//! `session_window.end > …` would ask each row for its own range, and `WHERE` a session lasts longer than its gap would find
//! none. Filters on other keys pass. Spark has no such fence; there a filter on a session is one on its rows.

use crate::event_time;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Distinct, Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Passes all rows of an aggregation by sessions, and no filter on the sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct SessionFence {
    input: LogicalPlan,
}

impl SessionFence {
    /// What the rows come from.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }

    fn sessions(&self) -> HashSet<String> {
        let fields = self.input.schema().fields().iter();
        fields.filter(|field| event_time::is_session(field)).map(|field| field.name().clone()).collect()
    }
}

/// The plan with a fence above every aggregation by sessions.
///
/// # Errors
/// When the plan cannot be built again, which would be a bug.
pub(crate) fn fence(plan: LogicalPlan) -> Result<LogicalPlan> {
    let fenced = plan.transform_up(|node| {
        if !matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_))) {
            return Ok(Transformed::no(node));
        }
        let fence = SessionFence { input: node };
        if fence.sessions().is_empty() {
            return Ok(Transformed::no(fence.input));
        }
        Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(fence) })))
    })?;
    Ok(fenced.data)
}

impl UserDefinedLogicalNodeCore for SessionFence {
    fn name(&self) -> &str {
        "Sessions"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.sessions()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sessions: Vec<String> = self.sessions().into_iter().collect();
        sessions.sort();
        write!(f, "Sessions: {}", sessions.join(", "))
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("a fence has one input") };
        Ok(Self { input })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
