//! Numeric literals as Spark reads them: `1` an INT, `1L` a BIGINT, `1e3` a DOUBLE (and `1.5`, with the parser's
//! `parse_float_as_decimal`, a DECIMAL).
//!
//! Two passes around SQL planning, each to be run once: [`spell_literals`] over the parsed statement, which makes the
//! spellings that DataFusion cannot tell apart casts, and [`narrow_literals`] over the fresh plan. Neither belongs into
//! the analyzer: on a plan the spelling is gone, and a BIGINT made by a cast must stay one.

use crate::sql::call::call;
use std::ops::ControlFlow;

use super::named::rewrite_named;
use crate::functions::text::time::interval::whole_days_first;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, CeilFloorKind, ExactNumberInfo, Statement, UnaryOperator, Value, VisitMut,
    VisitorMut,
};

/// Rewrites what DataFusion's planner cannot tell apart or does not know: `5L` as a cast to BIGINT, `1e3` as a cast to
/// DOUBLE, `~x` as `bitwise_not(x)`, `!x` as `NOT x`, `-x` as `negative(x)`, `x << n` as `shiftleft(x, n)`, `floor(x, 2)` and `ceil(x, 2)` as function calls.
pub(crate) fn spell_literals(statement: &mut Statement) {
    let ControlFlow::<()>::Continue(()) = statement.visit(&mut Speller) else { return };
}

struct Speller;

impl VisitorMut for Speller {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let respelled = match expr {
            ast::Expr::Value(value) => respelled_number(value),
            ast::Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
                Some(call("bitwise_not", vec![expr.as_ref().clone()]))
            }
            ast::Expr::UnaryOp { op: UnaryOperator::BangNot, expr } => {
                Some(ast::Expr::UnaryOp { op: UnaryOperator::Not, expr: expr.clone() })
            }
            ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr }
                if !is_number(expr) && !matches!(expr.as_ref(), ast::Expr::Interval(_)) =>
            {
                Some(call("negative", vec![expr.as_ref().clone()]))
            }
            ast::Expr::BinaryOp { left, op, right } => {
                shift(op).map(|name| call(name, vec![left.as_ref().clone(), right.as_ref().clone()]))
            }
            ast::Expr::Floor { expr, field: CeilFloorKind::Scale(places) } => {
                Some(call("floor", vec![expr.as_ref().clone(), ast::Expr::Value(places.clone())]))
            }
            ast::Expr::Ceil { expr, field: CeilFloorKind::Scale(places) } => {
                Some(call("ceil", vec![expr.as_ref().clone(), ast::Expr::Value(places.clone())]))
            }
            ast::Expr::Function(call) => {
                type_beside_lambdas(call);
                None
            }
            _ => None,
        };
        if let Some(respelled) = respelled {
            *expr = respelled;
        }
        ControlFlow::Continue(())
    }
}

/// Makes the integers among the arguments of a call that takes a lambda INT by their text: the types of the lambda's parameters
/// are settled when it is planned, which is before [`narrow_literals`].
fn type_beside_lambdas(call: &mut ast::Function) {
    let ast::FunctionArguments::List(list) = &mut call.args else { return };
    let is_lambda = |argument: &ast::FunctionArg| {
        matches!(argument, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Lambda(_))))
    };
    if !list.args.iter().any(is_lambda) {
        return;
    }
    for argument in &mut list.args {
        let ControlFlow::<()>::Continue(()) = VisitMut::visit(argument, &mut Typer { depth: 0 }) else { return };
    }
}

/// Makes integers INT, but those of casts, which say what they are.
struct Typer {
    depth: usize,
}

impl VisitorMut for Typer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        self.depth += usize::from(matches!(expr, ast::Expr::Cast { .. }));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Cast { .. } => self.depth -= 1,
            ast::Expr::Value(value) if self.depth == 0 => {
                if let Value::Number(digits, false) = &value.value
                    && digits.parse::<i32>().is_ok()
                {
                    *expr = cast_of(value.clone(), ast::DataType::Int(None));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The function that an operator stands for.
fn shift(op: &BinaryOperator) -> Option<&'static str> {
    match op {
        BinaryOperator::PGBitwiseShiftLeft => Some("shiftleft"),
        BinaryOperator::PGBitwiseShiftRight => Some("shiftright"),
        _ => None,
    }
}

fn is_number(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

fn respelled_number(value: &ast::ValueWithSpan) -> Option<ast::Expr> {
    let Value::Number(number, long) = &value.value else { return None };
    let (spelled, data_type) = if *long {
        (Value::Number(number.clone(), false), ast::DataType::BigInt(None))
    } else if number.contains(['e', 'E']) {
        (Value::SingleQuotedString(number.clone()), ast::DataType::Double(ExactNumberInfo::None))
    } else {
        return None;
    };
    let mut inner = value.clone();
    inner.value = spelled;
    Some(cast_of(inner, data_type))
}

fn cast_of(value: ast::ValueWithSpan, data_type: ast::DataType) -> ast::Expr {
    let expr = Box::new(ast::Expr::Value(value));
    ast::Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}

/// Makes the integer literals of a plan that has just come from SQL INT where they fit, and intervals whole days first.
pub(crate) fn narrow_literals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let narrowed = plan.transform_up_with_subqueries(|plan| {
        if matches!(plan, LogicalPlan::Limit(_) | LogicalPlan::Values(_)) {
            return Ok(Transformed::no(plan));
        }
        let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
        let mut rewrite = |expr: Expr| expr.transform_up(narrow)?.transform_data(|expr| with_parameters(expr, &schema));
        plan.map_expressions(|expr| rewrite_named(expr, &names, &mut rewrite))?.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(narrowed.data)
}

/// Gives the parameters of lambdas the types that what they stand for has now.
fn with_parameters(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let has_lambda = expr.exists(|expr| Ok(matches!(expr, Expr::HigherOrderFunction(_))))?;
    if has_lambda { expr.resolve_lambda_variables(schema) } else { Ok(Transformed::no(expr)) }
}

fn narrow(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => Ok(match i32::try_from(value) {
            Ok(value) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(value)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata)),
        }),
        // Beyond BIGINT a literal is a decimal.
        Expr::Literal(ScalarValue::UInt64(Some(value)), metadata) => {
            let decimal =
                ScalarValue::Decimal128(Some(i128::from(value)), if value < 10_u64.pow(19) { 19 } else { 20 }, 0);
            Ok(Transformed::yes(Expr::Literal(decimal, metadata)))
        }
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), metadata) => {
            let interval = ScalarValue::IntervalMonthDayNano(Some(whole_days_first(interval)?));
            Ok(Transformed::yes(Expr::Literal(interval, metadata)))
        }
        other => Ok(Transformed::no(other)),
    }
}
