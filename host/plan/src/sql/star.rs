//! Stars that only the columns below them can spell out: `x.*` of a struct, and `struct(*)`.
//!
//! ```text
//!   SELECT x.*, id FROM (…)
//!     →  SELECT __star_0.*, id FROM (SELECT * FROM (…)) AS __generator_0          with relation 0 = the fields of x
//!   SELECT to_json(struct(*)) AS value FROM events
//!     →  SELECT to_json(__star_0) AS value FROM (SELECT * FROM events) AS __generator_0
//! ```
//!
//! [`take`] finds them in the syntax tree, [`plan_fields`] and [`plan_spread`] make the columns when the relation is planned.
//! `x` is a relation where one has that name, and a column otherwise. Source: Spark's `UnresolvedStar.expand`.

use super::names::{last_part, relation_name};
use super::rewrite::{Derived, WINDOWS, function_name};
use crate::PlanError;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr as Planned, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What the names of columns and relations begin with that stand for a star.
const PREFIX: &str = "__star_";

/// The name of a subquery of FROM that has none, when `*` must be told from columns that are made above it.
const ONLY: &str = "__unnamed_only";

/// The relations whose columns a SELECT has, by the names that qualify them; `None` for one that has no name.
pub(super) fn relations(select: &Select) -> Vec<Option<Ident>> {
    let tables = select
        .from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let names = tables.map(|factor| relation_name(factor).as_ref().and_then(last_part).cloned());
    names.chain(select.lateral_views.iter().map(|view| last_part(&view.lateral_view_name).cloned())).collect()
}

/// Gives a subquery that is all of FROM a name, if it has none.
pub(super) fn name_only(select: &mut Select) {
    if let [table] = select.from.as_mut_slice()
        && table.joins.is_empty()
        && let TableFactor::Derived { alias: alias @ None, .. } = &mut table.relation
    {
        *alias = Some(TableAlias { explicit: true, name: Ident::new(ONLY), columns: Vec::new(), at: None });
    }
}

/// Spells `*` out as the columns of each relation: columns that are made above them do not belong to it.
///
/// # Errors
/// [`PlanError::Sql`] when a relation has no name.
pub(super) fn spell_out(select: &mut Select, relations: &[Option<Ident>]) -> Result<(), PlanError> {
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        let SelectItem::Wildcard(options) = item else {
            items.push(item);
            continue;
        };
        for relation in relations {
            let Some(name) = relation else {
                let message = "`*` beside other stars or generators needs a name for each relation: FROM … AS t";
                return Err(PlanError::Sql { message: message.into() });
            };
            items.push(all_of(ObjectName::from(vec![name.clone()]), options.clone()));
        }
    }
    select.projection = items;
    Ok(())
}

/// Takes the stars out of a SELECT list. The answers become relations above its FROM, in this order; the first has number
/// `first`. `is_relation` knows the names that are no columns.
pub(super) fn take(select: &mut Select, is_relation: impl Fn(&Ident) -> bool, first: usize) -> Vec<Derived> {
    let mut calls = Calls { first, made: Vec::new() };
    let mut items = Vec::new();
    for mut item in std::mem::take(&mut select.projection) {
        match &mut item {
            SelectItem::QualifiedWildcard(kind, options) => match struct_behind(kind, &is_relation) {
                Some(window) if is_own_window(&window) => {
                    items.extend(["start", "end"].map(|field| field_of(&window, field)));
                    continue;
                }
                Some(of) => {
                    let table = calls.next_name();
                    item = all_of(ObjectName::from(vec![table.clone()]), std::mem::take(options));
                    calls.made.push(Derived::Fields { of, table });
                }
                None => {}
            },
            SelectItem::UnnamedExpr(expr)
            | SelectItem::ExprWithAlias { expr, .. }
            | SelectItem::ExprWithAliases { expr, .. } => {
                let ControlFlow::Continue(()) = VisitMut::visit(expr, &mut calls);
            }
            SelectItem::Wildcard(_) => {}
        }
        items.push(item);
    }
    select.projection = items;
    calls.made
}

