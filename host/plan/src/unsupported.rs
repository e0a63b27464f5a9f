//! What may not stream, and why: one entry per rule, each with the way out.
//!
//! Source of the semantics: Spark's `UnsupportedOperationChecker`, and the conformance cases where they differ from
//! its documents.

use crate::PlanError;
use crate::event_time;
use crate::input::QueryInput;
use crate::lower::has_stream;
use crate::stream_join::{EventTimes, JoinCondition, is_bounded};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinConstraint, JoinSide, JoinType};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Union};
use millstream_common::OutputMode;

type Verdict = Result<(), PlanError>;

fn refuse(rule: &'static str, reason: impl Into<String>, hint: impl Into<String>) -> Verdict {
    Err(PlanError::Unsupported { rule, reason: reason.into(), hint: hint.into() })
}

/// Checks the plan as the user wrote it.
///
/// # Errors
/// [`PlanError::Unsupported`] for the first rule that is broken, from the sink's side down.
pub(crate) fn check_analyzed(plan: &LogicalPlan, input: &QueryInput) -> Verdict {
    if !has_stream(plan) {
        return refuse("no-stream", "the query reads no stream", "name one of the [[stream]] entries in FROM");
    }
    let mut aggregations = 0;
    let mut first = Ok(());
    let visited = plan.apply(|node| {
        if has_stream(node) {
            first = check_node(node, input, &mut aggregations);
        }
        Ok(if first.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    visited.map_err(|error| PlanError::from_datafusion(&error))?;
    first?;
    if aggregations == 0 && input.mode == OutputMode::Complete {
        return refuse(
            "complete-without-aggregation",
            "output mode complete needs an aggregation: without one the result would be every row ever read",
            "use output mode append",
        );
    }
    if aggregations > 1 && input.mode != OutputMode::Append {
        return refuse(
            "chained-aggregations",
            format!(
                "output mode {} cannot have one aggregation above another: rows of the lower one change later",
                input.mode
            ),
            "use output mode append with a watermark, which hands on final rows only",
        );
    }
    Ok(())
}

/// Checks what only the optimised plan shows.
///
/// # Errors
/// As [`check_analyzed`].
pub(crate) fn check_optimized(plan: &LogicalPlan) -> Verdict {
    if !has_stream(plan) {
        return refuse(
            "no-stream",
            "no row of a stream can reach the result of this query",
            "look for a condition that is always false",
        );
    }
    let mut first = Ok(());
    let visited = plan.apply(|node| {
        if let LogicalPlan::Join(join) = node {
            first = check_optimized_join(join);
        }
        Ok(if first.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    visited.map_err(|error| PlanError::from_datafusion(&error))?;
    first?;
    for column in plan.schema().fields() {
        if !crate::session::is_plain(column.data_type()) {
            return refuse(
                "column-type",
                format!("the result column `{}` has the type {}", column.name(), column.data_type()),
                "give it a type with CAST",
            );
        }
    }
    Ok(())
}

fn check_node(node: &LogicalPlan, input: &QueryInput, aggregations: &mut usize) -> Verdict {
    check_subqueries(node)?;
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            *aggregations += 1;
            check_aggregate(aggregate, input.mode)
        }
        LogicalPlan::Distinct(Distinct::On(_)) => {
            refuse("distinct-on", "DISTINCT ON cannot be used on a stream", "aggregate with max_by or min_by")
        }
        LogicalPlan::Distinct(Distinct::All(below)) => {
            *aggregations += 1;
            let marked = below.schema().fields().iter().any(|field| event_time::is_marked(field));
            check_append(input.mode, marked, "DISTINCT")
        }
        LogicalPlan::Sort(_) if input.mode != OutputMode::Complete => refuse(
            "sort",
            "a stream has no last row, so its rows cannot be sorted as a whole",
            "sort an aggregation in output mode complete, or sort in the sink",
        ),
        LogicalPlan::Sort(sort) if !has_aggregation(&sort.input) => {
            refuse("sort", "only the result of an aggregation can be sorted", "aggregate first, or sort in the sink")
        }
        LogicalPlan::Limit(_) if input.mode == OutputMode::Update => refuse(
            "limit-update",
            "LIMIT cannot be used in output mode update: which rows are among the first changes later",
            "use output mode append or complete",
        ),
        LogicalPlan::Window(_) => refuse(
            "over",
            "OVER needs all rows of a partition, and a stream never has them",
            "use GROUP BY window(...) for windows of event time",
        ),
        LogicalPlan::Union(union) => check_union(union),
        LogicalPlan::Join(join) => check_join(join, input.mode),
        LogicalPlan::RecursiveQuery(_) => {
            refuse("recursive", "a recursive query cannot read a stream", "unroll the recursion")
        }
        _ => Ok(()),
    }
}

fn check_subqueries(node: &LogicalPlan) -> Verdict {
    let mut found = false;
    for expr in node.expressions() {
        let visited = expr.apply(|part| {
            let below = match part {
                Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
                Expr::InSubquery(subquery) => Some(&subquery.subquery.subquery),
                Expr::Exists(exists) => Some(&exists.subquery.subquery),
                _ => None,
            };
            found |= below.is_some_and(|plan| has_stream(plan));
            Ok(TreeNodeRecursion::Continue)
        });
        visited.map_err(|error| PlanError::from_datafusion(&error))?;
    }
    if found {
        return refuse(
            "subquery",
            "a subquery in an expression cannot read a stream: its answer would change while rows wait for it",
            "join the streams instead",
        );
    }
    Ok(())
}

fn check_aggregate(aggregate: &Aggregate, mode: OutputMode) -> Verdict {
    for expr in &aggregate.aggr_expr {
        let mut distinct = None;
        let visited = expr.apply(|part| {
            if let Expr::AggregateFunction(function) = part
                && function.params.distinct
            {
                distinct = Some(function.func.name().to_owned());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        visited.map_err(|error| PlanError::from_datafusion(&error))?;
        if let Some(name) = distinct {
            return refuse(
                "distinct-aggregate",
                format!("{name}(DISTINCT …) would have to remember every value for ever"),
                "use approx_count_distinct, or GROUP BY the value first",
            );
        }
    }
    let schema = aggregate.input.schema();
    let marked = aggregate
        .group_expr
        .iter()
        .any(|expr| expr.to_field(schema).is_ok_and(|(_, field)| event_time::is_marked(&field)));
    check_append(mode, marked, "an aggregation")
}

fn check_append(mode: OutputMode, has_event_time: bool, what: &str) -> Verdict {
    if mode == OutputMode::Append && !has_event_time {
        return refuse(
            "append-without-watermark",
            format!(
                "{what} in output mode append needs a watermark on one of its keys: without one no row is ever final"
            ),
            "give the stream a watermark and group by window(...) of that column, or use output mode update or complete",
        );
    }
    Ok(())
}

fn check_union(union: &Union) -> Verdict {
    if union.inputs.iter().all(|input| has_stream(input)) {
        return Ok(());
    }
    refuse(
        "union-static",
        "UNION of a stream and a static table would give the table's rows again in every batch",
        "read the table as a stream of its own, or join it",
    )
}

fn check_join(join: &Join, mode: OutputMode) -> Verdict {
    if join.join_constraint == JoinConstraint::Using && matches!(join.join_type, JoinType::Right | JoinType::Full) {
        return refuse(
            "using-outer",
            format!(
                "a {} join with USING has columns that may come from either side, and only the left one is read",
                join.join_type
            ),
            "write the condition with ON, and name the column of the side that you mean, or coalesce(l.id, r.id)",
        );
    }
    let (left, right) = (has_stream(&join.left), has_stream(&join.right));
    if left && right {
        return check_stream_join(join, mode);
    }
    let preserved_static = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => !left,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => !right,
        JoinType::Full => true,
    };
    if preserved_static {
        return refuse(
            "outer-static",
            format!(
                "a {} join cannot keep the static side's unmatched rows: a match may come with any later batch",
                join.join_type
            ),
            "put the stream on the side whose rows are kept, or use an inner join",
        );
    }
    Ok(())
}

fn check_stream_join(join: &Join, mode: OutputMode) -> Verdict {
    let kind = join.join_type;
    if !matches!(kind, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full | JoinType::LeftSemi) {
        return refuse(
            "anti-join",
            format!("a {kind} join of two streams would have to know that no match will ever come"),
            "use a LEFT JOIN with a time condition, and keep the rows WHERE the right side is NULL",
        );
    }
    let is_inner = kind == JoinType::Inner;
    if mode == OutputMode::Complete || (mode == OutputMode::Update && !is_inner) {
        return refuse(
            "join-mode",
            format!(
                "a {kind} join of two streams cannot be used in output mode {mode}: its rows are added, never changed"
            ),
            "use output mode append",
        );
    }
    if mode != OutputMode::Append && (has_aggregation(&join.left) || has_aggregation(&join.right)) {
        return refuse(
            "chained-aggregations",
            format!("output mode {mode} cannot have a join above an aggregation: rows of the aggregation change later"),
            "use output mode append with a watermark, which hands on final rows only",
        );
    }
    if is_inner {
        return Ok(());
    }
    let condition = JoinCondition::of(join);
    let bounded = |side| is_bounded(join, &condition, side);
    let is_bounded = match kind {
        JoinType::Right => bounded(JoinSide::Right),
        JoinType::Full => bounded(JoinSide::Left) || bounded(JoinSide::Right),
        _ => bounded(JoinSide::Left),
    };
    if is_bounded || EventTimes::of(join, &condition).key.is_some() {
        return Ok(());
    }
    let nullable = match kind {
        JoinType::Right => "the left stream",
        JoinType::Full => "one of the streams",
        _ => "the right stream",
    };
    refuse(
        "join-without-time-bound",
        format!(
            "a {kind} join of two streams needs to know when a row can match no more, and nothing in its condition says so"
        ),
        format!(
            "give {nullable} a watermark and bound the distance of the event times in ON: \
             r.ts BETWEEN l.ts AND l.ts + INTERVAL 10 MINUTES, or join on equal windows"
        ),
    )
}

/// Checks the joins of streams in the optimised plan: conditions from WHERE have reached them, unused columns are gone.
fn check_optimized_join(join: &Join) -> Verdict {
    if !has_stream(&join.left) || !has_stream(&join.right) {
        return Ok(());
    }
    if JoinCondition::of(join).keys.is_empty() {
        return refuse(
            "join-without-equality",
            "two streams can be joined by equal values only, and the condition has no equality between them",
            "add one to the condition, such as l.id = r.id",
        );
    }
    for (side, input) in [("left", &join.left), ("right", &join.right)] {
        let times: Vec<&str> = input
            .schema()
            .fields()
            .iter()
            .filter(|field| event_time::is_marked(field))
            .map(|field| field.name().as_str())
            .collect();
        if times.len() > 1 {
            return refuse(
                "several-event-times",
                format!(
                    "the {side} side of the join has several event times ({}), and one must decide what is late",
                    times.join(", ")
                ),
                "select only one of them below the join",
            );
        }
    }
    Ok(())
}

fn has_aggregation(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        found |= matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}
