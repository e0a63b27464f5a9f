//! What processors may not do on a stream.

use super::{Verdict, has_aggregation, refuse};
use crate::PlanError;
use crate::dedup::DedupNode;
use crate::lower::has_stream;
use crate::processor::{Form, ProcessorNode};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use millstream_common::OutputMode;
use millstream_wasm::processor::TimeMode;

/// Checks every processor of the plan, and what stands above and below it.
pub(super) fn check(plan: &LogicalPlan, mode: OutputMode) -> Verdict {
    let mut first = Ok(());
    let visited = plan.apply(|node| {
        first = match ProcessorNode::of_stream(node) {
            Some(processor) => check_one(processor, mode),
            None => check_above(node, mode),
        };
        Ok(if first.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    visited.map_err(|error| PlanError::from_datafusion(&error))?;
    first?;
    match bare(plan).filter(|_| mode == OutputMode::Complete) {
        None => Ok(()),
        Some(processor) => refuse(
            "processor-complete",
            format!(
                "rows of `{}` cannot go out in output mode complete: those that it gave before are not kept",
                processor.processor_name()
            ),
            "aggregate its rows, or use output mode append or update",
        ),
    }
}

/// A processor whose rows are not aggregated.
fn bare(plan: &LogicalPlan) -> Option<&ProcessorNode> {
    match ProcessorNode::of_stream(plan) {
        Some(processor) => Some(processor),
        None if super::is_aggregation(plan) => None,
        None => plan.inputs().into_iter().find_map(bare),
    }
}

fn check_one(node: &ProcessorNode, mode: OutputMode) -> Verdict {
    let name = node.processor_name();
    // What is aggregated completely is every row that it ever gave, once.
    let own = if mode == OutputMode::Complete { OutputMode::Append } else { mode };
    if let Some(said) = node.mode.filter(|said| *said != own) {
        return refuse(
            "processor-mode",
            format!("`{name}` was called with output mode {said}, and the query has output mode {mode}"),
            match mode {
                OutputMode::Complete => "call it with output mode append: its rows are aggregated, each once",
                _ => "give both the same output mode",
            },
        );
    }
    let modes = &node.processor.signature.output_modes;
    if !modes.contains(&own) {
        let known = modes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return refuse(
            "processor-mode",
            format!("`{name}` cannot be used in output mode {own}: its code says that it may have {known}"),
            "use one of its output modes",
        );
    }
    if node.time_mode() == TimeMode::EventTime && !node.has_event_time {
        return refuse(
            "processor-without-watermark",
            format!("the timers of `{name}` go by event time, and its rows have no watermark"),
            "give the stream a watermark, and do not leave its column out below the processor",
        );
    }
    if node.wants_event_time && node.output_time.is_none() {
        return refuse(
            "processor-without-watermark",
            format!("a column of `{name}` is to carry event time, and its rows have no watermark"),
            "give the stream a watermark, and do not leave its column out below the processor",
        );
    }
    if node.initial().is_some_and(has_stream) {
        return refuse(
            "streaming-initial-state",
            format!("the initial rows of `{name}` are those of a stream, which has no end"),
            "take them from a static table",
        );
    }
    if mode != OutputMode::Append && (has_aggregation(node.input()) || has_stateful(node.input())) {
        return refuse_chain(name, mode);
    }
    Ok(())
}

/// What stands above a processor: anything stateful in output mode append, an aggregation in output mode complete.
fn check_above(node: &LogicalPlan, mode: OutputMode) -> Verdict {
    let is_join =
        matches!(node, LogicalPlan::Join(_)) && node.inputs().into_iter().filter(|input| has_stream(input)).count() > 1;
    let is_stateful = super::is_aggregation(node) || is_join || is_dedup(node);
    if !is_stateful {
        return Ok(());
    }
    for input in node.inputs() {
        let Some(below) = processor_of(input) else { continue };
        let is_complete = mode == OutputMode::Complete && super::is_aggregation(node);
        if mode != OutputMode::Append && !is_complete {
            return refuse_chain(below.processor_name(), mode);
        }
        let is_flat_map = below.form == Form::FlatMapGroupsWithState;
        if is_join && is_flat_map {
            return refuse(
                "flat-map-join",
                format!(
                    "`{}` cannot be joined with a stream behind flat_map_groups_with_state",
                    below.processor_name()
                ),
                "call it with transform_with_state",
            );
        }
        if is_flat_map && below.time_mode() == TimeMode::EventTime {
            return refuse(
                "flat-map-chained",
                format!(
                    "no stateful operation may follow `{}` behind flat_map_groups_with_state: its timeouts go by event time",
                    below.processor_name()
                ),
                "call it with transform_with_state, and name the column that carries event time",
            );
        }
    }
    Ok(())
}

fn refuse_chain(name: &str, mode: OutputMode) -> Verdict {
    refuse(
        "chained-processor",
        format!("output mode {mode} cannot have `{name}` above or below another stateful operation"),
        "use output mode append, which hands on final rows only",
    )
}

fn is_dedup(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Extension(extension) if extension.node.as_any().is::<DedupNode>())
}

/// Whether duplicates are dropped, streams joined, or another processor stands anywhere below.
fn has_stateful(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        let is_join = matches!(node, LogicalPlan::Join(_))
            && node.inputs().into_iter().filter(|input| has_stream(input)).count() > 1;
        found |= is_dedup(node) || is_join || ProcessorNode::of_stream(node).is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

/// A processor anywhere below.
fn processor_of(plan: &LogicalPlan) -> Option<&ProcessorNode> {
    ProcessorNode::of_stream(plan).or_else(|| plan.inputs().into_iter().find_map(processor_of))
}
