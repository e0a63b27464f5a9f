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
//! Stars that need the columns below them become relations, too: see [`star`]. The derived tables are planned by
//! [`super::generator`], which finds what stands behind the number.

use super::names::last_part;
use super::star;
use crate::PlanError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, LateralView, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, TableAlias, TableFactor, TableWithJoins, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The generators that every query has.
const GENERATORS: [&str; 8] =
    ["explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "json_tuple", "stack"];

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

/// What a derived table of a made name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Derived {
    /// The rows of a generator, beside each row of the input.
    Generator(Generator),
    /// The fields of a struct as columns of the relation `table`, beside the columns of the input.
    Fields {
        /// The struct.
        of: Expr,
        /// The name of the relation.
        table: Ident,
    },
    /// A call that has stars among its arguments, as one column more.
    Spread {
        /// The call.
        call: Function,
        /// The name of the column.
        column: Ident,
    },
}

/// The name under which derived table `index` stands in FROM.
pub(crate) fn placeholder(index: usize) -> String {
    format!("__generator_{index}")
}

/// The number behind the name of a derived table.
pub(crate) fn placeholder_index(name: &str) -> Option<usize> {
    name.strip_prefix("__generator_")?.parse().ok()
}

/// Rewrites the query; answers what the derived tables stand for, in the order of their numbers.
///
/// `table_functions` are the names of the plugins' table functions, in lower case; `qualifiers` those of the columns of inputs
/// whose names the query does not show.
///
/// # Errors
/// Two different windows in one SELECT, a generator where none can stand, or what [`super::refused`] refuses.
pub(crate) fn rewrite(
    query: &mut Query,
    table_functions: &BTreeSet<String>,
    qualifiers: &BTreeSet<String>,
) -> Result<Vec<Derived>, PlanError> {
    super::refused::check(query)?;
    let mut rewriter = Rewriter { table_functions, qualifiers, derived: Vec::new() };
    match VisitMut::visit(query, &mut rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(rewriter.derived),
    }
}

struct Rewriter<'a> {
    table_functions: &'a BTreeSet<String>,
    qualifiers: &'a BTreeSet<String>,
    derived: Vec<Derived>,
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
        let relations = self.tell_stars_apart(select)?;
        for view in std::mem::take(&mut select.lateral_views) {
            let LateralView { lateral_view, lateral_view_name, lateral_col_alias, outer } = view;
            let Expr::Function(call) = lateral_view else {
                return refuse("lateral-view", format!("LATERAL VIEW takes a generator call, not `{lateral_view}`"));
            };
            let table = last_part(&lateral_view_name).cloned();
            self.push_relation(
                select,
                Derived::Generator(Generator { call, outer, table, columns: lateral_col_alias }),
            );
        }
        let stars = star::take(select, |name| self.is_relation(name, &relations), self.derived.len());
        stars.into_iter().for_each(|derived| self.push_relation(select, derived));
        self.take_select_generator(select)?;
        let mut window = None;
        replace_windows(&mut select.projection, &mut window)?;
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            replace_windows(expressions, &mut window)?;
        }
        for condition in select.selection.iter_mut().chain(&mut select.having) {
            replace_windows(condition, &mut window)?;
        }
        if let Some(call) = window {
            let columns = vec![Ident::new(function_name(&call))];
            self.push_relation(select, Derived::Generator(Generator { call, outer: false, table: None, columns }));
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    fn is_relation(&self, name: &Ident, relations: &[Option<Ident>]) -> bool {
        self.qualifiers.contains(&name.value) || relations.iter().flatten().any(|known| known.value == name.value)
    }

    /// The relations of FROM. A plain `*` becomes theirs where columns are made above them.
    fn tell_stars_apart(&self, select: &mut Select) -> ControlFlow<PlanError, Vec<Option<Ident>>> {
        let relations = star::relations(select);
        let has_plain = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        let makes_columns = || {
            star::has_any(select, |name| self.is_relation(name, &relations))
                || select.projection.iter().any(|item| self.generator_of(item).is_some())
        };
        if !has_plain || !makes_columns() {
            return ControlFlow::Continue(relations);
        }
        star::name_only(select);
        let relations = star::relations(select);
        match star::spell_out(select, &relations) {
            Ok(()) => ControlFlow::Continue(relations),
            Err(error) => ControlFlow::Break(error),
        }
    }

    /// Puts the relations of `select` into a derived table that stands for what is made above them.
    fn push_relation(&mut self, select: &mut Select, derived: Derived) {
        let alias = TableAlias {
            explicit: true,
            name: Ident::new(placeholder(self.derived.len())),
            columns: Vec::new(),
            at: None,
        };
        self.derived.push(derived);
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
        let mut found =
            select.projection.iter().enumerate().filter_map(|(at, item)| Some((at, self.generator_of(item)?)));
        let Some((position, (call, columns))) = found.next() else { return ControlFlow::Continue(()) };
        if found.next().is_some() {
            return refuse("two-generators", "a SELECT list may have one generator; use LATERAL VIEW for more".into());
        }
        drop(found);
        let outer = function_name(&call).ends_with("_outer");
        let (table, items) = if columns.is_empty() {
            // How many columns there are, and what they are called, follows from the type of the argument.
            let table = Ident::new(format!("__generated_{}", self.derived.len()));
            let name = ObjectName::from(vec![table.clone()]);
            let all = SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                WildcardAdditionalOptions::default(),
            );
            (Some(table), vec![all])
        } else {
            let named = columns.iter().map(|column| SelectItem::UnnamedExpr(Expr::Identifier(column.clone())));
            (None, named.collect())
        };
        select.projection.splice(position..=position, items);
        self.push_relation(select, Derived::Generator(Generator { call, outer, table, columns }));
        ControlFlow::Continue(())
    }

    /// The generator that an item of a SELECT list is, and the names behind its AS.
    fn generator_of(&self, item: &SelectItem) -> Option<(Function, Vec<Ident>)> {
        let (expr, columns) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, Vec::new()),
            SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias.clone()]),
            SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases.clone()),
            _ => return None,
        };
        match expr {
            Expr::Function(call) if self.is_generator(call) => Some((call.clone(), columns)),
            _ => None,
        }
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
pub(super) const WINDOWS: [&str; 2] = ["window", "session_window"];

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
