//! Spark's functions and the meaning of its expressions.
//!
//! One folder per family. Each gives its functions; some give planners for syntax and analyzer rules, which run in
//! the order in which [`all`] lists them, before DataFusion's own.

mod aggregate;
pub(crate) mod expr;
pub(crate) mod nested;
mod spark_types;
pub(crate) mod text;

pub(crate) use spark_types::SparkTypes;

use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF};
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use millstream_common::SqlSettings;
use std::sync::Arc;

/// Everything that SQL knows beyond DataFusion; a function replaces DataFusion's of the same name.
#[derive(Default)]
pub(crate) struct SparkSql {
    /// Row by row.
    pub(crate) scalar: Vec<Arc<ScalarUDF>>,
    /// Over groups.
    pub(crate) aggregate: Vec<Arc<AggregateUDF>>,
    /// With lambdas.
    pub(crate) higher_order: Vec<Arc<HigherOrderUDF>>,
    /// Syntax, first to last.
    pub(crate) expr_planners: Vec<Arc<dyn ExprPlanner>>,
    /// Meaning, first to last, before type coercion.
    pub(crate) analyzer_rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
    /// What must hold of the optimised plan, after DataFusion's own rules.
    pub(crate) optimizer_rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
}

/// Spark's SQL under these settings.
pub(crate) fn all(settings: &SqlSettings) -> SparkSql {
    let text = text::scalar_functions(settings);
    let text = text.into_iter().map(|function| nested::for_arrays_too(function, settings));
    let mut scalar = expr::scalar_functions(settings);
    scalar.extend(nested::scalar_functions(settings));
    scalar.extend(text);
    let mut expr_planners = nested::expr_planners(settings);
    expr_planners.extend(text::expr_planners(settings));
    expr_planners.extend(expr::expr_planners(settings));
    SparkSql {
        scalar,
        aggregate: aggregate::aggregate_functions(settings),
        higher_order: nested::higher_order_functions(settings),
        expr_planners,
        analyzer_rules: expr::analyzer_rules(settings),
        optimizer_rules: expr::optimizer_rules(settings),
    }
}
