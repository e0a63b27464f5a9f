//! The column kernels behind [`super::Arithmetic`].

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray, PrimitiveBuilder,
};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr_common::datum::apply;

use super::super::decimal_math::{DecimalArithmetic, DecimalOp};
use super::super::fault::{Mode, decimal_overflow, division_by_zero, fault, overflow, raise};
use super::super::type_name::shown_type;
use super::Op;

type Kernel = std::result::Result<ArrayRef, ArrowError>;

/// Evaluates the operation; operands have the types of [`super::types_of`].
pub(super) fn evaluate(
    op: Op,
    mode: Mode,
    left: &ColumnarValue,
    right: &ColumnarValue,
    result: &DataType,
) -> Result<ColumnarValue> {
    let (left_type, right_type) = (left.data_type(), right.data_type());
    if left_type.is_null() || right_type.is_null() {
        return null_of(result, left, right);
    }
    apply(left, right, |l, r| match (&left_type, &right_type) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => decimals(op, mode, l, r, result),
        (DataType::Date32, _) | (_, DataType::Date32) => dates(op, mode, l, r),
        (t, _) if t.is_floating() => floats(op, mode, l, r),
        (t, _) if t.is_integer() => integers(op, mode, l, r),
        (l, r) => Err(fault(format!("`{op:?}` cannot be applied to {} and {}", shown_type(l), shown_type(r)))),
    })
    .map_err(unwrapped)
}

fn unwrapped(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::ArrowError(arrow, _) => raise(*arrow),
        other => other,
    }
}

fn null_of(result: &DataType, left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue> {
    let null = datafusion::common::ScalarValue::try_from(result)?;
    match (left, right) {
        (ColumnarValue::Array(array), _) | (_, ColumnarValue::Array(array)) => {
            Ok(ColumnarValue::Array(arrow::array::new_null_array(result, array.len())))
        }
        _ => Ok(ColumnarValue::Scalar(null)),
    }
}

/// The value of a row, `None` for NULL; a scalar answers every row with its only value.
struct Operand<'a, T: ArrowPrimitiveType> {
    values: &'a PrimitiveArray<T>,
    scalar: bool,
}

impl<'a, T: ArrowPrimitiveType> Operand<'a, T> {
    fn of(datum: &'a dyn Datum) -> Self {
        let (array, scalar) = datum.get();
        Self { values: array.as_primitive::<T>(), scalar }
    }

    #[inline]
    fn at(&self, row: usize) -> Option<T::Native> {
        let row = if self.scalar { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

fn rows(left: &dyn Datum, right: &dyn Datum) -> usize {
    match (left.get(), right.get()) {
        ((_, true), (right, _)) => right.len(),
        ((left, false), _) => left.len(),
    }
}

/// Row by row, for the paths that give NULL or need an exact error.
fn by_row<L, R, O>(
    left: &dyn Datum,
    right: &dyn Datum,
    operation: impl Fn(L::Native, R::Native) -> std::result::Result<Option<O::Native>, ArrowError>,
) -> std::result::Result<PrimitiveArray<O>, ArrowError>
where
    L: ArrowPrimitiveType,
    R: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let count = rows(left, right);
    let (left, right) = (Operand::<L>::of(left), Operand::<R>::of(right));
    let mut builder = PrimitiveBuilder::<O>::with_capacity(count);
    for row in 0..count {
        match (left.at(row), right.at(row)) {
            (Some(l), Some(r)) => builder.append_option(operation(l, r)?),
            _ => builder.append_null(),
        }
    }
    Ok(builder.finish())
}

fn integers(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum) -> Kernel {
    match (op, mode) {
        (Op::Add, Mode::Ansi) => return named(numeric::add(left, right), left),
        (Op::Subtract, Mode::Ansi) => return named(numeric::sub(left, right), left),
        (Op::Multiply, Mode::Ansi) => return named(numeric::mul(left, right), left),
        (Op::Divide | Op::IntegralDivide, Mode::Ansi) => return named(numeric::div(left, right), left),
        (Op::Remainder, Mode::Ansi) => return named(numeric::rem(left, right), left),
        (Op::Add, Mode::Legacy) => return numeric::add_wrapping(left, right),
        (Op::Subtract, Mode::Legacy) => return numeric::sub_wrapping(left, right),
        (Op::Multiply, Mode::Legacy) => return numeric::mul_wrapping(left, right),
        _ => {}
    }
    match left.get().0.data_type() {
        DataType::Int8 => integers_by_row::<Int8Type>(op, mode, left, right),
        DataType::Int16 => integers_by_row::<Int16Type>(op, mode, left, right),
        DataType::Int32 => integers_by_row::<Int32Type>(op, mode, left, right),
        DataType::Int64 => integers_by_row::<Int64Type>(op, mode, left, right),
        other => Err(fault(format!("arithmetic on {} is not known", shown_type(other)))),
    }
}

/// Names the type in an overflow error.
fn named(result: Kernel, operand: &dyn Datum) -> Kernel {
    result.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) => overflow(&shown_type(operand.get().0.data_type())),
        other => other,
    })
}