/// Whether a SELECT list has a star that [`take`] takes.
pub(super) fn has_any(select: &Select, is_relation: impl Fn(&Ident) -> bool) -> bool {
    !take(&mut select.clone(), is_relation, 0).is_empty()
}

fn all_of(name: ObjectName, options: WildcardAdditionalOptions) -> SelectItem {
    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
}

/// The struct whose fields `….*` stands for; `None` when it stands for the columns of a relation.
fn struct_behind(kind: &SelectItemQualifiedWildcardKind, is_relation: &impl Fn(&Ident) -> bool) -> Option<Expr> {
    match kind {
        SelectItemQualifiedWildcardKind::ObjectName(name) => {
            let parts: Vec<Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).cloned().collect();
            match parts.as_slice() {
                [name] if is_relation(name) => None,
                [name] => Some(Expr::Identifier(name.clone())),
                _ => Some(Expr::CompoundIdentifier(parts)),
            }
        }
        SelectItemQualifiedWildcardKind::Expr(expr) => Some(expr.clone()),
    }
}

/// Whether a column is that of a window, whose fields are known and may be what the rows are grouped by.
fn is_own_window(column: &Expr) -> bool {
    matches!(column, Expr::Identifier(name) if WINDOWS.contains(&name.value.as_str()))
}

fn field_of(window: &Expr, field: &str) -> SelectItem {
    let parts = match window {
        Expr::Identifier(name) => vec![name.clone(), Ident::new(field)],
        _ => vec![Ident::new(field)],
    };
    SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(parts), alias: Ident::with_quote('`', field) }
}

/// Takes calls with a star among their arguments; `count(*)` has another meaning.
struct Calls {
    first: usize,
    made: Vec<Derived>,
}

impl Calls {
    fn next_name(&self) -> Ident {
        Ident::new(format!("{PREFIX}{}", self.first + self.made.len()))
    }
}

impl VisitorMut for Calls {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(call) = expr
            && function_name(call) != "count"
            && call.over.is_none()
            && let FunctionArguments::List(list) = &call.args
            && list.args.iter().any(|argument| star_of(argument).is_some())
        {
            let column = self.next_name();
            self.made.push(Derived::Spread { call: call.clone(), column: column.clone() });
            *expr = Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    }
}

/// What stands before a star: nothing, a relation or a struct.
fn star_of(argument: &FunctionArg) -> Option<Option<&ObjectName>> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Some(None),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => Some(Some(name)),
        _ => None,
    }
}

