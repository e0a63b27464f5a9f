//! Operators of SQL at planning time.
//!
//! Makes arithmetic and bit operators functions as soon as SQL is planned, so that the plan's types are Spark's from
//! the start and nothing is refused that Spark allows. The analyzer rule does the rest, and the same for plans that
//! do not come from SQL.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use millstream_common::SqlSettings;

use super::analyzer::{Functions, Rewriter};
use super::arithmetic::Op;
use super::bits;
use super::function::SparkFunction;

/// The planner.
#[derive(Debug)]
pub(crate) struct SparkOperators {
    settings: SqlSettings,
    functions: Functions,
}

impl SparkOperators {
    /// The planner under the session's settings.
    pub(crate) fn new(settings: &SqlSettings) -> Self {
        Self { settings: settings.clone(), functions: Functions::new(settings) }
    }
}

impl ExprPlanner for SparkOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let rewriter = Rewriter::new(schema, &self.settings, &self.functions);
        let arithmetic = match op {
            BinaryOperator::Plus => Op::Add,
            BinaryOperator::Minus => Op::Subtract,
            BinaryOperator::Multiply => Op::Multiply,
            BinaryOperator::Divide => Op::Divide,
            BinaryOperator::Modulo => Op::Remainder,
            BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide => Op::IntegralDivide,
            BinaryOperator::BitwiseAnd => return Ok(self.bits(bits::AND, op, left, right)),
            BinaryOperator::BitwiseOr => return Ok(self.bits(bits::OR, op, left, right)),
            BinaryOperator::Xor | BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => {
                return Ok(self.bits(bits::XOR, op, left, right));
            }
            BinaryOperator::PGBitwiseShiftLeft => return Ok(self.bits(bits::SHIFT_LEFT, op, left, right)),
            BinaryOperator::PGBitwiseShiftRight => return Ok(self.bits(bits::SHIFT_RIGHT, op, left, right)),
            _ => return self.comparison(op, left, right, schema, &rewriter),
        };
        Ok(match rewriter.arithmetic(arithmetic, left, right) {
            Ok(planned) => PlannerResult::Planned(planned),
            Err(sides) => PlannerResult::Original(RawBinaryExpr { op, left: sides.0, right: sides.1 }),
        })
    }
}

impl SparkOperators {
    fn bits(&self, name: &str, op: BinaryOperator, left: Expr, right: Expr) -> PlannerResult<RawBinaryExpr> {
        match bits::row(name) {
            Some(row) => {
                let udf = SparkFunction::udf(row, self.settings.ansi);
                PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![left, right])))
            }
            None => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        }
    }

    /// Comparisons that DataFusion would refuse for their types get their casts here.
    fn comparison(
        &self,
        op: BinaryOperator,
        left: Expr,
        right: Expr,
        schema: &DFSchema,
        rewriter: &Rewriter<'_>,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let operator = match op {
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::Spaceship => Operator::IsNotDistinctFrom,
            _ => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        };
        let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        };
        if BinaryTypeCoercer::new(&l, &operator, &r).get_input_types().is_ok() {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        }
        let (left, right) = rewriter.compared((left, l), (right, r))?;
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}
