//! Removes the rows at which a plugin's scalar function failed, where its policy says so.
//!
//! ```text
//!   Project f(x) + 1                        Project g.value + 1
//!     input                        →          Filter g.ok
//!                                               Project (all columns, f(x) AS g)      g = (value, ok)
//!                                                 input
//! ```
//!
//! The call moves out of its expression: inside a CASE it is then made for all rows. Under the policy fail calls
//! stay where they are.

use super::{PluginFunction, Shape};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;
use millstream_wasm::FaultPolicy;
use std::sync::Arc;

/// The analyzer rule; runs after types are settled.
#[derive(Debug, Default)]
pub(crate) struct IsolatePluginFaults;

impl AnalyzerRule for IsolatePluginFaults {
    fn name(&self) -> &str {
        "isolate_plugin_faults"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut next = 0;
        plan.transform_up(|node| isolate_node(node, &mut next)).map(|transformed| transformed.data)
    }
}

fn isolate_node(node: LogicalPlan, next: &mut usize) -> Result<Transformed<LogicalPlan>> {
    if node.inputs().len() != 1 || !node.expressions().iter().any(has_removable_call) {
        return Ok(Transformed::no(node));
    }
    let mut calls = Vec::new();
    let schema = Arc::clone(node.schema());
    let rewritten = node.map_expressions(|expr| replace_calls(expr, next, &mut calls))?.data;
    let input = rewritten.inputs()[0].clone();
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut builder = LogicalPlanBuilder::from(input);
    columns.extend(calls.iter().map(|(name, call)| call.clone().alias(name.as_str())));
    builder = builder.project(columns)?;
    for (name, _) in &calls {
        builder = builder.filter(get_field(Expr::Column(Column::new_unqualified(name)), "ok"))?;
    }
    let guarded = builder.build()?;
    let plan = rewritten.with_new_exprs(rewritten.expressions(), vec![guarded])?;
    // A node that passes its input's columns through would show the helper columns: cut them off again.
    if plan.schema().fields().len() == schema.fields().len() {
        return Ok(Transformed::yes(plan));
    }
    let kept = schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(kept)?.build()?))
}

fn removable(expr: &Expr) -> Option<(&PluginFunction, &ScalarFunction)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let function = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<PluginFunction>()?;
    (function.shape == Shape::Value && function.slot().policy() != FaultPolicy::Fail).then_some((function, call))
}

fn has_removable_call(expr: &Expr) -> bool {
    let mut found = false;
    let visited = expr.apply(|part| {
        found |= removable(part).is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

fn replace_calls(expr: Expr, next: &mut usize, calls: &mut Vec<(String, Expr)>) -> Result<Transformed<Expr>> {
    // Bottom up: the arguments of an outer call may hold inner ones, whose columns are made below it.
    let name = expr.schema_name().to_string();
    let replaced = expr.transform_up(|part| {
        let Some((function, call)) = removable(&part) else { return Ok(Transformed::no(part)) };
        let guarded = PluginFunction::udf(function.slot(), &function.function, Shape::Guarded);
        let column = format!("__plugin_{next}");
        *next += 1;
        calls.push((column.clone(), guarded.call(call.args.clone())));
        Ok(Transformed::yes(get_field(Expr::Column(Column::new_unqualified(column)), "value")))
    })?;
    if replaced.transformed && !matches!(replaced.data, Expr::Alias(_)) {
        return Ok(Transformed::yes(replaced.data.alias(name)));
    }
    Ok(replaced)
}
