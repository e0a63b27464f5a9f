//! Expressions of the plan as physical expressions.

use super::Lowering;
use crate::PlanError;
use datafusion::common::DFSchema;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, SortExpr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::{PhysicalSortExpr, create_physical_expr, create_physical_sort_expr};
use std::sync::Arc;

impl Lowering<'_> {
    /// One expression over the rows of `schema`.
    pub(super) fn expression(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>, PlanError> {
        create_physical_expr(expr, schema, self.session.execution_props(), &PhysicalPlanningContext::default())
            .map_err(|error| PlanError::from_datafusion(&error))
    }

    /// Expressions over the rows of `schema`.
    pub(super) fn columns(&self, exprs: &[Expr], schema: &DFSchema) -> Result<Vec<Arc<dyn PhysicalExpr>>, PlanError> {
        exprs.iter().map(|expr| self.expression(expr, schema)).collect()
    }

    /// Sort keys over the rows of `schema`. Nulls come first ascending and last descending, as in Spark, unless said
    /// otherwise; the front end has put that in.
    pub(super) fn sort_keys(&self, keys: &[SortExpr], schema: &DFSchema) -> Result<Vec<PhysicalSortExpr>, PlanError> {
        let context = PhysicalPlanningContext::default();
        keys.iter()
            .map(|key| create_physical_sort_expr(key, schema, self.session.execution_props(), &context))
            .collect::<Result<_, _>>()
            .map_err(|error| PlanError::from_datafusion(&error))
    }
}
