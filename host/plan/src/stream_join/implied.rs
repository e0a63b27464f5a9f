//! Rows of which a join's condition already says that they match nothing are taken out before the join.
//!
//! A row with a NULL in a column that the condition compares matches nothing; neither does a row whose key fails a filter
//! that all rows of the other side have passed on theirs. Where unmatched rows of that side do not come out, such a row
//! need not be kept; and it does not advance the watermark, because the filter goes below it (unless it reads the event
//! time itself). Source of the semantics: Spark's `InferFiltersFromConstraints`.

use super::condition::JoinCondition;
use crate::dedup::DedupNode;
use crate::event_time;
use crate::functions::expr::behind_shield;
use crate::lower::has_stream;
use crate::session_window::SessionFence;
use crate::watermark::WatermarkNode;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinSide, JoinType, Result};
use datafusion::logical_expr::expr::{Alias, Between, Cast, Like, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::replace_col;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator};
use std::collections::{BTreeSet, HashMap};
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
pub(crate) fn filter_inputs(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
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
        let condition = JoinCondition::of(&join);
        let compared = compared_columns(&condition);
        let implied =
            |from, to| if condition.nulls_are_equal { Vec::new() } else { carried_over(&join, &condition, from, to) };
        let filtered_left =
            if left { filtered(&join.left, &compared, implied(JoinSide::Right, JoinSide::Left))? } else { None };
        let filtered_right =
            if right { filtered(&join.right, &compared, implied(JoinSide::Left, JoinSide::Right))? } else { None };
        if filtered_left.is_none() && filtered_right.is_none() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let left = filtered_left.unwrap_or_else(|| Arc::clone(&join.left));
        let right = filtered_right.unwrap_or_else(|| Arc::clone(&join.right));
        Ok(Transformed::yes(LogicalPlan::Join(Join { left, right, ..join })))
    })
}

/// The columns in which a NULL makes the condition NULL.
fn compared_columns(condition: &JoinCondition) -> BTreeSet<Column> {
    let mut columns = BTreeSet::new();
    if !condition.nulls_are_equal {
        for (left, right) in &condition.keys {
            needed(left, &mut columns);
            needed(right, &mut columns);
        }
    }
    for conjunct in condition.both.iter().chain(&condition.left_only).chain(&condition.right_only) {
        match behind_shield(conjunct) {
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

/// What the rows of `from` have passed, where it is about one column of the key, said of the key of `to`.
fn carried_over(join: &Join, condition: &JoinCondition, from: JoinSide, to: JoinSide) -> Vec<Expr> {
    let plan = |side| if side == JoinSide::Left { join.left.as_ref() } else { join.right.as_ref() };
    let passed = passed_filters(plan(to));
    let mut carried = Vec::new();
    for predicate in passed_filters(plan(from)) {
        let columns = predicate.column_refs();
        let [column] = columns.iter().collect::<Vec<_>>()[..] else { continue };
        for (left, right) in &condition.keys {
            let (own, other) = if from == JoinSide::Left { (left, right) } else { (right, left) };
            let (Expr::Column(own), Expr::Column(other)) = (own, other) else { continue };
            if own != *column || predicate.is_volatile() {
                continue;
            }
            let renamed = predicate.clone().transform(|part| {
                Ok(match &part {
                    Expr::Column(found) if found == own => Transformed::yes(Expr::Column(other.clone())),
                    _ => Transformed::no(part),
                })
            });
            carried.extend(renamed.ok().map(|renamed| renamed.data).filter(|predicate| !passed.contains(predicate)));
        }
    }
    carried
}

/// The conditions that all rows of a plan have passed, over its columns.
fn passed_filters(plan: &LogicalPlan) -> Vec<Expr> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let mut passed = passed_filters(&filter.input);
            passed.extend(split_conjunction(&filter.predicate).into_iter().cloned());
            passed
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let places = alias.input.schema().columns().into_iter().zip(alias.schema.columns());
            renamed(passed_filters(&alias.input), &places.collect())
        }
        LogicalPlan::Projection(projection) => {
            let places = projection.expr.iter().zip(projection.schema.columns());
            let places = places.filter_map(|(expr, column)| match expr {
                Expr::Column(from) => Some((from.clone(), column)),
                Expr::Alias(Alias { expr, .. }) => Some((expr.try_as_col()?.clone(), column)),
                _ => None,
            });
            renamed(passed_filters(&projection.input), &places.collect())
        }
        // Only of these it is known that their rows are rows of their input; a function of the program makes others.
        LogicalPlan::Extension(extension) => {
            let node = extension.node.as_any();
            let passes_on = node.is::<WatermarkNode>() || node.is::<DedupNode>() || node.is::<SessionFence>();
            match extension.node.inputs().as_slice() {
                [input] if passes_on && extension.node.schema().columns() == input.schema().columns() => {
                    passed_filters(input)
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// Those of the conditions that read only columns which have a place, with the names that these have there.
fn renamed(conditions: Vec<Expr>, places: &HashMap<Column, Column>) -> Vec<Expr> {
    let rename = |condition: Expr| {
        let known = condition.column_refs().into_iter().all(|column| places.contains_key(column));
        known.then(|| replace_col(condition, &places.iter().collect()).ok()).flatten()
    };
    conditions.into_iter().filter_map(rename).collect()
}

/// `input` without the rows that have a NULL in one of `columns` or fail one of the `implied` conditions; `None` when
/// nothing is to be taken out.
fn filtered(
    input: &Arc<LogicalPlan>,
    columns: &BTreeSet<Column>,
    implied: Vec<Expr>,
) -> Result<Option<Arc<LogicalPlan>>> {
    let schema = input.schema();
    let filters = columns.iter().filter(|column| can_be_null(column, schema));
    let filters = filters.map(|column| Expr::Column(column.clone()).is_not_null());
    match conjunction(filters.chain(implied)) {
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
