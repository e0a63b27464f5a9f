//! What may not stream, and why: one entry per rule, each with the way out.
//!
//! Source of the semantics: Spark's `UnsupportedOperationChecker`, and the conformance cases where they differ from
//! its documents.

use crate::PlanError;
use crate::dedup::DedupNode;
use crate::event_time;
use crate::input::QueryInput;
use crate::lower::has_stream;
use crate::stream_join::{EventTimes, JoinCondition, is_bounded};
use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinConstraint, JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Projection, Union};
use millstream_common::OutputMode;
use std::sync::Arc;

mod processors;

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
    processors::check(plan, input.mode)?;
    if aggregations == 0 && input.mode == OutputMode::Complete {
        return refuse(
            "complete-without-aggregation",
            "output mode complete needs an aggregation: without one the result would be every row ever read",
            "use output mode append",
        );
    }
    if input.mode != OutputMode::Append && has_chained_aggregations(plan) {
        return refuse(
            "chained-aggregations",
            format!(
                "output mode {} cannot have an aggregation, or dropping of duplicates by event time, above an aggregation: rows of the lower one change later",
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
        LogicalPlan::Projection(projection) => check_window_time(projection),
        LogicalPlan::Aggregate(aggregate) => {
            *aggregations += 1;
            check_aggregate(aggregate, input.mode)
        }
        LogicalPlan::Distinct(Distinct::On(_)) => {
            refuse("distinct-on", "DISTINCT ON cannot be used on a stream", "aggregate with max_by or min_by")
        }
        LogicalPlan::Distinct(Distinct::All(below)) => {
            *aggregations += 1;
            check_keys(&below.schema().fields().iter().map(Arc::clone).collect::<Vec<_>>(), input.mode, "DISTINCT")
        }
        LogicalPlan::Sort(_) if input.mode != OutputMode::Complete => refuse(
            "sort",
            "a stream has no last row, so its rows cannot be sorted as a whole",
            "sort an aggregation in output mode complete, or sort in the sink",
        ),
        LogicalPlan::Sort(sort) if !has_aggregation(&sort.input) => {
            refuse("sort", "only the result of an aggregation can be sorted", "aggregate first, or sort in the sink")
        }
        LogicalPlan::Limit(limit) if limit.skip.is_some() => refuse(
            "offset",
            "OFFSET cannot be used on a stream: which rows it would skip changes with every batch",
            "leave OFFSET out, or number the rows in the sink",
        ),
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
        LogicalPlan::Join(join) => {
            check_set_operation(join)?;
            check_join(join, input.mode)
        }
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
    let keys: Vec<FieldRef> = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(sets)] => {
            let keys = fields_of(sets.distinct_expr().into_iter(), schema);
            if keys.iter().any(|field| event_time::is_session(field)) {
                return refuse(
                    "session-grouping-sets",
                    "sessions cannot be grouped by ROLLUP, CUBE or GROUPING SETS: each set would merge them differently",
                    "group by session_window(...) and the other keys, one query per set",
                );
            }
            keys
        }
        keys => fields_of(keys.iter(), schema),
    };
    check_keys(&keys, mode, "an aggregation")
}

fn fields_of<'a>(keys: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> Vec<FieldRef> {
    keys.filter_map(|key| key.to_field(schema).ok()).map(|(_, field)| field).collect()
}

