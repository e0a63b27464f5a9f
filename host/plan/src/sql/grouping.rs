//! `grouping(column)` and `grouping_id(columns…)`: which columns a row of a grouping set leaves out.
//!
//! ```text
//! grouping(k)           →  CAST(grouping(k) AS TINYINT)
//! grouping_id(k, w)     →  CAST(grouping(k, w) AS BIGINT)
//! grouping_id()         →  the same of all columns of GROUP BY, in their order
//! GROUP BY k, w WITH ROLLUP           →  GROUP BY ROLLUP (k, w)
//! GROUP BY k, w GROUPING SETS (k, w)  →  GROUP BY GROUPING SETS (k, w)
//! ```
//!
//! One bit per column, the first one highest, 1 where the column is left out: Spark's rule, and DataFusion's for
//! `grouping` of several columns.

use super::rewrite::function_name;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    GroupByWithModifier, Ident, ObjectName, Query, Select, VisitMut, VisitorMut,
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
        spell_modifiers(&mut select.group_by);
        let mut calls = Calls { keys: keys(&select.group_by) };
        VisitMut::visit(&mut select.projection, &mut calls)?;
        match &mut select.having {
            Some(having) => VisitMut::visit(having, &mut calls),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Spells what stands behind the keys as what they are grouped by: the planner does not look there.
fn spell_modifiers(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(keys, modifiers) = group_by else { return };
    let sets = |keys: &mut Vec<Expr>| std::mem::take(keys).into_iter().map(|key| vec![key]).collect();
    let spelled = match modifiers.as_slice() {
        [GroupByWithModifier::Rollup] => Expr::Rollup(sets(keys)),
        [GroupByWithModifier::Cube] => Expr::Cube(sets(keys)),
        [GroupByWithModifier::GroupingSets(sets)] => sets.clone(),
        _ => return,
    };
    *group_by = GroupByExpr::Expressions(vec![spelled], Vec::new());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;

    #[test]
    fn modifiers_become_what_is_grouped_by() {
        for (written, spelled) in [
            ("GROUP BY k, w WITH ROLLUP", "GROUP BY ROLLUP (k, w)"),
            ("GROUP BY k, w + 1 WITH CUBE", "GROUP BY CUBE (k, w + 1)"),
            ("GROUP BY k, w GROUPING SETS ((k, w), k)", "GROUP BY GROUPING SETS ((k, w), (k))"),
            ("GROUP BY k", "GROUP BY k"),
        ] {
            let mut query = parse_query(&format!("SELECT count(*) FROM t {written}")).unwrap();
            rewrite(&mut query);
            assert_eq!(query.to_string(), format!("SELECT count(*) FROM t {spelled}"));
        }
    }
}
