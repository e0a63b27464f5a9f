//! Lateral column aliases: an item of a SELECT list that uses the name of one before it.
//!
//! ```text
//!   SELECT n * 2 AS twice, twice + 1 AS more FROM events
//!     →  SELECT n * 2 AS twice, (n * 2) + 1 AS more FROM events
//! ```
//!
//! Columns come first: only a name that the planner does not find is looked for among the aliases. That is why this is asked
//! after planning has failed, and the query planned again. Source: Spark's `ResolveLateralColumnAliasReference`.
//!
//! An expression that gives another value each time, such as `uuid()`, would do so in each place, so it is refused.

use super::names::Names;
use crate::error::PlanError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, Query, Select, SelectItem, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The functions that give another value each time. The batch's time is one for all.
const VOLATILE: &[&str] =
    &["uuid", "rand", "random", "randn", "shuffle", "randstr", "uniform", "monotonically_increasing_id"];

/// The name that planning did not find, if that is why it failed: of a column, or of what stands before a field.
pub(crate) fn unknown_name(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, .. } => Some(match &field.relation {
                Some(relation) => relation.table().to_owned(),
                None => field.name.clone(),
            }),
            _ => None,
        },
        _ => None,
    }
}

/// Puts expressions in the place of the alias `name` in the items behind it; answers whether there was one to be put.
///
/// Where several SELECTs have such an alias it must be sure that none of them means a column: no source has one of that
/// `name`, and they read sources only.
///
/// # Errors
/// When the expression gives another value each time.
pub(crate) fn substitute(query: &mut Query, name: &str, sources: &Names) -> Result<bool, PlanError> {
    let mut found = Selects { name, is_asked: true, count: 0, all_plain: query.with.is_none(), volatile: None };
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut found);
    let is_sure = found.count == 1 || (found.all_plain && sources.declared(name).is_none());
    if found.count == 0 || !is_sure {
        return Ok(false);
    }
    if let Some(function) = found.volatile {
        return Err(PlanError::Sql {
            message: format!(
                "the alias `{name}` cannot be used in the SELECT that makes it, because `{function}` gives another value \
                 each time; make it in a subquery: SELECT … FROM (SELECT *, … AS {name} FROM …)"
            ),
        });
    }
    let mut put = Selects { name, is_asked: false, count: 0, all_plain: true, volatile: None };
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut put);
    Ok(true)
}

struct Selects<'a> {
    name: &'a str,
    /// Whether SELECTs are only counted.
    is_asked: bool,
    count: usize,
    /// Whether those that were counted read sources only.
    all_plain: bool,
    /// The function because of which an alias cannot be replaced by its expression.
    volatile: Option<String>,
}