/// Checks the grouping keys: one of them must carry event time in output mode append, and a session has rules of its own.
fn check_keys(keys: &[FieldRef], mode: OutputMode, what: &str) -> Verdict {
    let sessions: Vec<&FieldRef> = keys.iter().filter(|field| event_time::is_session(field)).collect();
    let Some(session) = sessions.first() else {
        let times: Vec<&str> =
            keys.iter().filter(|key| event_time::is_marked(key)).map(|key| key.name().as_str()).collect();
        if mode != OutputMode::Complete && times.len() > 1 {
            return refuse(
                "several-event-times",
                format!(
                    "{what} has several event times among its keys ({}), and one must decide what is late",
                    times.join(", ")
                ),
                "group by one of them: what is derived from it can be computed above",
            );
        }
        return check_append(mode, keys.iter().any(|field| event_time::is_marked(field)), what);
    };
    if sessions.len() > 1 {
        return refuse(
            "two-windows",
            format!("one aggregation cannot have the {} sessions of different columns", sessions.len()),
            "group by one session, and by the others in aggregations of their own",
        );
    }
    if mode == OutputMode::Update {
        return refuse(
            "session-update",
            "sessions cannot be given out in output mode update: one that merges into another cannot be taken back",
            "use output mode append with a watermark, or output mode complete",
        );
    }
    if keys.len() == 1 {
        return refuse(
            "session-without-key",
            "a session of a stream needs another grouping key: without one all sessions would be one key's",
            "group by what the sessions belong to as well, for example a user",
        );
    }
    check_append(mode, event_time::is_marked(session), "an aggregation of sessions")
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

/// INTERSECT and EXCEPT have become joins at which NULL equals NULL.
fn check_set_operation(join: &Join) -> Verdict {
    if join.null_equality != NullEquality::NullEqualsNull {
        return Ok(());
    }
    match join.join_type {
        JoinType::LeftSemi => refuse(
            "intersect",
            "INTERSECT cannot be used on a stream: its rows would wait for their equals for ever",
            "use LEFT SEMI JOIN with a static table, or join the streams within a range of time",
        ),
        JoinType::LeftAnti if has_stream(&join.right) => refuse(
            "except",
            "EXCEPT cannot have a stream on the right: a row that takes one away may come with any later batch",
            "put a static table on the right",
        ),
        _ => Ok(()),
    }
}

fn check_join(join: &Join, mode: OutputMode) -> Verdict {
    if join.join_constraint == JoinConstraint::Using && matches!(join.join_type, JoinType::Right | JoinType::Full) {
        return refuse(
            "using-outer",
            format!(
                "a {} join with USING in a chain of joins has columns that may come from either side, and only the left one \
                 is read",
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
    // What these give out is final at once.
    let is_immediate = is_inner || kind == JoinType::LeftSemi;
    if mode == OutputMode::Complete || (mode == OutputMode::Update && !is_immediate) {
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

/// `window_time` makes a column of its own below the SELECT that calls it, so in one that aggregates it is no grouping
/// key, whatever its argument is, unless it is one itself.
fn check_window_time(projection: &Projection) -> Verdict {
    let (below, having) = match projection.input.as_ref() {
        LogicalPlan::Filter(filter) => (filter.input.as_ref(), Some(&filter.predicate)),
        other => (other, None),
    };
    if !matches!(below, LogicalPlan::Aggregate(_)) {
        return Ok(());
    }
    // HAVING stands above the SELECT list, so it may use a window that the list gives out.
    let is_given = |window: &Expr| projection.expr.iter().any(|given| given.clone().unalias() == *window);
    let mut ungrouped = None;
    let in_having = having.into_iter().map(|expr| (expr, true));
    for (expr, is_having) in projection.expr.iter().map(|expr| (expr, false)).chain(in_having) {
        let visited = expr.apply(|part| {
            if let Expr::ScalarFunction(call) = part
                && call.func.name() == "window_time"
                && !(is_having && call.args.iter().all(is_given))
            {
                ungrouped = Some(part.to_string());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        visited.map_err(|error| PlanError::from_datafusion(&error))?;
    }
    match ungrouped {
        None => Ok(()),
        Some(call) => refuse(
            "window-time-not-grouped",
            format!("`{call}` is neither a grouping key nor in an aggregate function"),
            "take window_time in a SELECT around the aggregating one, or group by it as well",
        ),
    }
}

/// Whether duplicates are dropped by event time, and forgotten by it (Spark's `isStatefulOperation`).
fn forgets_by_time(node: &LogicalPlan) -> bool {
    let LogicalPlan::Extension(extension) = node else { return false };
    let Some(dedup) = extension.node.as_any().downcast_ref::<DedupNode>() else { return false };
    let schema = extension.node.schema();
    let is_time =
        |key: &Column| schema.maybe_index_of_column(key).is_some_and(|at| event_time::is_marked(schema.field(at)));
    dedup.within_us.is_some() || dedup.keys.iter().any(is_time)
}

/// Whether an aggregation of a stream, or what drops duplicates by event time, stands above another aggregation.
fn has_chained_aggregations(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        let is_upper = is_aggregation(node) || forgets_by_time(node);
        found |= is_upper && node.inputs().into_iter().any(has_aggregation);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

fn is_aggregation(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_)) && has_stream(node)
}

/// Whether a stream is aggregated anywhere below.
pub(crate) fn has_aggregation(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        found |= is_aggregation(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}
