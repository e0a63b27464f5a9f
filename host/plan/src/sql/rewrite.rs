//! Rewrites in the syntax tree: generators and windows become relations.
//!
//! ```text
//! FROM lines l LATERAL VIEW explode(split(l.line, ' ')) t AS w
//!     →  FROM (SELECT * FROM lines l) AS __generator_0          with generator 0 = explode(…) t AS w
//! SELECT id, explode(tags) AS tag FROM events
//!     →  SELECT id, tag FROM (SELECT * FROM events) AS __generator_0
//! SELECT window.start, count(*) FROM events GROUP BY window(at, '1 minute')
//!     →  SELECT window.start, count(*) FROM (SELECT * FROM events) AS __generator_0 GROUP BY window
//! ```
//!
//! The derived tables are planned by [`super::generator`], which finds the call behind the number.

use super::names::last_part;
use crate::PlanError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, LateralView, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    SetOperator, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The generators that every query has.
const GENERATORS: [&str; 6] = ["explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"];

/// Whether calls of that name, in lower case, become relations in every query.
pub(crate) fn is_generator_name(name: &str) -> bool {
    GENERATORS.contains(&name) || name == "window"
}

/// A relation that gives 0..n rows per row of its input.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    /// The call: a generator, a plugin's table function, `window` or `session_window`.
    pub(crate) call: Function,
    /// Whether a row without result stays, with nulls.
    pub(crate) outer: bool,
    /// The name of the relation, if it was given one.
    pub(crate) table: Option<Ident>,
    /// The names of its columns, as far as given.
    pub(crate) columns: Vec<Ident>,
}

/// The name under which a derived table stands for generator `index`.
pub(crate) fn placeholder(index: usize) -> String {
    format!("__generator_{index}")
}

/// The generator behind the name of a derived table.
pub(crate) fn placeholder_index(name: &str) -> Option<usize> {
    name.strip_prefix("__generator_")?.parse().ok()
}

/// Rewrites the query; answers the generators in the order of their numbers.
///
/// `table_functions` are the names of the plugins' table functions, in lower case.
///
/// # Errors
/// Two different windows in one SELECT, a generator where none can stand, or what [`super::refused`] refuses.
pub(crate) fn rewrite(query: &mut Query, table_functions: &BTreeSet<String>) -> Result<Vec<Generator>, PlanError> {
    super::refused::check(query)?;
    let mut rewriter = Rewriter { table_functions, generators: Vec::new() };
    match VisitMut::visit(query, &mut rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(rewriter.generators),
    }
}

struct Rewriter<'a> {
    table_functions: &'a BTreeSet<String>,
    generators: Vec<Generator>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = PlanError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<PlanError> {
        name_repeated_columns(&mut query.body, false);
        // ORDER BY stands outside of the SELECT that it sorts.
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(order_by) = &mut query.order_by
            && selects_window(select)
        {
            replace_windows(order_by, &mut None)?;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<PlanError> {
        for view in std::mem::take(&mut select.lateral_views) {
            let LateralView { lateral_view, lateral_view_name, lateral_col_alias, outer } = view;
            let Expr::Function(call) = lateral_view else {
                return refuse("lateral-view", format!("LATERAL VIEW takes a generator call, not `{lateral_view}`"));
            };
            let table = last_part(&lateral_view_name).cloned();
            self.push_relation(select, Generator { call, outer, table, columns: lateral_col_alias });
        }
        self.take_select_generator(select)?;
        let mut window = None;
        replace_windows(&mut select.projection, &mut window)?;
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            replace_windows(expressions, &mut window)?;
        }
        if let Some(having) = &mut select.having {
            replace_windows(having, &mut window)?;
        }
        if let Some(call) = window {
            let columns = vec![Ident::new(function_name(&call))];
            self.push_relation(select, Generator { call, outer: false, table: None, columns });
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    /// Puts the relations of `select` into a derived table that stands for the generator.
    fn push_relation(&mut self, select: &mut Select, generator: Generator) {
        let alias = TableAlias {
            explicit: true,
            name: Ident::new(placeholder(self.generators.len())),
            columns: Vec::new(),
            at: None,
        };
        self.generators.push(generator);
        let inner = std::mem::take(&mut select.from);
        let mut everything = star_query();
        if let SetExpr::Select(all) = everything.body.as_mut() {
            all.from = inner;
        }
        let relation = TableFactor::Derived { lateral: false, subquery: everything, alias: Some(alias), sample: None };
        select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    }

    /// Moves a generator that stands in the SELECT list into a relation; Spark allows one.
    fn take_select_generator(&mut self, select: &mut Select) -> ControlFlow<PlanError> {
        let mut found: Option<(usize, Function, Vec<Ident>)> = None;
        for (position, item) in select.projection.iter().enumerate() {
            let (expr, aliases) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, Vec::new()),
                SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias.clone()]),
                SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases.clone()),
                _ => continue,
            };
            let Expr::Function(call) = expr else { continue };
            if !self.is_generator(call) {
                continue;
            }
            if found.is_some() {
                return refuse(
                    "two-generators",
                    "a SELECT list may have one generator; use LATERAL VIEW for more".into(),
                );
            }
            found = Some((position, call.clone(), aliases));
        }
        let Some((position, call, aliases)) = found else { return ControlFlow::Continue(()) };
        let outer = function_name(&call).ends_with("_outer");
        let columns = if aliases.is_empty() { default_columns(&function_name(&call)) } else { aliases };
        let items = columns.iter().map(|column| SelectItem::UnnamedExpr(Expr::Identifier(column.clone())));
        select.projection.splice(position..=position, items);
        self.push_relation(select, Generator { call, outer, table: None, columns });
        ControlFlow::Continue(())
    }

    fn is_generator(&self, call: &Function) -> bool {
        let name = function_name(call);
        GENERATORS.contains(&name.as_str()) || self.table_functions.contains(&name)
    }
}

