//! Rows that a join's condition cannot match because of a NULL are taken out before the join.
//!
//! A row with a NULL in a column that the condition compares matches nothing. Where unmatched rows of that side do not
//! come out, it need not be kept; and it does not advance the watermark, because the filter goes below it (unless it
//! reads the event time itself). Source of the semantics: Spark's `InferFiltersFromConstraints`.

use super::condition::JoinCondition;
use crate::event_time;
use crate::lower::has_stream;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr::{Alias, Between, Cast, Like, ScalarFunction};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Functions that give NULL for a NULL.
const NULL_FOR_NULL: &[&str] = &[
    crate::functions::expr::CAST,
    "spark_add",
    "spark_subtract",
    "spark_multiply",
    "spark_divide",
    "div",
    "mod",
    "pmod",
    "spark_normalized",
    "get_field",
    "upper",
    "lower",
    "trim",
    "ltrim",
    "rtrim",
    "length",
    "substring",
    "abs",
    "date_trunc",
    "window_time",
];

/// The plan with those filters above the inputs of its joins; still to be pushed down. To be done once, between two
/// runs of the optimiser.
///
/// # Errors
/// When a filter cannot be built.
pub(crate) fn filter_nulls(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up(|node| {
        let LogicalPlan::Join(join) = node else { return Ok(Transformed::no(node)) };
        if !has_stream(&join.left) && !has_stream(&join.right) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let (left, right) = match join.join_type {
            JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => (true, true),
            JoinType::Left | JoinType::LeftAnti => (false, true),
            JoinType::Right | JoinType::RightAnti => (true, false),
            JoinType::Full | JoinType::LeftMark | JoinType::RightMark => (false, false),
        };
        if join.null_aware {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let compared = compared_columns(&join);
        let filtered_left = if left { filtered(&join.left, &compared)? } else { None };
        let filtered_right = if right { filtered(&join.right, &compared)? } else { None };
        if filtered_left.is_none() && filtered_right.is_none() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let left = filtered_left.unwrap_or_else(|| Arc::clone(&join.left));
        let right = filtered_right.unwrap_or_else(|| Arc::clone(&join.right));
        Ok(Transformed::yes(LogicalPlan::Join(Join { left, right, ..join })))
    })
}

/// The columns in which a NULL makes the condition NULL.
fn compared_columns(join: &Join) -> BTreeSet<Column> {
    let condition = JoinCondition::of(join);
    let mut columns = BTreeSet::new();
    if !condition.nulls_are_equal {
        for (left, right) in &condition.keys {
            needed(left, &mut columns);
            needed(right, &mut columns);
        }
    }
    for conjunct in condition.both.iter().chain(&condition.left_only).chain(&condition.right_only) {
        match conjunct {
            Expr::IsNotNull(inner) => needed(inner, &mut columns),
            other => needed(other, &mut columns),
        }
    }
    columns
}

/// Adds the columns in which a NULL makes the expression NULL.
fn needed(expr: &Expr, columns: &mut BTreeSet<Column>) {
    match expr {
        Expr::Column(column) => {
            columns.insert(column.clone());
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if gives_null_for_null(*op) => {
            needed(left, columns);
            needed(right, columns);
        }
        Expr::Alias(Alias { expr: inner, .. })
        | Expr::Cast(Cast { expr: inner, .. })
        | Expr::Negative(inner)
        | Expr::Not(inner) => needed(inner, columns),
        Expr::Between(Between { expr: inner, low, high, negated: false }) => {
            [inner, low, high].into_iter().for_each(|part| needed(part, columns));
        }
        Expr::Like(Like { expr: inner, pattern, .. }) => {
            needed(inner, columns);
            needed(pattern, columns);
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if NULL_FOR_NULL.contains(&func.name()) => {
            args.iter().for_each(|argument| needed(argument, columns));
        }
        _ => {}
    }
}

fn gives_null_for_null(op: Operator) -> bool {
    use Operator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Plus | Minus | Multiply | Divide | Modulo)
}

/// `input` without the rows that have a NULL in one of `columns`; `None` when it has none of them that could be NULL.
fn filtered(input: &Arc<LogicalPlan>, columns: &BTreeSet<Column>) -> Result<Option<Arc<LogicalPlan>>> {
    let schema = input.schema();
    let filters = columns.iter().filter(|column| can_be_null(column, schema));
    let filters = filters.map(|column| Expr::Column(column.clone()).is_not_null());
    match conjunction(filters) {
        Some(predicate) => Ok(Some(Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, Arc::clone(input))?)))),
        None => Ok(None),
    }
}

/// Whether the column is one of `schema` and a NULL there matters before the join. A window that carries event time is
/// left to the join: the filter would have to stay above the watermark, and compute the window there once more.
fn can_be_null(column: &Column, schema: &DFSchema) -> bool {
    let Some(index) = schema.maybe_index_of_column(column) else { return false };
    let field = schema.field(index);
    let is_window = matches!(field.data_type(), DataType::Struct(_)) && event_time::is_marked(field);
    !is_window && Expr::Column(column.clone()).nullable(schema).unwrap_or(true)
}
