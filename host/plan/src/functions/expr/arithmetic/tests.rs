use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array};
use arrow::datatypes::{Decimal128Type, Float64Type, Int32Type};

use super::*;

fn run(op: Op, mode: Mode, left: ArrayRef, right: ArrayRef) -> Result<ArrayRef> {
    let types = types_of(op, left.data_type(), right.data_type(), mode == Mode::Ansi).unwrap();
    let rows = left.len();
    kernel::evaluate(op, mode, &ColumnarValue::Array(left), &ColumnarValue::Array(right), &types.result)?
        .into_array(rows)
}

fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn doubles(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

#[test]
fn overflow_is_an_error_a_wrap_or_a_null_as_the_mode_says() {
    let (left, right) = (ints(&[Some(i32::MAX), None]), ints(&[Some(1), Some(1)]));
    let error = run(Op::Add, Mode::Ansi, Arc::clone(&left), Arc::clone(&right)).unwrap_err();
    assert!(error.to_string().contains("[ARITHMETIC_OVERFLOW]"), "{error}");
    let wrapped = run(Op::Add, Mode::Legacy, Arc::clone(&left), Arc::clone(&right)).unwrap();
    assert_eq!(wrapped.as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(i32::MIN), None]));
    let tried = run(Op::Add, Mode::Try, left, right).unwrap();
    assert_eq!(tried.as_primitive::<Int32Type>(), &Int32Array::from(vec![None, None]));
}

#[test]
fn dividing_by_zero_fails_only_where_both_operands_are_known() {
    let zero = doubles(&[Some(0.0), Some(-0.0)]);
    let error = run(Op::Divide, Mode::Ansi, doubles(&[Some(1.0), None]), Arc::clone(&zero)).unwrap_err();
    assert!(error.to_string().contains("[DIVIDE_BY_ZERO]"), "{error}");
    let unknown = run(Op::Divide, Mode::Ansi, doubles(&[None, None]), Arc::clone(&zero)).unwrap();
    assert_eq!(unknown.null_count(), 2);
    let legacy = run(Op::Divide, Mode::Legacy, doubles(&[Some(1.0), Some(2.0)]), zero).unwrap();
    assert_eq!(legacy.null_count(), 2);
    let error = run(Op::Remainder, Mode::Ansi, ints(&[Some(1)]), ints(&[Some(0)])).unwrap_err();
    assert!(error.to_string().contains("[DIVIDE_BY_ZERO]"), "{error}");
}

#[test]
fn the_remainder_follows_the_dividend_and_pmod_does_not() {
    let (left, right) = (ints(&[Some(-7), Some(-7), Some(i32::MIN)]), ints(&[Some(2), Some(-2), Some(-1)]));
    let rest = run(Op::Remainder, Mode::Ansi, Arc::clone(&left), Arc::clone(&right)).unwrap();
    assert_eq!(rest.as_primitive::<Int32Type>(), &Int32Array::from(vec![-1, -1, 0]));
    let positive = run(Op::PositiveRemainder, Mode::Ansi, left, right).unwrap();
    assert_eq!(positive.as_primitive::<Int32Type>(), &Int32Array::from(vec![1, -1, 0]));
}

#[test]
fn a_computed_nan_is_the_positive_one() {
    let result =
        run(Op::Subtract, Mode::Ansi, doubles(&[Some(f64::INFINITY)]), doubles(&[Some(f64::INFINITY)])).unwrap();
    assert!(!result.as_primitive::<Float64Type>().value(0).is_sign_negative());
}

#[test]
fn decimals_divide_to_sparks_scale() {
    let decimal = |values: Vec<i128>, p, s| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(p, s).unwrap())
    };
    let quotient = run(Op::Divide, Mode::Ansi, decimal(vec![2_250], 10, 3), decimal(vec![7], 8, 2)).unwrap();
    assert_eq!(quotient.data_type(), &DataType::Decimal128(21, 12));
    assert_eq!(quotient.as_primitive::<Decimal128Type>().value(0), 32_142_857_142_857);
}

#[test]
fn types_follow_the_operands() {
    let types = |op, l, r| types_of(op, &l, &r, true).map(|types| types.result);
    assert_eq!(types(Op::Divide, DataType::Int32, DataType::Int32), Some(DataType::Float64));
    assert_eq!(types(Op::Add, DataType::Int32, DataType::Int64), Some(DataType::Int64));
    assert_eq!(types(Op::Add, DataType::Int32, DataType::Decimal128(6, 2)), Some(DataType::Decimal128(13, 2)));
    assert_eq!(types(Op::Add, DataType::Decimal128(6, 2), DataType::Float64), Some(DataType::Float64));
    assert_eq!(types(Op::Add, DataType::Utf8, DataType::Int32), Some(DataType::Int64));
    assert_eq!(types(Op::IntegralDivide, DataType::Int32, DataType::Int32), Some(DataType::Int64));
    assert_eq!(types(Op::Add, DataType::Date32, DataType::Int32), Some(DataType::Date32));
    assert_eq!(types(Op::Subtract, DataType::Date32, DataType::Date32), None);
    assert_eq!(types(Op::Add, DataType::Boolean, DataType::Int32), None);
}
