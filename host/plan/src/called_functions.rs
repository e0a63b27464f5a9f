//! Which functions a query calls, by name.
//!
//! Read from the analysed plan, before the optimiser folds or drops calls: a plugin may take another's place when the
//! functions that stand here fit, whatever else it has.

use crate::processor::ProcessorNode;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::BTreeSet;

/// The names of all scalar, table, aggregate and window functions, and of all processors in the plan and its subqueries.
pub(crate) fn called_functions(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Extension(extension) = node
            && let Some(processor) = extension.node.as_any().downcast_ref::<ProcessorNode>()
        {
            names.insert(processor.processor.signature.name.clone());
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                let name = match expression {
                    Expr::ScalarFunction(call) => Some(call.func.name()),
                    Expr::AggregateFunction(call) => Some(call.func.name()),
                    Expr::WindowFunction(call) => match &call.fun {
                        WindowFunctionDefinition::AggregateUDF(function) => Some(function.name()),
                        WindowFunctionDefinition::WindowUDF(function) => Some(function.name()),
                    },
                    _ => None,
                };
                names.extend(name.map(str::to_owned));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(names)
}