impl VisitorMut for Selects<'_> {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let aliased = select.projection.iter().enumerate().find_map(|(at, item)| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == self.name => Some((at, expr.clone())),
            _ => None,
        });
        let Some((at, value)) = aliased else { return ControlFlow::Continue(()) };
        let mut uses = Uses { name: self.name, count: 0, is_bound: false };
        let behind = &mut select.projection[at + 1..];
        for item in behind.iter() {
            let _ = Visit::visit(item, &mut uses);
        }
        if uses.count == 0 || uses.is_bound {
            return ControlFlow::Continue(());
        }
        self.count += 1;
        if let ControlFlow::Break(function) = Visit::visit(&value, &mut Volatile) {
            self.volatile = Some(function);
        }
        self.all_plain &= select.from.iter().all(|table| {
            let joined = table.joins.iter().map(|join| &join.relation);
            std::iter::once(&table.relation).chain(joined).all(|factor| matches!(factor, TableFactor::Table { .. }))
        });
        if !self.is_asked {
            let mut replace = Replace { name: self.name, value: &value };
            for item in behind {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    let ControlFlow::Continue(()) = VisitMut::visit(expr, &mut replace);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Finds a call of a function that gives another value each time.
struct Volatile;

impl Visitor for Volatile {
    type Break = String;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        match expr {
            Expr::Function(call) => {
                let name = call.name.to_string().to_lowercase();
                if VOLATILE.contains(&name.as_str()) { ControlFlow::Break(name) } else { ControlFlow::Continue(()) }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Counts the uses of a name, and sees whether something inside gives it a meaning of its own.
struct Uses<'a> {
    name: &'a str,
    count: usize,
    is_bound: bool,
}

impl Visitor for Uses<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Infallible> {
        self.is_bound = true;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(name) => self.count += usize::from(name.value == self.name),
            Expr::CompoundIdentifier(parts) => {
                self.count += usize::from(parts.first().is_some_and(|name| name.value == self.name));
            }
            Expr::Lambda(lambda) => {
                let mut names = lambda.params.iter().map(|parameter| &parameter.name);
                self.is_bound |= names.any(|name: &Ident| name.value.eq_ignore_ascii_case(self.name));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

struct Replace<'a> {
    name: &'a str,
    value: &'a Expr,
}

impl VisitorMut for Replace<'_> {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let value = || Box::new(Expr::Nested(Box::new(self.value.clone())));
        match expr {
            Expr::Identifier(name) if name.value == self.name => *expr = *value(),
            Expr::CompoundIdentifier(parts) if parts.first().is_some_and(|name| name.value == self.name) => {
                let field = |part: &Ident| {
                    let name = Value::SingleQuotedString(part.value.clone());
                    AccessExpr::Dot(Expr::Value(name.with_empty_span()))
                };
                let access_chain = parts[1..].iter().map(field).collect();
                *expr = Expr::CompoundFieldAccess { root: value(), access_chain };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;

    fn substituted(sql: &str, name: &str) -> Option<String> {
        let mut query = parse_query(sql).unwrap();
        let mut sources = Names::default();
        sources.add("n");
        substitute(&mut query, name, &sources).unwrap().then(|| query.to_string())
    }

    #[test]
    fn an_alias_of_what_changes_each_time_is_refused_where_it_is_used() {
        let refusal =
            |sql| substitute(&mut parse_query(sql).unwrap(), "id", &Names::default()).map_err(|e| e.to_string());
        let error = refusal("SELECT uuid() AS id, concat('k-', id) AS key FROM e").unwrap_err();
        assert!(error.contains("`uuid` gives another value each time") && error.contains("subquery"), "{error}");
        assert!(refusal("SELECT 1 + Rand(7) AS id, id * 2 AS twice FROM e").is_err());
        assert_eq!(refusal("SELECT current_timestamp() AS id, id + INTERVAL 1 DAY AS next FROM e"), Ok(true));
        assert_eq!(refusal("SELECT uuid() AS id, n AS m FROM e"), Ok(false));
    }

    #[test]
    fn an_alias_stands_for_its_expression_in_the_items_behind_it() {
        for (sql, name, expected) in [
            ("SELECT n * 2 AS t, t + t AS u FROM e", "t", Some("SELECT n * 2 AS t, (n * 2) + (n * 2) AS u FROM e")),
            ("SELECT f(n) AS s, s.a FROM e", "s", Some("SELECT f(n) AS s, (f(n)).'a' FROM e")),
            ("SELECT t, n AS t FROM e", "t", None),
            ("SELECT n AS t, (SELECT max(t) FROM d) FROM e", "t", None),
            ("SELECT n AS t, f(a, t -> t + 1) FROM e", "t", None),
            (
                "SELECT a AS t, t FROM e UNION ALL SELECT b AS t, t FROM e",
                "t",
                Some("SELECT a AS t, (a) FROM e UNION ALL SELECT b AS t, (b) FROM e"),
            ),
            ("SELECT a AS n, n FROM e UNION ALL SELECT b AS n, n FROM e", "n", None),
            ("SELECT a AS t, t FROM (SELECT b AS t, t FROM e) AS d", "t", None),
        ] {
            assert_eq!(substituted(sql, name).as_deref(), expected, "{sql}");
        }
    }
}
