//! Spark's expressions over DataFusion: types, arithmetic, casts, comparisons, conditionals, mathematics.
//!
//! Stands between SQL or the DataFrame API and DataFusion's planner. What the session must register, in order:
//!
//! 1. [`scalar_functions`], after DataFusion's own so that they replace functions of the same name;
//! 2. [`expr_planners`], before DataFusion's own; the parser option `parse_float_as_decimal`;
//! 3. [`analyzer_rules`], before every other analyzer rule;
//! 4. [`optimizer_rules`], after every other optimizer rule;
//! 5. around the planning of each SQL text, once: [`spell_literals`] on the statement, [`narrow_literals`] on the plan.
//!
//! The time zone is always UTC. Aggregates, strings, dates and
//! collections have folders of their own; so does syntax that DataFusion cannot plan.

mod analyzer;
mod arithmetic;
mod bits;
mod cast;
mod clock;
mod common_type;
mod compare;
mod conditional;
mod decimal_math;
mod decimal_type;
mod fault;
mod function;
mod literals;
mod math;
mod named;
mod planner;
mod rounding;
mod session;
mod type_name;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use millstream_common::SqlSettings;

pub(crate) use analyzer::behind_shield;
pub(crate) use cast::text_out::spark_text;
pub(crate) use cast::udf::CAST;
pub(crate) use cast::{text_in, text_out};
pub(crate) use common_type::widest;
pub(crate) use literals::{narrow_literals, spell_literals};
pub(crate) use type_name::shown_type;

/// The functions of this topic, for registration by name.
pub(crate) fn scalar_functions(settings: &SqlSettings) -> Vec<Arc<ScalarUDF>> {
    let families = [
        math::ROWS,
        rounding::ROWS,
        bits::ROWS,
        compare::ROWS,
        conditional::ROWS,
        session::ROWS,
        cast::functions::ROWS,
    ];
    let rows = families.into_iter().flatten().map(|row| function::SparkFunction::udf(*row, settings.ansi));
    rows.chain(arithmetic::Arithmetic::all(settings.ansi)).chain(clock::functions(settings)).collect()
}

/// Planners of SQL operators; they come before DataFusion's.
pub(crate) fn expr_planners(settings: &SqlSettings) -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(planner::SparkOperators::new(settings))]
}

/// The rule that must run before all other analyzer rules.
pub(crate) fn analyzer_rules(settings: &SqlSettings) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![Arc::new(analyzer::SparkExpressions::new(settings))]
}

/// The rules that must run after all other optimizer rules.
pub(crate) fn optimizer_rules(settings: &SqlSettings) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    if settings.ansi { vec![Arc::new(analyzer::ShieldedFilters)] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
