//! Scalar subqueries over static tables: answered once, before the query is optimised.
//!
//! A static table does not change during a run, so `WHERE n > (SELECT min(lim) FROM limits)` compares with one value.
//! Subqueries over streams have been refused by then.

use crate::PlanError;
use arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use datafusion::physical_plan::collect;

/// `plan` with a literal in place of each scalar subquery that does not look at the rows around it.
pub(crate) fn answer(plan: LogicalPlan, session: &SessionState) -> std::result::Result<LogicalPlan, PlanError> {
    let answered = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            let name = expr.schema_name().to_string();
            let is_named = matches!(expr, Expr::Alias(_) | Expr::Column(_));
            let replaced = expr.transform_up(|part| match part {
                Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty() => {
                    Ok(Transformed::yes(Expr::Literal(value_of(&subquery, session)?, None)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            // The column keeps the name that the subquery gave it.
            if replaced.transformed && !is_named {
                return Ok(Transformed::yes(replaced.data.alias(name)));
            }
            Ok(replaced)
        })
    });
    answered.map(|answered| answered.data).map_err(|error| PlanError::from_datafusion(&error))
}

/// The rows of a plan over static tables.
pub(crate) fn rows_of(plan: &LogicalPlan, session: &SessionState) -> std::result::Result<Vec<RecordBatch>, PlanError> {
    collected(plan, session).map_err(|error| PlanError::from_datafusion(&error))
}

fn collected(plan: &LogicalPlan, session: &SessionState) -> Result<Vec<RecordBatch>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?;
    runtime.block_on(async {
        let physical = session.create_physical_plan(plan).await?;
        collect(physical, session.task_ctx()).await
    })
}

fn value_of(subquery: &Subquery, session: &SessionState) -> Result<ScalarValue> {
    let batches = collected(&subquery.subquery, session)?;
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    match batches.iter().find(|batch| batch.num_rows() > 0) {
        Some(batch) if rows == 1 => ScalarValue::try_from_array(batch.column(0), 0),
        None => ScalarValue::try_from(subquery.subquery.schema().field(0).data_type()),
        Some(_) => {
            exec_err!("[SCALAR_SUBQUERY_TOO_MANY_ROWS] a subquery in an expression gave {rows} rows, one is allowed")
        }
    }
}
