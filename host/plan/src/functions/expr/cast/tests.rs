use arrow::array::{
    BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};

use super::super::fault::raise;
use super::*;

const ANSI: Rules = Rules { mode: Mode::Ansi, ansi: true, today: 0 };
const TRY: Rules = Rules { mode: Mode::Try, ansi: true, today: 0 };
const LEGACY: Rules = Rules { mode: Mode::Legacy, ansi: false, today: 0 };

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn error_of(array: &ArrayRef, to: &DataType) -> String {
    raise(cast_array(array, to, ANSI).unwrap_err()).to_string()
}

fn assert_cast(array: ArrayRef, expected: impl Array + 'static, rules: Rules) {
    let expected: ArrayRef = Arc::new(expected);
    assert_eq!(&cast_array(&array, expected.data_type(), rules).unwrap(), &expected);
}

#[test]
fn a_malformed_text_fails_in_ansi_mode_and_is_null_otherwise() {
    let array = texts(&["1", "x"]);
    let error = error_of(&array, &DataType::Int32);
    assert!(error.contains("[CAST_INVALID_INPUT] the value 'x' of type STRING cannot be cast to INT"), "{error}");
    assert_cast(array, Int32Array::from(vec![Some(1), None]), TRY);
    assert_cast(texts(&["12x", " 8 ", "3.9", "0x1F"]), Int32Array::from(vec![None, Some(8), Some(3), None]), LEGACY);
}

#[test]
fn a_double_is_cut_towards_zero_and_checked() {
    let array: ArrayRef = Arc::new(Float64Array::from(vec![3.99, -3.99, 2_147_483_647.9]));
    assert_cast(array, Int32Array::from(vec![3, -3, i32::MAX]), ANSI);
    for bad in [1e12, f64::NAN, f64::NEG_INFINITY] {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![bad]));
        assert!(error_of(&array, &DataType::Int32).contains("[CAST_OVERFLOW]"));
    }
    let array: ArrayRef = Arc::new(Float64Array::from(vec![1e12, f64::NAN, -1e12, 300.0]));
    assert_cast(Arc::clone(&array), Int32Array::from(vec![i32::MAX, 0, i32::MIN, 300]), LEGACY);
    assert_cast(array, Int8Array::from(vec![-1, 0, 0, 44]), LEGACY);
}

#[test]
fn narrowing_an_integer_is_checked_or_wraps() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![300]));
    assert!(error_of(&array, &DataType::Int8).contains("[CAST_OVERFLOW]"));
    assert_cast(Arc::clone(&array), Int8Array::from(vec![44]), LEGACY);
    assert_cast(array, Int8Array::from(vec![None]), TRY);
}

#[test]
fn decimals_round_half_up_and_refuse_what_does_not_fit() {
    let decimal = |value: i128| Decimal128Array::from(vec![value]).with_precision_and_scale(10, 2).unwrap();
    assert_cast(Arc::new(Float64Array::from(vec![0.005])), decimal(1), ANSI);
    assert_cast(Arc::new(Float64Array::from(vec![123_456.785])), decimal(12_345_679), ANSI);
    assert_cast(texts(&[" -1.005 "]), decimal(-101), ANSI);
    assert_cast(Arc::new(BooleanArray::from(vec![true])), decimal(100), ANSI);
    let large: ArrayRef = Arc::new(Int64Array::from(vec![100_000_000]));
    assert!(error_of(&large, &DataType::Decimal128(10, 2)).contains("[NUMERIC_VALUE_OUT_OF_RANGE]"));
    assert_cast(Arc::new(decimal(-199)), Int32Array::from(vec![-1]), ANSI);
    assert_cast(Arc::new(decimal(-199)), Float64Array::from(vec![-1.99]), ANSI);
}

#[test]
fn timestamps_become_seconds_and_days_with_floors() {
    let before: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("UTC"));
    assert_cast(Arc::clone(&before), Int64Array::from(vec![-1]), ANSI);
    assert_cast(Arc::clone(&before), Date32Array::from(vec![-1]), ANSI);
    assert_cast(before, StringArray::from(vec!["1969-12-31 23:59:59.999999"]), ANSI);
    assert_cast(
        Arc::new(Float64Array::from(vec![1.5])),
        TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC"),
        ANSI,
    );
    assert_cast(
        Arc::new(Date32Array::from(vec![1])),
        TimestampMicrosecondArray::from(vec![86_400_000_000]).with_timezone("UTC"),
        ANSI,
    );
}

#[test]
fn decimal_seconds_are_cut_to_microseconds_and_too_many_seconds_are_the_last_moment() {
    let moments = |micros: Vec<i64>| TimestampMicrosecondArray::from(micros).with_timezone("UTC");
    let fine = Decimal128Array::from(vec![1_999_999_999, -1_999_999_999]).with_precision_and_scale(20, 9).unwrap();
    assert_cast(Arc::new(fine), moments(vec![1_999_999, -1_999_999]), ANSI);
    let coarse = Decimal128Array::from(vec![15]).with_precision_and_scale(10, 1).unwrap();
    assert_cast(Arc::new(coarse), moments(vec![1_500_000]), ANSI);
    assert_cast(
        Arc::new(Int64Array::from(vec![i64::MAX, -1, i64::MIN])),
        moments(vec![i64::MAX, -1_000_000, i64::MIN]),
        ANSI,
    );
}

#[test]
fn casts_that_spark_does_not_know_are_refused() {
    assert!(!can_cast(&DataType::Date32, &DataType::Int32, true));
    assert!(!can_cast(&DataType::Boolean, &timestamp(), true));
    assert!(can_cast(&DataType::Boolean, &timestamp(), false));
    assert!(!can_cast(&DataType::Binary, &DataType::Int32, true));
}

#[test]
fn items_of_arrays_are_cast() {
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([Some(vec![Some(1), None])]));
    let to = DataType::new_list(DataType::Utf8, true);
    let cast = cast_array(&list, &to, ANSI).unwrap();
    assert_eq!(cast.as_list::<i32>().value(0).as_string::<i32>(), &StringArray::from(vec![Some("1"), None]));
}

#[test]
fn hostile_texts_are_refused_without_harm() {
    let hostile =
        ["1e2147483647", "-1e-2147483648", "9".repeat(400).as_str(), "٣", "+", "1e", "\u{0}1\u{0}", "T", ":", "-T"]
            .map(str::to_owned);
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(hostile));
    for to in [
        DataType::Int64,
        DataType::Float64,
        DataType::Decimal128(38, 38),
        DataType::Date32,
        timestamp(),
        DataType::Boolean,
    ] {
        let cast = cast_array(&array, &to, TRY).unwrap();
        assert_eq!(cast.len(), array.len(), "{to}");
    }
}
