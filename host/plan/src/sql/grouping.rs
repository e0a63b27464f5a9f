//! `grouping(column)` and `grouping_id(columns…)`: which columns a row of a grouping set leaves out.
//!
//! ```text
//! grouping(k)           →  CAST(grouping(k) AS TINYINT)
//! grouping_id(k, w)     →  CAST(grouping(k, w) AS BIGINT)
//! grouping_id()         →  the same of all columns of GROUP BY, in their order
//! ```
//!
//! One bit per column, the first one highest, 1 where the column is left out: Spark's rule, and DataFusion's for
//! `grouping` of several columns.

use super::rewrite::function_name;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    ObjectName, Query, Select, VisitMut, VisitorMut,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Spells the calls in each SELECT of the query.
pub(crate) fn rewrite(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut calls = Calls { keys: keys(&select.group_by) };
        VisitMut::visit(&mut select.projection, &mut calls)?;
        match &mut select.having {
            Some(having) => VisitMut::visit(having, &mut calls),
            None => ControlFlow::Continue(()),
        }
    }
}

/// The columns of GROUP BY, each once, in order.
fn keys(group_by: &GroupByExpr) -> Vec<Expr> {
    let GroupByExpr::Expressions(expressions, _) = group_by else { return Vec::new() };
    let mut keys = Vec::new();
    for expression in expressions {
        match expression {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                keys.extend(sets.iter().flatten().cloned());
            }
            key => keys.push(key.clone()),
        }
    }
    let mut seen = BTreeSet::new();
    keys.retain(|key| seen.insert(key.to_string()));
    keys
}

struct Calls {
    keys: Vec<Expr>,
}

impl VisitorMut for Calls {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let data_type = match function_name(call).as_str() {
            "grouping" => DataType::TinyInt(None),
            "grouping_id" => DataType::BigInt(None),
            _ => return ControlFlow::Continue(()),
        };
        let mut call = call.clone();
        call.name = ObjectName::from(vec![Ident::new("grouping")]);
        fill(&mut call, &self.keys);
        *expr = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Function(call)),
            data_type,
            array: false,
            format: None,
        };
        ControlFlow::Continue(())
    }
}

/// Gives a call without arguments all keys.
fn fill(call: &mut Function, keys: &[Expr]) {
    if let FunctionArguments::List(list) = &mut call.args
        && list.args.is_empty()
    {
        list.args = keys.iter().map(|key| FunctionArg::Unnamed(FunctionArgExpr::Expr(key.clone()))).collect();
    }
}