/// Columns of one name in the later branches of a UNION get names of their own: the first branch names the result. MINUS
/// is another name of EXCEPT.
fn name_repeated_columns(body: &mut SetExpr, is_later: bool) {
    match body {
        SetExpr::SetOperation { op, left, right, .. } => {
            if *op == SetOperator::Minus {
                *op = SetOperator::Except;
            }
            name_repeated_columns(left, is_later);
            name_repeated_columns(right, true);
        }
        SetExpr::Select(select) if is_later => {
            let mut seen = BTreeSet::new();
            for (position, item) in select.projection.iter_mut().enumerate() {
                if let SelectItem::UnnamedExpr(expr) = item
                    && !seen.insert(expr.to_string())
                {
                    let alias = Ident::new(format!("__column_{position}"));
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
        }
        _ => {}
    }
}

/// The names that Spark gives to the columns of a generator in a SELECT list.
fn default_columns(name: &str) -> Vec<Ident> {
    match name {
        "posexplode" | "posexplode_outer" => vec![Ident::new("pos"), Ident::new("col")],
        _ => vec![Ident::new("col")],
    }
}

/// The last part of a function's name, in lower case.
pub(crate) fn function_name(call: &Function) -> String {
    call.name.0.last().map(|part| part.to_string().trim_matches('`').to_ascii_lowercase()).unwrap_or_default()
}

fn refuse(rule: &'static str, reason: String) -> ControlFlow<PlanError> {
    let hint = "rewrite that part of the query".to_owned();
    ControlFlow::Break(PlanError::Unsupported { rule, reason, hint })
}

fn selects_window(select: &Select) -> bool {
    match select.from.as_slice() {
        [TableWithJoins { relation: TableFactor::Derived { alias: Some(alias), .. }, .. }] => {
            placeholder_index(&alias.name.value).is_some()
        }
        _ => false,
    }
}

/// The functions that cut time into windows; the column that each makes has its name.
const WINDOWS: [&str; 2] = ["window", "session_window"];

/// Replaces each call of a window below `node` by the column of its name; all calls must be the same one.
fn replace_windows<T: VisitMut>(node: &mut T, window: &mut Option<Function>) -> ControlFlow<PlanError> {
    VisitMut::visit(node, &mut WindowReplacer { window })
}

struct WindowReplacer<'a> {
    window: &'a mut Option<Function>,
}

impl VisitorMut for WindowReplacer<'_> {
    type Break = PlanError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<PlanError> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = function_name(call);
        if !WINDOWS.contains(&name.as_str()) || call.over.is_some() {
            return ControlFlow::Continue(());
        }
        if let Some(first) = self.window.as_ref()
            && (function_name(first) != name || first.args != call.args)
        {
            return ControlFlow::Break(PlanError::Unsupported {
                rule: "two-windows",
                reason: format!("one SELECT cannot have the two different windows `{first}` and `{call}`"),
                hint: "compute each in a SELECT of its own".into(),
            });
        }
        *self.window = Some(call.clone());
        *expr = Expr::Identifier(Ident::new(name));
        ControlFlow::Continue(())
    }
}

/// `SELECT *`, without relations.
fn star_query() -> Box<Query> {
    super::parse::parse_query("SELECT * FROM t").expect("a constant query parses")
}

/// The name of a relation that is one identifier.
pub(crate) fn single_name(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(&ident.value),
        _ => None,
    }
}
