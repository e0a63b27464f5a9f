//! Grouping sets over no rows give no row.
//!
//! ```text
//!   Aggregate by ROLLUP(k)   →   Project (as before) ── Filter rows > 0 ── Aggregate by ROLLUP(k), with count(*) AS rows
//! ```
//!
//! Spark computes a grouping set by giving each row once per set, so where there is no row there is no grand total
//! either. DataFusion makes one, as standard SQL does. Source of the semantics: Spark's `Expand`.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::sync::Arc;

const ROWS: &str = "__rows";

/// The node with no grand total of nothing, if it has grouping sets.
pub(super) fn without_total_of_nothing(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(Transformed::no(node)) };
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let columns: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut functions = aggregate.aggr_expr;
    functions.push(count(lit(1_i64)).alias(ROWS));
    let counted = Aggregate::try_new(Arc::clone(&aggregate.input), aggregate.group_expr, functions)?;
    let some = Expr::Column(Column::new_unqualified(ROWS)).gt(lit(0_i64));
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(counted))
        .filter(some)?
        .project(columns)?
        .build()
        .map(Transformed::yes)
}
