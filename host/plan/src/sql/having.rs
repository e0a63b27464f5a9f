//! HAVING by the names that SELECT gives, also where a column has the same name.
//!
//! ```text
//!   SELECT word, sum(n) AS n FROM events GROUP BY word HAVING n > 3
//!     →  SELECT word, sum(n) AS n FROM events GROUP BY word HAVING (sum(n)) > 3
//! ```
//!
//! The planner would look among the columns first. What stands inside of a call is a column, as in `HAVING sum(n) > 3`.
//! Source: Spark resolves HAVING by the output of the aggregation before its input.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, SelectItem, VisitMut, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Spells the names out in each SELECT of the query.
pub(crate) fn spell_out(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if let Some(having) = &mut select.having {
            let ControlFlow::Continue(()) =
                VisitMut::visit(having, &mut Outside { items: &select.projection, depth: 0 });
        }
        ControlFlow::Continue(())
    }
}

/// Puts expressions in the place of names outside of calls and subqueries.
struct Outside<'a> {
    items: &'a [SelectItem],
    depth: usize,
}

impl Outside<'_> {
    fn meaning(&self, name: &str) -> Option<&Expr> {
        self.items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == name && has_call(expr) => Some(expr),
            _ => None,
        })
    }
}

/// Whether an expression may be an aggregation: a name of a key means the key either way.
fn has_call(expr: &Expr) -> bool {
    let mut found = false;
    let _ = datafusion::sql::sqlparser::ast::visit_expressions(expr, |expr| {
        found |= matches!(expr, Expr::Function(call) if !is_without_arguments(&call.args));
        ControlFlow::<Infallible>::Continue(())
    });
    found
}

fn is_without_arguments(arguments: &FunctionArguments) -> bool {
    match arguments {
        FunctionArguments::List(list) => !list.args.iter().any(|argument| {
            matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(_) | FunctionArgExpr::Wildcard))
        }),
        _ => true,
    }
}

impl VisitorMut for Outside<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.depth += usize::from(matches!(expr, Expr::Function(_)));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Function(_) => self.depth -= 1,
            Expr::Identifier(name) if self.depth == 0 => {
                if let Some(meaning) = self.meaning(&name.value) {
                    *expr = Expr::Nested(Box::new(meaning.clone()));
                }
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

    #[test]
    fn names_outside_of_calls_are_those_of_the_result() {
        for (having, spelled) in [
            ("n > 3", "(sum(n)) > 3"),
            ("sum(n) > 3 AND n < 9", "sum(n) > 3 AND (sum(n)) < 9"),
            ("k = 'a'", "k = 'a'"),
            ("n IN (SELECT n FROM u)", "(sum(n)) IN (SELECT n FROM u)"),
        ] {
            let select = "SELECT w AS k, sum(n) AS n FROM t GROUP BY w HAVING";
            let mut query = parse_query(&format!("{select} {having}")).unwrap();
            spell_out(&mut query);
            assert_eq!(query.to_string(), format!("{select} {spelled}"));
        }
    }
}
