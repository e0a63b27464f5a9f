//! What the text of a query already shows not to work, before it is planned: the planner would not say why, or would not
//! even notice.

use super::rewrite::function_name;
use crate::PlanError;
use datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
    Visit, Visitor,
};
use std::ops::ControlFlow;

/// Refuses what cannot work.
///
/// # Errors
/// [`PlanError::Unsupported`] for the first rule that is broken.
pub(crate) fn check(query: &Query) -> Result<(), PlanError> {
    match Visit::visit(query, &mut Refusals) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Refusals;

fn refuse(rule: &'static str, reason: &str, hint: &str) -> ControlFlow<PlanError> {
    ControlFlow::Break(PlanError::Unsupported { rule, reason: reason.to_owned(), hint: hint.to_owned() })
}

impl Visitor for Refusals {
    type Break = PlanError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<PlanError> {
        check_set_operation(&query.body)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<PlanError> {
        if select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) && has_natural_outer(select) {
            return refuse(
                "natural-outer",
                "`*` over a NATURAL outer join has columns that may come from either side, and only one is read",
                "write LEFT JOIN … USING (…), or name the columns",
            );
        }
        if !select.sort_by.is_empty() || !select.cluster_by.is_empty() {
            return refuse(
                "sort-by",
                "SORT BY and CLUSTER BY would sort each partition of a batch, which says nothing about the result",
                "use ORDER BY on an aggregation in output mode complete, or sort in the sink",
            );
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<PlanError> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => refuse(
                "sample",
                "TABLESAMPLE would take other rows whenever a batch is run again",
                "choose rows by what is in them: WHERE pmod(xxhash64(id), 100) < 10",
            ),
            TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => refuse(
                "pivot",
                "PIVOT and UNPIVOT are not known here",
                "write the columns out: count(*) FILTER (WHERE word = 'ant') AS ant; or LATERAL VIEW inline(array(…))",
            ),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<PlanError> {
        match expr {
            Expr::Function(call) if function_name(call) == "monotonically_increasing_id" => refuse(
                "monotonic-id",
                "monotonically_increasing_id() would number the rows of a stream by how its batches were cut",
                "use a column that the source numbers its rows by, or a hash of what tells them apart",
            ),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_natural_outer(select: &Select) -> bool {
    let joins = select.from.iter().flat_map(|table| &table.joins);
    let mut constraints = joins.filter_map(|join| match &join.join_operator {
        JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    });
    constraints.any(|constraint| *constraint == JoinConstraint::Natural)
}

fn check_set_operation(body: &SetExpr) -> ControlFlow<PlanError> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return ControlFlow::Continue(()) };
    if !matches!(op, SetOperator::Union)
        && matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName | SetQuantifier::ByName)
    {
        return refuse(
            "set-operation-all",
            "INTERSECT ALL and EXCEPT ALL would have to count the equal rows of both sides",
            "leave ALL out, or use LEFT SEMI JOIN and LEFT ANTI JOIN",
        );
    }
    check_set_operation(left)?;
    check_set_operation(right)
}
