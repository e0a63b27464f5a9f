//! Keeping expressions that can fail away from rows that another condition excludes.
//!
//! Spark evaluates conditions row by row, left to right. Columnar AND and OR evaluate both sides, and the optimiser
//! merges filters as it likes. So what can fail is put into a CASE on the condition: the analyzer does it within an
//! expression, [`ShieldedFilters`] at the end of the optimiser for the conditions of a whole filter. Overflow of plain
//! sums and products is not guarded against: the price would be paid by nearly every condition.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::super::cast::udf::SparkCast;
use crate::functions::text;

/// Functions of this folder and its neighbours that can fail on a value; those of text and time say so themselves.
const FALLIBLE: &[&str] = &[
    "spark_divide",
    "div",
    "mod",
    "pmod",
    "getbit",
    "assert_true",
    "raise_error",
    "element_at",
    "array_element",
    "spark_array_element",
    "make_interval",
    "from_avro",
    "to_avro",
    "from_json",
    "from_csv",
    "from_protobuf",
    "to_protobuf",
    "url_decode",
    "to_number",
    "map",
    "map_from_arrays",
    "map_from_entries",
    "map_concat",
    "transform_keys",
    "str_to_map",
    "sequence",
    "slice",
    "array_insert",
    "array_repeat",
    "__array_sort_by",
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "decimal",
    "float",
    "double",
    "date",
    "timestamp",
];

/// Whether some row could make the expression fail.
pub(super) fn can_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let fallible = |e: &Expr| {
        Ok(match e {
            Expr::ScalarFunction(function) => {
                let cast = function.func.inner().downcast_ref::<SparkCast>().map(SparkCast::can_fail);
                let known = cast.or_else(|| text::can_fail(function, schema));
                known.unwrap_or_else(|| FALLIBLE.contains(&function.name()))
            }
            Expr::HigherOrderFunction(function) => FALLIBLE.contains(&function.name()),
            _ => false,
        })
    };
    expr.exists(fallible).unwrap_or(true)
}

/// `truth`, evaluated only where `open` is true, NULL elsewhere.
pub(super) fn shielded(open: Expr, truth: Expr) -> Expr {
    let case = Case::new(None, vec![(Box::new(open), Box::new(as_bit(truth)))], None);
    Expr::Case(case).eq(lit(1_i8))
}

/// A truth as 0 or 1. The optimiser turns a CASE over truths into AND and OR, which evaluate all branches for all rows;
/// a CASE over numbers it leaves alone.
pub(super) fn as_bit(truth: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(truth), DataType::Int8))
}

/// Whether the expression is already a CASE over [`as_bit`]s.
pub(super) fn is_shielded(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            matches!(left.as_ref(), Expr::Case(_))
                && matches!(right.as_ref(), Expr::Literal(ScalarValue::Int8(Some(1)), _))
        }
        _ => false,
    }
}

/// What a shielded condition is about: where it is true, this is true as well. Other conditions as they are.
pub(crate) fn behind_shield(expr: &Expr) -> &Expr {
    let Expr::BinaryExpr(BinaryExpr { left, .. }) = expr else { return expr };
    let Expr::Case(case) = left.as_ref() else { return expr };
    match case.when_then_expr.as_slice() {
        [(_, then)] if is_shielded(expr) => match then.as_ref() {
            Expr::Cast(Cast { expr: truth, .. }) => truth,
            _ => expr,
        },
        _ => expr,
    }
}

/// The optimiser rule that lets the conditions of a filter that cannot fail go first. To be the last rule.
#[derive(Debug, Default)]
pub(crate) struct ShieldedFilters;

impl OptimizerRule for ShieldedFilters {
    fn name(&self) -> &str {
        "spark_shielded_filters"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        let (fallible, safe): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(filter.predicate.clone())
            .into_iter()
            .partition(|expr| can_fail(expr, filter.input.schema()));
        let Some(open) = conjunction(safe.clone()) else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
        if fallible.iter().all(|expr| is_shielded_by(expr, &open)) || open.is_volatile() {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let guarded = fallible
            .into_iter()
            .map(|expr| if is_shielded_by(&expr, &open) { expr } else { shielded(open.clone(), expr) });
        let Some(predicate) = conjunction(safe.into_iter().chain(guarded)) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        Filter::try_new(predicate, filter.input).map(|filter| Transformed::yes(LogicalPlan::Filter(filter)))
    }
}

/// Whether the expression is a shield whose condition is `open`.
fn is_shielded_by(expr: &Expr, open: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, .. }) = expr else { return false };
    let Expr::Case(case) = left.as_ref() else { return false };
    is_shielded(expr) && matches!(case.when_then_expr.as_slice(), [(when, _)] if when.as_ref() == open)
}