fn integers_by_row<T: ArrowPrimitiveType>(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum) -> Kernel {
    let divides = matches!(op, Op::Divide | Op::IntegralDivide | Op::Remainder | Op::PositiveRemainder);
    Ok(Arc::new(by_row::<T, T, T>(left, right, |l, r| {
        if divides && r.is_zero() {
            return if mode.fails() { Err(division_by_zero()) } else { Ok(None) };
        }
        Ok(match op {
            Op::Add => l.add_checked(r).ok(),
            Op::Subtract => l.sub_checked(r).ok(),
            Op::Multiply => l.mul_checked(r).ok(),
            Op::Divide | Op::IntegralDivide if mode == Mode::Legacy => Some(l.div_wrapping(r)),
            Op::Divide | Op::IntegralDivide => l.div_checked(r).ok(),
            Op::Remainder => Some(l.mod_wrapping(r)),
            Op::PositiveRemainder => Some(positive_remainder(l, r)),
        })
    })?))
}

fn positive_remainder<N: ArrowNativeTypeOp>(value: N, divisor: N) -> N {
    let rest = value.mod_wrapping(divisor);
    if rest.is_lt(N::ZERO) { rest.add_wrapping(divisor).mod_wrapping(divisor) } else { rest }
}

fn floats(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum) -> Kernel {
    match left.get().0.data_type() {
        DataType::Float32 => floats_of::<Float32Type>(op, mode, left, right, f32::NAN, |v| v.is_nan()),
        _ => floats_of::<Float64Type>(op, mode, left, right, f64::NAN, |v| v.is_nan()),
    }
}

fn floats_of<T: ArrowPrimitiveType>(
    op: Op,
    mode: Mode,
    left: &dyn Datum,
    right: &dyn Datum,
    nan: T::Native,
    is_nan: impl Fn(T::Native) -> bool,
) -> Kernel {
    let result = match op {
        Op::Add => numeric::add(left, right)?,
        Op::Subtract => numeric::sub(left, right)?,
        Op::Multiply => numeric::mul(left, right)?,
        Op::Divide | Op::IntegralDivide | Op::Remainder | Op::PositiveRemainder => {
            let (divisors, _) = right.get();
            let any_zero = divisors.as_primitive::<T>().values().iter().any(|value| is_zero(*value));
            if any_zero || op == Op::PositiveRemainder {
                return floats_by_row::<T>(op, mode, left, right);
            }
            if op == Op::Remainder { numeric::rem(left, right)? } else { numeric::div(left, right)? }
        }
    };
    // One NaN only: the sign of a computed NaN differs between processors and would order it below all numbers.
    let values = result.as_primitive::<T>().clone();
    drop(result);
    let canonical = |value: T::Native| if is_nan(value) { nan } else { value };
    Ok(Arc::new(match values.unary_mut(canonical) {
        Ok(values) => values,
        Err(values) => values.unary::<_, T>(canonical),
    }))
}

