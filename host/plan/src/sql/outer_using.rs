//! Right and full joins with USING: the shared columns are those of the right side, or of whichever has one.
//!
//! ```text
//!   SELECT * FROM events RIGHT JOIN ads USING (word)
//!     →  SELECT ads.word AS word, events.* EXCEPT (word), ads.* EXCEPT (word)
//!        FROM events RIGHT JOIN ads ON events.word = ads.word
//!   SELECT word, n FROM events FULL JOIN ads USING (word)
//!     →  SELECT coalesce(events.word, ads.word) AS word, n FROM events FULL JOIN ads ON events.word = ads.word
//! ```
//!
//! The planner would read the column of one side only. A join of two named relations is spelled out; one in a chain is left
//! alone, and refused later. Source: Spark's `commonNaturalJoinProcessing`.

use super::call::call;
use super::names::{last_part, relation_name};
use super::using::columns_of;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Spells every such join out.
pub(crate) fn spell_out(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if let Some(shared) = shared(select) {
            shared.spell_out(select);
        }
        ControlFlow::Continue(())
    }
}

/// The columns that both sides of a join have, by the values that stand for them.
struct Shared {
    columns: Vec<(Ident, Expr)>,
    on: Expr,
    /// What `*` stands for behind them.
    rest: Vec<SelectItem>,
}

/// What the one join of a SELECT shares, if it is a right or full one with USING.
fn shared(select: &Select) -> Option<Shared> {
    let [table] = select.from.as_slice() else { return None };
    let [join] = table.joins.as_slice() else { return None };
    let (constraint, is_full) = match &join.join_operator {
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, false),
        JoinOperator::FullOuter(constraint) => (constraint, true),
        _ => return None,
    };
    let JoinConstraint::Using(names) = constraint else { return None };
    let names = names.iter().map(|name| last_part(name).cloned()).collect::<Option<Vec<_>>>()?;
    let side = |factor| relation_name(factor).as_ref().and_then(last_part).cloned();
    let (left, right) = (side(&table.relation)?, side(&join.relation)?);
    let of = |side: &Ident, name: &Ident| Expr::CompoundIdentifier(vec![side.clone(), name.clone()]);
    let columns = names.iter().map(|name| {
        let value = match is_full {
            true => call("coalesce", vec![of(&left, name), of(&right, name)]),
            false => of(&right, name),
        };
        (name.clone(), value)
    });
    let equal = names.iter().map(|name| Expr::BinaryOp {
        left: Box::new(of(&left, name)),
        op: BinaryOperator::Eq,
        right: Box::new(of(&right, name)),
    });
    let on = equal.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })?;
    let rest = vec![columns_of(&table.relation, &names)?, columns_of(&join.relation, &names)?];
    Some(Shared { columns: columns.collect(), on, rest })
}

impl Shared {
    fn spell_out(&self, select: &mut Select) {
        let mut items = Vec::new();
        for mut item in std::mem::take(&mut select.projection) {
            match &mut item {
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    let named = self.columns.iter().map(|(name, value)| named(name, value));
                    items.extend(named.chain(self.rest.iter().cloned()));
                    continue;
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                    if let Some((name, value)) = self.columns.iter().find(|(known, _)| known.value == name.value) {
                        item = named(name, value);
                    }
                }
                SelectItem::UnnamedExpr(expr)
                | SelectItem::ExprWithAlias { expr, .. }
                | SelectItem::ExprWithAliases { expr, .. } => self.put_into(expr),
                _ => {}
            }
            items.push(item);
        }
        select.projection = items;
        select.selection.iter_mut().chain(&mut select.having).for_each(|expr| self.put_into(expr));
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(|key| self.put_into(key));
        }
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            if let JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) = &mut join.join_operator
            {
                *constraint = JoinConstraint::On(self.on.clone());
            }
        }
    }

    fn put_into(&self, expr: &mut Expr) {
        let ControlFlow::Continue(()) = VisitMut::visit(expr, &mut Values(&self.columns));
    }
}

fn named(name: &Ident, value: &Expr) -> SelectItem {
    SelectItem::ExprWithAlias { expr: value.clone(), alias: name.clone() }
}

/// Puts values in the place of unqualified names.
struct Values<'a>(&'a [(Ident, Expr)]);

impl VisitorMut for Values<'_> {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Identifier(name) = expr
            && let Some((_, value)) = self.0.iter().find(|(known, _)| known.value == name.value)
        {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;

    #[test]
    fn shared_columns_come_from_the_side_that_has_them() {
        for (sql, spelled) in [
            (
                "SELECT * FROM events RIGHT JOIN ads a USING(word, n)",
                "SELECT a.word AS word, a.n AS n, events.* EXCEPT (word, n), a.* EXCEPT (word, n) \
                 FROM events RIGHT JOIN ads a ON events.word = a.word AND events.n = a.n",
            ),
            (
                "SELECT k, upper(k) AS u, count(*) FROM a FULL OUTER JOIN b USING(k) WHERE k > 1 GROUP BY k",
                "SELECT coalesce(a.k, b.k) AS k, upper(coalesce(a.k, b.k)) AS u, count(*) \
                 FROM a FULL JOIN b ON a.k = b.k WHERE coalesce(a.k, b.k) > 1 GROUP BY coalesce(a.k, b.k)",
            ),
            ("SELECT * FROM a LEFT JOIN b USING(k)", "SELECT * FROM a LEFT JOIN b USING(k)"),
            (
                "SELECT * FROM a RIGHT JOIN b USING(k) JOIN c USING(k)",
                "SELECT * FROM a RIGHT JOIN b USING(k) JOIN c USING(k)",
            ),
        ] {
            let mut query = parse_query(sql).unwrap();
            spell_out(&mut query);
            assert_eq!(query.to_string(), spelled);
        }
    }
}
