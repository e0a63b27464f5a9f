//! Which functions a query calls, by name.
//!
//! Read from the analysed plan, before the optimiser folds or drops calls: a plugin may take another's place when the
//! functions that stand here fit, whatever else it has.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::BTreeSet;

/// The names of all scalar, table, aggregate and window functions in the plan and its subqueries.
pub(crate) fn called_functions(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
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