/// The columns of `input`, and the fields of a struct as those of the relation `table`.
///
/// # Errors
/// When `of` is unknown, or no struct.
pub(super) fn plan_fields(
    of: &Expr,
    table: &Ident,
    input: LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
    let given = columns.len();
    // A relation whose name the text does not show, such as one inside of a nested join.
    if let Expr::Identifier(name) = of {
        let of_relation = input.schema().iter().zip(columns.clone());
        let of_relation =
            of_relation.filter(|((qualifier, _), _)| qualifier.is_some_and(|known| known.table() == name.value));
        let named =
            of_relation.map(|((_, field), column)| column.alias_qualified(Some(table.value.clone()), field.name()));
        columns.extend(named.collect::<Vec<_>>());
    }
    if columns.len() == given {
        let value = context.sql_to_expr(of.clone(), input.schema())?;
        let DataType::Struct(fields) = value.get_type(input.schema())? else {
            return plan_err!("`{of}.*` names neither a relation nor a struct: {of} is a column of another type");
        };
        for field in &fields {
            let value = get_field(value.clone(), field.name().as_str());
            columns.push(value.alias_qualified(Some(table.value.clone()), field.name()));
        }
    }
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// The columns of `input`, and a call over those that its stars stand for as `column`.
///
/// # Errors
/// When a star has nothing to stand for, or the call does not fit.
pub(super) fn plan_spread(
    call: &Function,
    column: &Ident,
    input: LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut call = call.clone();
    if let FunctionArguments::List(list) = &mut call.args {
        let mut arguments = Vec::new();
        for argument in std::mem::take(&mut list.args) {
            match star_of(&argument) {
                None => arguments.push(argument),
                Some(of) => {
                    let columns = spread(of, input.schema(), context)?;
                    arguments.extend(columns.map(|column| FunctionArg::Unnamed(FunctionArgExpr::Expr(column))));
                }
            }
        }
        list.args = arguments;
    }
    let mut expr = Expr::Function(call);
    crate::functions::nested::rewrite_nested_syntax(&mut expr);
    let value = context.sql_to_expr(expr, input.schema())?;
    let mut columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
    columns.push(value.alias(column.value.as_str()));
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// The columns that a star among the arguments of a call stands for.
fn spread(
    of: Option<&ObjectName>,
    schema: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> Result<impl Iterator<Item = Expr>> {
    let parts: Vec<Ident> = of.iter().flat_map(|name| &name.0).filter_map(ObjectNamePart::as_ident).cloned().collect();
    let path =
        |parts: &[&str]| Expr::CompoundIdentifier(parts.iter().map(|part| Ident::with_quote('`', *part)).collect());
    let mut columns = Vec::new();
    for (qualifier, field) in schema.iter() {
        let table = qualifier.map(|qualifier| qualifier.table());
        if field.name().starts_with(PREFIX) || table.is_some_and(|table| table.starts_with(PREFIX)) {
            continue;
        }
        let is_meant = match parts.as_slice() {
            [] => true,
            [name] => table.is_some_and(|table| table == name.value),
            _ => false,
        };
        if is_meant {
            columns.push(match table {
                Some(table) => path(&[table, field.name()]),
                None => Expr::Identifier(Ident::with_quote('`', field.name())),
            });
        }
    }
    if columns.is_empty() && !parts.is_empty() {
        let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let of =
            if let [name] = names.as_slice() { Expr::Identifier(Ident::with_quote('`', *name)) } else { path(&names) };
        let DataType::Struct(fields) = context.sql_to_expr(of, schema)?.get_type(schema)? else {
            return plan_err!("`{}.*` names neither a relation nor a struct", names.join("."));
        };
        columns.extend(fields.iter().map(|field| path(&[names.as_slice(), &[field.name().as_str()]].concat())));
    }
    Ok(columns.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;
    use datafusion::sql::sqlparser::ast::SetExpr;

    fn taken(sql: &str) -> (String, usize) {
        let mut query = parse_query(sql).unwrap();
        let SetExpr::Select(select) = query.body.as_mut() else { panic!("no SELECT") };
        let known = relations(select);
        let made = take(select, |name| known.iter().flatten().any(|known| known.value == name.value), 3);
        (query.to_string(), made.len())
    }

    #[test]
    fn stars_of_structs_and_in_calls_become_names_and_others_stay() {
        for (sql, left, made) in [
            ("SELECT x.*, id FROM events", "SELECT __star_3.*, id FROM events", 1),
            ("SELECT x.* EXCEPT (a), n.b.* FROM events", "SELECT __star_3.* EXCEPT (a), __star_4.* FROM events", 2),
            (
                "SELECT to_json(struct(*)) AS v, f(e.*) FROM events e",
                "SELECT to_json(__star_3) AS v, __star_4 FROM events e",
                2,
            ),
            ("SELECT e.*, count(*) FROM events e", "SELECT e.*, count(*) FROM events e", 0),
            (
                "SELECT t.* FROM events LATERAL VIEW explode(a) t AS x",
                "SELECT t.* FROM events LATERAL VIEW explode(a) t AS x",
                0,
            ),
            ("SELECT window.* FROM events", "SELECT window.start AS `start`, window.end AS `end` FROM events", 0),
        ] {
            assert_eq!(taken(sql), (left.to_owned(), made), "{sql}");
        }
    }

    #[test]
    fn a_plain_star_is_that_of_the_relations_alone() {
        let mut query = parse_query("SELECT *, explode(a) AS x FROM (SELECT 1)").unwrap();
        let SetExpr::Select(select) = query.body.as_mut() else { panic!("no SELECT") };
        assert!(spell_out(&mut select.clone(), &relations(select)).is_err());
        name_only(select);
        spell_out(select, &relations(select)).unwrap();
        assert_eq!(query.to_string(), "SELECT __unnamed_only.*, explode(a) AS x FROM (SELECT 1) AS __unnamed_only");
    }
}
