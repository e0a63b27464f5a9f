//! The analyzer rule that gives a plan's expressions Spark's types and meaning.
//!
//! Runs before DataFusion's `TypeCoercion` (put it first in the analyzer's rules), on plans from SQL and from the
//! DataFrame API alike, and leaves nothing for that rule to coerce. Bottom up, with the types of the already
//! rewritten inputs:
//!
//! - arithmetic operators become [`super::arithmetic`]'s functions, casts [`super::cast`]'s;
//! - implicit casts are inserted by Spark's rules into comparisons, IN, CASE, function arguments, set operations;
//! - AND, OR, NOT and comparisons stay native, so that predicates are still pushed down and simplified. Floating-point
//!   operands of comparisons, grouping keys and join keys are normalised (one zero, one NaN);
//! - the right side of AND and OR is guarded where it could fail for rows that the left side already decides.
//!
//! The rule may run any number of times on a plan: what it has made it leaves alone. It does not read literals'
//! SQL spelling; that is [`super::literals`]'s, once, right after planning.

mod expression;
mod set_operation;
mod shield;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, GroupingSet, Join, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use millstream_common::SqlSettings;

use super::named::rewrite_named;

pub(super) use expression::{Functions, Rewriter};
pub(super) use shield::ShieldedFilters;
pub(crate) use shield::behind_shield;

/// The rule.
#[derive(Debug)]
pub(crate) struct SparkExpressions {
    settings: SqlSettings,
    functions: Functions,
}

impl SparkExpressions {
    /// The rule under the session's settings.
    pub(crate) fn new(settings: &SqlSettings) -> Self {
        Self { settings: settings.clone(), functions: Functions::new(settings) }
    }

    fn rewriter<'a>(&'a self, schema: &'a DFSchema) -> Rewriter<'a> {
        Rewriter::new(schema, &self.settings, &self.functions)
    }

    fn plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&plan);
        let mut rewriter = self.rewriter(&schema);
        plan.map_expressions(|expr| rewrite_named(expr, &names, &mut |expr| expr.rewrite(&mut rewriter)))?
            .map_data(|plan| self.shape(plan))?
            .map_data(LogicalPlan::recompute_schema)
    }

    /// What is not an expression of its own: pairs of join keys, columns of set operations, grouping keys.
    fn shape(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => set_operation::widen(union, &self.settings),
            LogicalPlan::Aggregate(mut aggregate) => {
                let rewriter = self.rewriter(aggregate.input.schema());
                let keys = std::mem::take(&mut aggregate.group_expr);
                aggregate.group_expr =
                    keys.into_iter().map(|key| grouping_key(key, &rewriter)).collect::<Result<_>>()?;
                Ok(LogicalPlan::Aggregate(aggregate))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            other => Ok(other),
        }
    }

    fn join(&self, mut join: Join) -> Result<LogicalPlan> {
        let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
        let on = std::mem::take(&mut join.on);
        join.on = on
            .into_iter()
            .map(|(l, r)| {
                let (l_type, r_type) = (l.get_type(left.as_ref())?, r.get_type(right.as_ref())?);
                self.rewriter(&left).compared((l, l_type), (r, r_type))
            })
            .collect::<Result<_>>()?;
        Ok(LogicalPlan::Join(join))
    }

    /// Rows that differ in the sign of a zero only are one row.
    fn distinct(&self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        let schema = Arc::clone(input.schema());
        let rewriter = self.rewriter(&schema);
        let normalised = matches!(input.as_ref(), LogicalPlan::Projection(projection)
            if projection.expr.iter().any(|expr| rewriter.is_normalized(expr)));
        let floats = schema.fields().iter().any(|field| super::compare::holds_floats(field.data_type()));
        if normalised || !floats {
            return Ok(LogicalPlan::Distinct(Distinct::All(input)));
        }
        let columns: Vec<Expr> = schema
            .iter()
            .map(|(qualifier, field)| {
                let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
                if super::compare::holds_floats(field.data_type()) {
                    rewriter.normalized(column).alias_qualified(qualifier.cloned(), field.name())
                } else {
                    column
                }
            })
            .collect();
        let projection = LogicalPlan::Projection(Projection::try_new(columns, input)?);
        Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(projection))))
    }
}

/// A grouping key with one zero and one NaN, under its old name.
fn grouping_key(key: Expr, rewriter: &Rewriter<'_>) -> Result<Expr> {
    let each = |keys: Vec<Expr>| keys.into_iter().map(|key| grouping_key(key, rewriter)).collect::<Result<Vec<_>>>();
    match key {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => Ok(Expr::GroupingSet(GroupingSet::Rollup(each(keys)?))),
        Expr::GroupingSet(GroupingSet::Cube(keys)) => Ok(Expr::GroupingSet(GroupingSet::Cube(each(keys)?))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            let sets = sets.into_iter().map(each).collect::<Result<_>>()?;
            Ok(Expr::GroupingSet(GroupingSet::GroupingSets(sets)))
        }
        key => {
            let floats = key.get_type(rewriter.schema()).is_ok_and(|t| super::compare::holds_floats(&t));
            if !floats || rewriter.is_normalized(&key) {
                return Ok(key);
            }
            let (relation, name) = key.qualified_name();
            Ok(rewriter.normalized(key.unalias()).alias_qualified(relation, name))
        }
    }
}

impl AnalyzerRule for SparkExpressions {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(|plan| self.plan(plan))?.data)
    }

    fn name(&self) -> &str {
        "spark_expressions"
    }
}
