//! Operators and special forms of dates and strings that the SQL planner hands over half-planned.
//!
//! Where it stands: an `ExprPlanner`, asked before the engine's own ones.
//!
//! Rule of its life: a timestamp moved by an interval stays the engine's own operation, so that plans can still read
//! it as a range; what the engine means differently (dates with numbers, dates with times of day, differences compared
//! with intervals, intervals with numbers) becomes a function.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::time::arithmetic::{DATE_MINUS_DATE, DATE_PLUS_INTERVAL};
use super::time::interval::{INTERVAL_AS_DURATION, INTERVAL_DIVIDED, INTERVAL_TIMES, WHOLE_DAYS_FIRST};

/// Plans `EXTRACT`, `SUBSTRING`, `OVERLAY`, `POSITION` and the operators on dates and intervals.
#[derive(Debug)]
pub(crate) struct TextPlanner {
    functions: HashMap<String, Arc<ScalarUDF>>,
}

impl TextPlanner {
    /// A planner that calls these functions.
    pub(crate) fn new(functions: &[Arc<ScalarUDF>]) -> Self {
        Self { functions: functions.iter().map(|f| (f.name().to_string(), Arc::clone(f))).collect() }
    }

    fn call(&self, name: &str, arguments: Vec<Expr>) -> Result<Expr> {
        match self.functions.get(name) {
            Some(function) => Ok(function.call(arguments)),
            None => internal_err!("the function `{name}` is not registered"),
        }
    }

    fn planned(&self, name: &str, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(self.call(name, arguments)?))
    }

    /// `left + right` or `left - right` of dates and times, `None` when the engine's own meaning is right.
    fn moved(&self, sign: i32, left: &Expr, right: &Expr, types: (&DataType, &DataType)) -> Result<Option<Expr>> {
        let name = if sign > 0 { "date_add" } else { "date_sub" };
        Ok(Some(match types {
            (DataType::Date32, DataType::Interval(_)) => {
                self.call(DATE_PLUS_INTERVAL, vec![left.clone(), right.clone(), lit(sign)])?
            }
            (DataType::Interval(_), DataType::Date32) if sign > 0 => {
                self.call(DATE_PLUS_INTERVAL, vec![right.clone(), left.clone(), lit(sign)])?
            }
            (DataType::Date32, number) if number.is_integer() => self.call(name, vec![left.clone(), right.clone()])?,
            (number, DataType::Date32) if number.is_integer() && sign > 0 => {
                self.call(name, vec![right.clone(), left.clone()])?
            }
            (DataType::Date32, DataType::Date32) if sign < 0 => {
                self.call(DATE_MINUS_DATE, vec![left.clone(), right.clone()])?
            }
            (DataType::Timestamp(_, _), DataType::Date32) if sign < 0 => {
                left.clone() - self.call("to_timestamp", vec![right.clone()])?
            }
            (DataType::Date32, DataType::Timestamp(_, _)) if sign < 0 => {
                self.call("to_timestamp", vec![left.clone()])? - right.clone()
            }
            // Sums of hours may make a day.
            (DataType::Interval(_), DataType::Interval(_)) => {
                let (left, right) = (left.clone(), right.clone());
                self.call(WHOLE_DAYS_FIRST, vec![if sign > 0 { left + right } else { left - right }])?
            }
            (DataType::Duration(_), DataType::Interval(_)) => {
                let right = self.call(INTERVAL_AS_DURATION, vec![right.clone()])?;
                if sign > 0 { left.clone() + right } else { left.clone() - right }
            }
            (DataType::Interval(_), DataType::Duration(_)) => {
                let left = self.call(INTERVAL_AS_DURATION, vec![left.clone()])?;
                if sign > 0 { left + right.clone() } else { left - right.clone() }
            }
            _ => return Ok(None),
        }))
    }

    /// An interval times a number or divided by one; `None` for everything else.
    fn scaled(
        &self,
        op: &BinaryOperator,
        operands: (&Expr, &Expr),
        types: (&DataType, &DataType),
    ) -> Result<Option<Expr>> {
        let (left, right) = operands;
        Ok(match (op, types) {
            (BinaryOperator::Multiply, (interval, number)) if is_interval(interval) && is_number(number) => {
                Some(self.call(INTERVAL_TIMES, vec![left.clone(), right.clone()])?)
            }
            (BinaryOperator::Multiply, (number, interval)) if is_interval(interval) && is_number(number) => {
                Some(self.call(INTERVAL_TIMES, vec![right.clone(), left.clone()])?)
            }
            (BinaryOperator::Divide, (interval, number)) if is_interval(interval) && is_number(number) => {
                Some(self.call(INTERVAL_DIVIDED, vec![left.clone(), right.clone()])?)
            }
            _ => None,
        })
    }
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_null()
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Spaceship
    )
}

impl ExprPlanner for TextPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        // Operands whose type is not known yet are none of these.
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let sign = match &expr.op {
            BinaryOperator::Plus => 1,
            BinaryOperator::Minus => -1,
            op if is_comparison(op) => {
                let duration = |e: Expr| self.call(INTERVAL_AS_DURATION, vec![e]);
                return Ok(PlannerResult::Original(match (&left, &right) {
                    (DataType::Duration(_), DataType::Interval(_)) => {
                        RawBinaryExpr { right: duration(expr.right)?, ..expr }
                    }
                    (DataType::Interval(_), DataType::Duration(_)) => {
                        RawBinaryExpr { left: duration(expr.left)?, ..expr }
                    }
                    _ => expr,
                }));
            }
            op => {
                return Ok(match self.scaled(op, (&expr.left, &expr.right), (&left, &right))? {
                    Some(planned) => PlannerResult::Planned(planned),
                    None => PlannerResult::Original(expr),
                });
            }
        };
        Ok(match self.moved(sign, &expr.left, &expr.right, (&left, &right))? {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(expr),
        })
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        self.planned("date_part", args)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        self.planned("substring", args)
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        self.planned("overlay", args)
    }

    fn plan_position(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        // Handed over as (whole, part); `locate` takes the part first.
        self.planned("instr", args)
    }
}
