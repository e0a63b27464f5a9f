//! Operations that are one SELECT over their input.

use super::step::find_column;
use super::{Column, window_column};
use crate::PlanError;
use crate::front::Front;
use crate::sql::names::Names;
use crate::sql::parse::parse_query;
use crate::sql::relations::input_name;
use crate::sql::rewrite::{function_name, is_generator_name};
use datafusion::common::DFSchema;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr};

type Planned = Result<LogicalPlan, PlanError>;

/// `SELECT * FROM __input_0`, changed.
pub(super) fn everything(change: impl FnOnce(&mut Select)) -> Box<Query> {
    written(&format!("SELECT * FROM {}", input_name(0)), change)
}

/// A SELECT whose text is ours, changed.
pub(super) fn written(sql: &str, change: impl FnOnce(&mut Select)) -> Box<Query> {
    let mut query = parse_query(sql).expect("a statement of a fixed form parses");
    if let SetExpr::Select(select) = query.body.as_mut() {
        change(select);
    }
    query
}

/// The names that a statement over `inputs` may use: their columns, and what the inputs are called.
pub(super) fn names_of(inputs: &[&LogicalPlan]) -> Names {
    let mut names = Names::default();
    for input in inputs {
        names.add_fields(input.schema().fields());
    }
    for (qualifier, _) in inputs.iter().flat_map(|input| input.schema().iter()) {
        if let Some(qualifier) = qualifier {
            names.add(qualifier.table());
        }
    }
    names.add("window");
    names.add("session_window");
    names
}

/// All columns of a schema, one by one.
fn columns_of(schema: &DFSchema) -> impl Iterator<Item = (&str, Expr)> {
    schema.iter().map(|(qualifier, field)| {
        let name = Ident::new(field.name());
        let expr = match qualifier {
            Some(qualifier) => Expr::CompoundIdentifier(vec![Ident::new(qualifier.table()), name]),
            None => Expr::Identifier(name),
        };
        (field.name().as_str(), expr)
    })
}

fn project(items: Vec<SelectItem>, input: LogicalPlan, front: &mut Front) -> Planned {
    if items.is_empty() {
        return Err(PlanError::Sql { message: "no column is left".into() });
    }
    let mut query = everything(|select| select.projection = items);
    let input = window_column::step_aside(&mut query, input)?;
    let names = names_of(&[&input]);
    front.statement(query, names, vec![input])
}

/// The columns that are asked for. `*` are the columns of the input, and not those that a generator adds.
pub(super) fn select(columns: &[Column], input: LogicalPlan, front: &mut Front) -> Planned {
    let mut items = Vec::new();
    for column in columns {
        match column.clone().into_item()? {
            SelectItem::Wildcard(options) if options == Default::default() => {
                items.extend(columns_of(input.schema()).map(|(_, expr)| SelectItem::UnnamedExpr(expr)));
            }
            item => items.push(item),
        }
    }
    project(items, input, front)
}

/// The name of a column until it gets its own.
const NEW: &str = "__column";

/// All columns, with one more, or with another one in the place of its name.
pub(super) fn with_column(name: &str, column: &Column, input: LogicalPlan, front: &mut Front) -> Planned {
    let expr = column.clone().into_expr()?;
    let mut input = input;
    let mut value = expr;
    if makes_relation(&value, front) {
        // The rows of a generator are made first: their column must not meet one of its name.
        let alias = Ident::new(NEW);
        let mut items: Vec<_> = columns_of(input.schema()).map(|(_, expr)| SelectItem::UnnamedExpr(expr)).collect();
        items.push(SelectItem::ExprWithAlias { expr: value, alias: alias.clone() });
        input = project(items, input, front)?;
        value = Expr::Identifier(alias);
    }
    let mut items = Vec::new();
    let mut is_there = false;
    for (known, expr) in columns_of(input.schema()).filter(|(known, _)| *known != NEW) {
        if known.eq_ignore_ascii_case(name) {
            is_there = true;
            items.push(SelectItem::ExprWithAlias { expr: value.clone(), alias: Ident::new(name) });
        } else {
            items.push(SelectItem::UnnamedExpr(expr));
        }
    }
    if !is_there {
        items.push(SelectItem::ExprWithAlias { expr: value, alias: Ident::new(name) });
    }
    project(items, input, front)
}

fn makes_relation(expr: &Expr, front: &Front) -> bool {
    let Expr::Function(call) = expr else { return false };
    let name = function_name(call);
    is_generator_name(&name) || front.table_functions().contains(&name)
}

/// All columns, one under another name; as it is when there is none of that name.
pub(super) fn rename(from: &str, to: &str, input: LogicalPlan, front: &mut Front) -> Planned {
    let Ok(column) = find_column(input.schema(), from) else { return Ok(input) };
    let items = columns_of(input.schema()).map(|(known, expr)| match known == column.name {
        true => SelectItem::ExprWithAlias { expr, alias: Ident::new(to) },
        false => SelectItem::UnnamedExpr(expr),
    });
    let items = items.collect();
    project(items, input, front)
}

/// All columns but those of these names; names that are not there are fine.
pub(super) fn without(names: &[String], input: LogicalPlan, front: &mut Front) -> Planned {
    let is_dropped = |known: &str| names.iter().any(|name| name.eq_ignore_ascii_case(known));
    let kept = columns_of(input.schema()).filter(|(known, _)| !is_dropped(known));
    let items = kept.map(|(_, expr)| SelectItem::UnnamedExpr(expr)).collect();
    project(items, input, front)
}

/// The rows for which the condition holds.
pub(super) fn filter(condition: &Column, input: LogicalPlan, front: &mut Front) -> Planned {
    let condition = condition.clone().into_expr()?;
    let query = everything(|select| select.selection = Some(condition));
    let names = names_of(&[&input]);
    front.statement(query, names, vec![input])
}

/// The rows of both, the columns of the second by place or by name.
pub(super) fn union(left: LogicalPlan, right: LogicalPlan, by_name: bool, front: &mut Front) -> Planned {
    let (have, found) = (left.schema().fields().len(), right.schema().fields().len());
    if have != found {
        let message = format!("both sides of a union have the same columns, and these have {have} and {found}");
        return Err(PlanError::Sql { message });
    }
    let mut right = right;
    if by_name {
        let mut items = Vec::new();
        for field in left.schema().fields() {
            let column = find_column(right.schema(), field.name())?;
            let expr = columns_of(right.schema()).find(|(known, _)| *known == column.name).map(|(_, expr)| expr);
            items.extend(expr.map(SelectItem::UnnamedExpr));
        }
        right = project(items, right, front)?;
    }
    let text = format!("SELECT * FROM {} UNION ALL SELECT * FROM {}", input_name(0), input_name(1));
    let query = written(&text, |_| {});
    front.statement(query, Names::default(), vec![left, right])
}
