//! Windows over rows that have one already: `counts.group_by([window("window", "1 hour")])`.
//!
//! The column of a new window is called `window`, as that of the old one. So the old one gets another name below the statement, and
//! everywhere in it.

use crate::PlanError;
use crate::sql::rewrite::function_name;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Visit, VisitMut, Visitor, VisitorMut};
use std::ops::ControlFlow;

const WINDOW: &str = "window";
const OLD: &str = "__old_window";

/// Renames the window of `input` where `query` makes a new one.
pub(super) fn step_aside(query: &mut Query, input: LogicalPlan) -> Result<LogicalPlan, PlanError> {
    let is_window = |column: &Column| column.name.eq_ignore_ascii_case(WINDOW);
    let columns = input.schema().columns();
    if columns.iter().filter(|column| is_window(column)).count() != 1 || Visit::visit(query, &mut Calls).is_continue() {
        return Ok(input);
    }
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection.iter_mut().for_each(keep_name);
    }
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Renamer);
    let renamed = columns.into_iter().map(|column| match is_window(&column) {
        true => Planned::Column(column.clone()).alias_qualified(column.relation, OLD),
        false => Planned::Column(column),
    });
    let renamed = renamed.collect::<Vec<_>>();
    LogicalPlanBuilder::from(input)
        .project(renamed)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| PlanError::from_datafusion(&error))
}

/// The old window comes out under its name.
fn keep_name(item: &mut SelectItem) {
    let name = match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.clone(),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if parts.len() == 2 => parts[1].clone(),
        _ => return,
    };
    if let SelectItem::UnnamedExpr(expr) = item
        && name.value.eq_ignore_ascii_case(WINDOW)
    {
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: name };
    }
}

/// Breaks at a call of `window`.
struct Calls;

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if function_name(call) == WINDOW => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Spells every `window` that is a column as the old one.
struct Renamer;

impl VisitorMut for Renamer {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let is_window = |ident: &Ident| ident.value.eq_ignore_ascii_case(WINDOW);
        match expr {
            Expr::Identifier(ident) if is_window(ident) => ident.value = OLD.into(),
            // `window.start`, `counts.window`, `counts.window.start`
            Expr::CompoundIdentifier(parts) => {
                if let Some(part) = parts.iter_mut().take(2).find(|part| is_window(part)) {
                    part.value = OLD.into();
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