/// Zero of either sign.
fn is_zero<N: ArrowNativeTypeOp>(value: N) -> bool {
    value.is_zero() || value.is_eq(N::ZERO.neg_wrapping())
}

fn floats_by_row<T: ArrowPrimitiveType>(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum) -> Kernel {
    Ok(Arc::new(by_row::<T, T, T>(left, right, |l, r| {
        if is_zero(r) {
            return if mode.fails() { Err(division_by_zero()) } else { Ok(None) };
        }
        Ok(Some(match op {
            Op::Remainder => l.mod_wrapping(r),
            Op::PositiveRemainder => positive_remainder(l, r),
            _ => l.div_wrapping(r),
        }))
    })?))
}

fn dates(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum) -> Kernel {
    let days_first = left.get().0.data_type() == &DataType::Date32;
    let sum = |day: i32, count: i32| {
        let result = if op == Op::Subtract { day.checked_sub(count) } else { day.checked_add(count) };
        match (result, mode) {
            (Some(day), _) => Ok(Some(day)),
            (None, Mode::Ansi) => Err(overflow("DATE")),
            (None, Mode::Try) => Ok(None),
            (None, Mode::Legacy) => {
                Ok(Some(if op == Op::Subtract { day.wrapping_sub(count) } else { day.wrapping_add(count) }))
            }
        }
    };
    Ok(Arc::new(if days_first {
        by_row::<Date32Type, Int32Type, Date32Type>(left, right, sum)?
    } else {
        by_row::<Int32Type, Date32Type, Date32Type>(left, right, |count, day| sum(day, count))?
    }))
}

fn decimals(op: Op, mode: Mode, left: &dyn Datum, right: &dyn Datum, result: &DataType) -> Kernel {
    let scale_of = |datum: &dyn Datum| match datum.get().0.data_type() {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    };
    let divides = !matches!(op, Op::Add | Op::Subtract | Op::Multiply);
    let by_zero = |divisor: i128| {
        if divides && divisor == 0 { if mode.fails() { Err(division_by_zero()) } else { Ok(true) } } else { Ok(false) }
    };
    let digits = match result {
        DataType::Decimal128(precision, scale) => (*precision, *scale),
        _ => (38, 0),
    };
    let kind = match op {
        Op::Add => DecimalOp::Add,
        Op::Subtract => DecimalOp::Subtract,
        Op::Multiply => DecimalOp::Multiply,
        Op::Divide | Op::IntegralDivide => DecimalOp::Divide,
        Op::Remainder => DecimalOp::Remainder,
        Op::PositiveRemainder => DecimalOp::PositiveRemainder,
    };
    let arithmetic = DecimalArithmetic::new(kind, scale_of(left), scale_of(right), digits);
    if op == Op::IntegralDivide {
        return Ok(Arc::new(by_row::<Decimal128Type, Decimal128Type, Int64Type>(left, right, |l, r| {
            if by_zero(r)? {
                return Ok(None);
            }
            let quotient = arithmetic.integral_quotient(l, r);
            match (quotient.and_then(|value| i64::try_from(value).ok()), mode) {
                (None, Mode::Ansi) => Err(overflow("BIGINT")),
                (None, Mode::Legacy) => Ok(quotient.map(|value| value as i64)),
                (value, _) => Ok(value),
            }
        })?));
    }
    let values = by_row::<Decimal128Type, Decimal128Type, Decimal128Type>(left, right, |l, r| {
        if by_zero(r)? {
            return Ok(None);
        }
        match arithmetic.evaluate(l, r) {
            None if mode.fails() => Err(decimal_overflow("of the result", digits.0, digits.1)),
            value => Ok(value),
        }
    })?;
    Ok(Arc::new(values.with_precision_and_scale(digits.0, digits.1)?))
}
