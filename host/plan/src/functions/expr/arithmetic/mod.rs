//! `+ - * / % DIV`, `pmod` and their `try_` forms as scalar functions.
//!
//! The expression planner and the analyzer rule put [`Arithmetic`] where a plan has an arithmetic operator, so that
//! overflow and division by zero are Spark's. Integers and doubles run on Arrow's kernels; decimals on
//! [`super::decimal_math`]. Operators on intervals and differences of dates and timestamps stay DataFusion's.

mod kernel;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::common_type::{digits, is_string, numeric};
use super::decimal_type;
use super::fault::Mode;
use super::type_name::shown_type;

/// An arithmetic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegralDivide,
    Remainder,
    PositiveRemainder,
}

impl Op {
    /// The operation of an operator, when it is one.
    pub(crate) fn of(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Plus => Op::Add,
            Operator::Minus => Op::Subtract,
            Operator::Multiply => Op::Multiply,
            Operator::Divide => Op::Divide,
            Operator::IntegerDivide => Op::IntegralDivide,
            Operator::Modulo => Op::Remainder,
            _ => return None,
        })
    }

    fn symbol(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::IntegralDivide => "div",
            Op::Remainder => "%",
            Op::PositiveRemainder => "pmod",
        }
    }

    fn name(self, tried: bool) -> &'static str {
        match (self, tried) {
            (Op::Add, false) => "spark_add",
            (Op::Subtract, false) => "spark_subtract",
            (Op::Multiply, false) => "spark_multiply",
            (Op::Divide, false) => "spark_divide",
            (Op::IntegralDivide, false) => "div",
            (Op::Remainder, false) => "mod",
            (Op::PositiveRemainder, false) => "pmod",
            (Op::Add, true) => "try_add",
            (Op::Subtract, true) => "try_subtract",
            (Op::Multiply, true) => "try_multiply",
            (Op::Divide, true) => "try_divide",
            (Op::IntegralDivide, true) => "try_div",
            (Op::Remainder, true) => "try_mod",
            (Op::PositiveRemainder, true) => "try_pmod",
        }
    }
}

/// The types that the operands are brought to, and the result's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) left: DataType,
    pub(crate) right: DataType,
    pub(crate) result: DataType,
}

/// Spark's types of an operation; `None` when it is none of the operations here (intervals, dates).
pub(crate) fn types_of(op: Op, left: &DataType, right: &DataType, ansi: bool) -> Option<Types> {
    let same = |t: DataType, result: DataType| Some(Types { left: t.clone(), right: t, result });
    let date = |l: DataType, r: DataType| Some(Types { left: l, right: r, result: DataType::Date32 });
    match (op, left, right) {
        (Op::Add | Op::Subtract, DataType::Date32, r) if r.is_integer() => {
            return date(DataType::Date32, DataType::Int32);
        }
        (Op::Add, l, DataType::Date32) if l.is_integer() => return date(DataType::Int32, DataType::Date32),
        _ => {}
    }
    // A string is read as the kind of number it stands beside; a NULL takes the other's type.
    let read = |own: &DataType, other: &DataType| -> Option<DataType> {
        if own.is_null() {
            return Some(if other.is_numeric() { other.clone() } else { DataType::Float64 });
        }
        if is_string(own) {
            let beside_number = other.is_numeric() || other.is_null() || is_string(other);
            return beside_number.then(|| if ansi && other.is_integer() { DataType::Int64 } else { DataType::Float64 });
        }
        own.is_numeric().then(|| own.clone())
    };
    let (left, right) = (read(left, right)?, read(right, left)?);
    let decimal = |t: &DataType| matches!(t, DataType::Decimal128(..) | DataType::Decimal256(..));
    let as_decimals = (decimal(&left) || decimal(&right)) && !left.is_floating() && !right.is_floating();
    if as_decimals {
        let (l, r) = (digits(&left)?, digits(&right)?);
        let result = match op {
            Op::Add | Op::Subtract => decimal_type::sum(l, r),
            Op::Multiply => decimal_type::product(l, r),
            Op::Divide => decimal_type::quotient(l, r),
            Op::Remainder | Op::PositiveRemainder => decimal_type::remainder(l, r),
            Op::IntegralDivide => (20, 0),
        };
        let result = if op == Op::IntegralDivide { DataType::Int64 } else { DataType::Decimal128(result.0, result.1) };
        return Some(Types { left: DataType::Decimal128(l.0, l.1), right: DataType::Decimal128(r.0, r.1), result });
    }
    match op {
        Op::Divide => same(DataType::Float64, DataType::Float64),
        Op::IntegralDivide => same(DataType::Int64, DataType::Int64),
        _ => {
            let common = numeric(&left, &right, ansi)?;
            same(common.clone(), common)
        }
    }
}

/// An arithmetic operation as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arithmetic {
    op: Op,
    mode: Mode,
    ansi: bool,
    signature: Signature,
}

impl Arithmetic {
    /// The function; `tried` for the `try_` form.
    pub(crate) fn udf(op: Op, ansi: bool, tried: bool) -> Arc<ScalarUDF> {
        let mode = if tried { Mode::Try } else { Mode::of(ansi) };
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { op, mode, ansi, signature }))
    }

    /// All forms, for registration by name.
    pub(crate) fn all(ansi: bool) -> Vec<Arc<ScalarUDF>> {
        let ops =
            [Op::Add, Op::Subtract, Op::Multiply, Op::Divide, Op::IntegralDivide, Op::Remainder, Op::PositiveRemainder];
        ops.into_iter().flat_map(|op| [false, true].map(|tried| Self::udf(op, ansi, tried))).collect()
    }

    fn types(&self, arg_types: &[DataType]) -> Result<Types> {
        let [left, right] = arg_types else {
            return plan_err!("`{}` takes 2 arguments, not {}", self.name(), arg_types.len());
        };
        match types_of(self.op, left, right, self.ansi) {
            Some(types) => Ok(types),
            None => plan_err!(
                "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] `{}` cannot be applied to {} and {}",
                self.op.symbol(),
                shown_type(left),
                shown_type(right)
            ),
        }
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.op.name(self.mode == Mode::Try)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let shown: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        let function = self.mode == Mode::Try || self.op == Op::PositiveRemainder;
        Ok(match (function, shown.as_slice()) {
            (false, [left, right]) => format!("({left} {} {right})", self.op.symbol()),
            _ => format!("{}({})", self.name(), shown.join(", ")),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let types = self.types(arg_types)?;
        Ok(vec![types.left, types.right])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.types(arg_types)?.result)
    }

    fn return_field_from_args(
        &self,
        args: datafusion::logical_expr::ReturnFieldArgs<'_>,
    ) -> Result<arrow::datatypes::FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let result = self.return_type(&types)?;
        let wraps = self.mode == Mode::Legacy && result.is_integer() && self.never_divides();
        let may_drop = !self.mode.fails() && !wraps;
        let nullable = may_drop || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(arrow::datatypes::Field::new(self.name(), result, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("`{}` takes 2 arguments, not {}", self.name(), args.args.len());
        };
        kernel::evaluate(self.op, self.mode, left, right, args.return_field.data_type())
    }
}

impl Arithmetic {
    fn never_divides(&self) -> bool {
        matches!(self.op, Op::Add | Op::Subtract | Op::Multiply)
    }
}

#[cfg(test)]
mod tests;
