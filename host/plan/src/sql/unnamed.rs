//! Subqueries without a name that are joined: they get one, so that their columns can be told from those of the other side.
//!
//! ```text
//!   events JOIN (SELECT ad AS word, v FROM ads) USING (word)
//!     →  events JOIN (SELECT ad AS word, v FROM ads) AS __unnamed_0 USING (word)
//! ```
//!
//! The name is for the planner alone: no state is called after it.

use datafusion::sql::sqlparser::ast::{Ident, Query, Select, TableAlias, TableFactor, VisitMut, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What such a name begins with.
const PREFIX: &str = "__unnamed_";

/// Whether a subquery has its name from here.
pub(crate) fn is_unnamed(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Names them.
pub(crate) fn name(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Unnamed { count: 0 });
}

struct Unnamed {
    count: usize,
}

impl VisitorMut for Unnamed {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let is_alone = select.from.len() == 1 && select.from.iter().all(|table| table.joins.is_empty());
        if is_alone {
            return ControlFlow::Continue(());
        }
        for table in &mut select.from {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for factor in std::iter::once(&mut table.relation).chain(joined) {
                if let TableFactor::Derived { alias: alias @ None, .. } = factor {
                    let name = Ident::new(format!("{PREFIX}{}", self.count));
                    *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
                    self.count += 1;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;

    #[test]
    fn only_what_is_joined_gets_a_name() {
        for (sql, named) in [
            (
                "SELECT * FROM (SELECT 1 AS a) JOIN (SELECT 2 AS a) USING(a)",
                "SELECT * FROM (SELECT 1 AS a) AS __unnamed_0 JOIN (SELECT 2 AS a) AS __unnamed_1 USING(a)",
            ),
            ("SELECT * FROM t, (SELECT 1 AS a) AS x", "SELECT * FROM t, (SELECT 1 AS a) AS x"),
            ("SELECT * FROM (SELECT 1 AS a)", "SELECT * FROM (SELECT 1 AS a)"),
        ] {
            let mut query = parse_query(sql).unwrap();
            name(&mut query);
            assert_eq!(query.to_string(), named);
        }
        assert!(is_unnamed("__unnamed_7") && !is_unnamed("unnamed"));
    }
}
