//! `SELECT *` over joins with USING: the columns that both sides have are those of the left side.
//!
//! ```text
//!   SELECT * FROM events LEFT JOIN ads USING (word)
//!     →  SELECT events.*, ads.* EXCEPT (word) FROM events LEFT JOIN ads USING (word)
//! ```
//!
//! The planner would keep the column of the side whose name comes first in the alphabet, which of a left join may be the side
//! that is NULL. Joins whose columns come from the right side are those of [`super::outer_using`].

use super::names::{last_part, relation_name};
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableFactor, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Spells every such `*` out.
pub(crate) fn spell_out(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let is_bare = |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default());
        if select.projection.iter().any(is_bare)
            && let Some(columns) = columns(select)
        {
            let items = std::mem::take(&mut select.projection).into_iter();
            select.projection =
                items.flat_map(|item| if is_bare(&item) { columns.clone() } else { vec![item] }).collect();
        }
        ControlFlow::Continue(())
    }
}

/// The columns of each side of the joins; `None` when none has USING, or a side has no name.
fn columns(select: &Select) -> Option<Vec<SelectItem>> {
    let [table] = select.from.as_slice() else { return None };
    let mut columns = vec![columns_of(&table.relation, &[])?];
    let mut has_using = false;
    for join in &table.joins {
        let (constraint, is_given) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::CrossJoin(constraint) => (constraint, true),
            JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint) => (constraint, false),
            _ => return None,
        };
        let shared = match constraint {
            JoinConstraint::Using(shared) => {
                shared.iter().map(|name| last_part(name).cloned()).collect::<Option<Vec<_>>>()?
            }
            JoinConstraint::Natural => return None,
            _ => Vec::new(),
        };
        has_using |= !shared.is_empty();
        if is_given {
            columns.push(columns_of(&join.relation, &shared)?);
        }
    }
    has_using.then_some(columns)
}

/// `relation.*` without the columns that the left side gives.
pub(super) fn columns_of(relation: &TableFactor, shared: &[Ident]) -> Option<SelectItem> {
    let name = relation_name(relation)?;
    let except = shared
        .split_first()
        .map(|(first, others)| ExceptSelectItem { first_element: first.clone(), additional_elements: others.to_vec() });
    let options = WildcardAdditionalOptions { opt_except: except, ..WildcardAdditionalOptions::default() };
    Some(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;

    #[test]
    fn the_left_side_gives_what_both_have() {
        for (sql, spelled) in [
            (
                "SELECT * FROM events LEFT JOIN ads a USING(word, n)",
                "SELECT events.*, a.* EXCEPT (word, n) FROM events LEFT JOIN ads a USING(word, n)",
            ),
            (
                "SELECT 1, * FROM a JOIN b USING(k) CROSS JOIN c LEFT SEMI JOIN d USING(k)",
                "SELECT 1, a.*, b.* EXCEPT (k), c.* FROM a JOIN b USING(k) CROSS JOIN c LEFT SEMI JOIN d USING(k)",
            ),
            ("SELECT * FROM a JOIN b ON a.k = b.k", "SELECT * FROM a JOIN b ON a.k = b.k"),
            ("SELECT * FROM a RIGHT JOIN b USING(k)", "SELECT * FROM a RIGHT JOIN b USING(k)"),
            ("SELECT a.* FROM a JOIN b USING(k)", "SELECT a.* FROM a JOIN b USING(k)"),
        ] {
            let mut query = parse_query(sql).unwrap();
            spell_out(&mut query);
            assert_eq!(query.to_string(), spelled);
        }
    }
}
