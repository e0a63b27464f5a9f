//! VALUES without names: its columns are `col1`, `col2`, …, as in Spark.
//!
//! ```text
//!   FROM VALUES (1, 'a'), (2, 'b')       →  FROM (VALUES …) AS __unnamed_values (col1, col2)
//!   FROM VALUES (1, 'a'), (2, 'b') AS t  →  FROM (VALUES …) AS t (col1, col2)
//! ```

use datafusion::sql::sqlparser::ast::{
    Ident, Query, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, VisitMut, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The name of such a relation; no state is called after it.
const UNNAMED: &str = "__unnamed_values";

/// Names the columns.
pub(crate) fn name_columns(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Relations);
}

struct Relations;

impl VisitorMut for Relations {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Derived { subquery, alias, .. } = factor
            && let SetExpr::Values(values) = subquery.body.as_ref()
        {
            let alias = alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: Ident::new(UNNAMED),
                columns: Vec::new(),
                at: None,
            });
            if alias.columns.is_empty() {
                let count = values.rows.first().map_or(0, |row| row.len());
                alias.columns = (1..=count).map(|at| TableAliasColumnDef::from_name(format!("col{at}"))).collect();
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
    fn columns_without_names_are_numbered() {
        for (from, named) in [
            ("VALUES (1, 'a')", "(VALUES (1, 'a')) AS __unnamed_values (col1, col2)"),
            ("VALUES (1) AS t", "(VALUES (1)) AS t (col1)"),
            ("VALUES (1) AS t(a)", "(VALUES (1)) AS t (a)"),
            ("(SELECT 1)", "(SELECT 1)"),
        ] {
            let mut query = parse_query(&format!("SELECT * FROM {from}")).unwrap();
            name_columns(&mut query);
            assert_eq!(query.to_string(), format!("SELECT * FROM {named}"));
        }
    }
}
