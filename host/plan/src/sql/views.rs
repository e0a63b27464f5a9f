//! Temporary views over queries, as WITH clauses of the queries that use them.

use super::parse::parse_query;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{Cte, Ident, ObjectName, Query, TableAlias, Visit, Visitor, With};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// `sql` with the views that it names, directly or through other views, put before it as WITH clauses. A query that
/// does not parse comes back as it is: planning says why.
///
/// The name of a view is the scope of the uids of its stateful operators, as that of any WITH clause.
pub fn with_views(sql: &str, views: &[(String, String)]) -> String {
    let Ok(mut query) = parse_query(sql) else { return sql.to_owned() };
    let mut clauses = Vec::new();
    let mut done: BTreeSet<String> = query.with.iter().flat_map(|with| &with.cte_tables).map(cte_name).collect();
    add_clauses(&query, views, &mut done, &mut clauses);
    if clauses.is_empty() {
        return sql.to_owned();
    }
    match &mut query.with {
        Some(with) => {
            clauses.append(&mut with.cte_tables);
            with.cte_tables = clauses;
        }
        None => query.with = Some(With { with_token: AttachedToken::empty(), recursive: false, cte_tables: clauses }),
    }
    query.to_string()
}

/// Views that a view needs come before it; a view that needs itself is left to the planner to refuse.
fn add_clauses(query: &Query, views: &[(String, String)], done: &mut BTreeSet<String>, clauses: &mut Vec<Cte>) {
    for name in relations(query) {
        let Some((view, sql)) = views.iter().find(|(view, _)| view.eq_ignore_ascii_case(&name)) else { continue };
        if !done.insert(view.to_lowercase()) {
            continue;
        }
        let Ok(body) = parse_query(sql) else { continue };
        add_clauses(&body, views, done, clauses);
        let alias = TableAlias { explicit: false, name: Ident::new(view), columns: Vec::new(), at: None };
        clauses.push(Cte {
            alias,
            query: body,
            from: None,
            materialized: None,
            closing_paren_token: AttachedToken::empty(),
        });
    }
}

fn cte_name(cte: &Cte) -> String {
    cte.alias.name.value.to_lowercase()
}

fn relations(query: &Query) -> Vec<String> {
    struct Relations(Vec<String>);
    impl Visitor for Relations {
        type Break = std::convert::Infallible;
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
            self.0.extend(super::rewrite::single_name(relation).map(str::to_owned));
            ControlFlow::Continue(())
        }
    }
    let mut found = Relations(Vec::new());
    let ControlFlow::Continue(()) = query.visit(&mut found);
    found.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_comes_with_the_views_it_needs() {
        let views = [
            ("words".to_owned(), "SELECT w FROM lines".to_owned()),
            ("counts".to_owned(), "SELECT w, count(*) AS n FROM words GROUP BY w".to_owned()),
            ("unused".to_owned(), "SELECT 1".to_owned()),
        ];
        let sql = with_views("SELECT * FROM counts WHERE n > 1", &views);
        assert!(sql.starts_with("WITH words AS (SELECT w FROM lines), counts AS ("), "{sql}");
        assert!(!sql.contains("unused"));
        assert_eq!(with_views("SELECT * FROM lines", &views), "SELECT * FROM lines");
    }
}
