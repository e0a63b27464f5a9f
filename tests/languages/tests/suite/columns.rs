//! Columns of input, and the comparison of what every language makes of them with what Rust makes of them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array, new_null_array,
};
use arrow::datatypes::{Field, Schema};
use arrow::json::ReaderBuilder;
use language_tests::{Guest, guests};

pub(crate) fn all() -> &'static [Guest] {
    guests().unwrap_or_else(|error| panic!("{error:#}"))
}

/// What the other languages are compared with.
pub(crate) fn measure() -> &'static Guest {
    &all()[0]
}

/// All guests but the measure.
pub(crate) fn others() -> &'static [Guest] {
    &all()[1..]
}

pub(crate) fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(crate) fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

/// Calls a scalar function in every language: values and faults are those of Rust.
pub(crate) fn same_scalar(function: &str, arguments: &[ArrayRef]) {
    let expected = measure().scalar(function, arguments).unwrap();
    for guest in others() {
        let found = guest.scalar(function, arguments).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(&found.values, &expected.values, "{function} in {}", guest.name);
        assert_eq!(found.faults, expected.faults, "{function} in {}", guest.name);
    }
}

/// The same of a table function.
pub(crate) fn same_table(function: &str, arguments: &[ArrayRef]) {
    let expected = measure().table(function, arguments).unwrap();
    for guest in others() {
        let found = guest.table(function, arguments).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(found.input_rows, expected.input_rows, "{function} in {}", guest.name);
        assert_eq!(found.columns, expected.columns, "{function} in {}", guest.name);
        assert_eq!(found.faults, expected.faults, "{function} in {}", guest.name);
    }
}

/// A column from JSON for the one argument of a function.
pub(crate) fn json(function: &str, rows: &[&str]) -> ArrayRef {
    let (_, signature) = measure().component().function(function).unwrap();
    let field = Field::clone(&signature.arguments[0]).with_name("x").with_nullable(true);
    let text: String = rows.iter().map(|row| format!(r#"{{"x":{row}}}"#)).collect();
    let mut reader = ReaderBuilder::new(Arc::new(Schema::new(vec![field]))).build(text.as_bytes()).unwrap();
    match reader.next() {
        Some(batch) => Arc::clone(batch.unwrap().column(0)),
        None => new_null_array(signature.arguments[0].data_type(), 0),
    }
}

/// For every `echo_` function of a plain type a column with the ends of its range and with nulls.
pub(crate) fn ranges() -> Vec<(&'static str, ArrayRef)> {
    let nines = 10i128.pow(38) - 1;
    let decimals = vec![Some(-nines), None, Some(-1), Some(0), Some(1), Some(1 << 64), Some(-(1 << 64)), Some(nines)];
    let moments: TimestampMicrosecondArray =
        vec![Some(i64::MIN), None, Some(-1), Some(0), Some(i64::MAX), Some(1_700_000_000_123_456)].into();
    let long = vec![
        Some(i64::MIN),
        Some(i64::MIN + 1),
        None,
        Some(-1),
        Some(9_007_199_254_740_993),
        Some(1_234_567_890_123_456_789),
        Some(i64::MAX),
    ];
    let text = vec![
        Some(""),
        None,
        Some("\0"),
        Some("日本語 🦀 e\u{301}"),
        Some("plain"),
        Some("\u{feff}mark"),
        Some("\u{10ffff}"),
    ];
    let binary = vec![Some(&b"\xff\xfe"[..]), None, Some(b""), Some(b"\0\0"), Some(b"\xc3\x28")];
    vec![
        ("echo_bool", Arc::new((0..21).map(|i| (i % 5 != 0).then_some(i % 2 == 0)).collect::<BooleanArray>())),
        ("echo_i8", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(0), Some(-1), Some(i8::MAX)]))),
        ("echo_u8", Arc::new(UInt8Array::from(vec![Some(0), None, Some(128), Some(u8::MAX)]))),
        ("echo_i16", Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(-1), Some(i16::MAX)]))),
        ("echo_u16", Arc::new(UInt16Array::from(vec![Some(0), None, Some(1 << 15), Some(u16::MAX)]))),
        ("echo_i32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(-1), Some(i32::MAX)]))),
        ("echo_u32", Arc::new(UInt32Array::from(vec![Some(0), None, Some(1 << 31), Some(u32::MAX)]))),
        ("echo_i64", Arc::new(Int64Array::from(long))),
        (
            "echo_u64",
            Arc::new(UInt64Array::from(vec![Some(0), None, Some(1 << 63), Some((1 << 53) + 1), Some(u64::MAX)])),
        ),
        (
            "echo_f32",
            Arc::new(Float32Array::from(vec![
                Some(f32::MIN),
                None,
                Some(-0.0),
                Some(f32::NAN),
                Some(f32::MIN_POSITIVE),
                Some(1e-45),
                Some(f32::NEG_INFINITY),
                Some(f32::INFINITY),
                Some(0.1),
            ])),
        ),
        (
            "echo_f64",
            Arc::new(Float64Array::from(vec![
                Some(f64::MIN),
                None,
                Some(-0.0),
                Some(f64::NAN),
                Some(5e-324),
                Some(f64::NEG_INFINITY),
                Some(f64::INFINITY),
                Some(0.1),
                Some(f64::MAX),
            ])),
        ),
        ("echo_decimal", Arc::new(Decimal128Array::from(decimals).with_precision_and_scale(38, 10).unwrap())),
        ("echo_utf8", Arc::new(StringArray::from(text))),
        ("echo_binary", Arc::new(BinaryArray::from(binary))),
        ("echo_date", Arc::new(Date32Array::from(vec![Some(i32::MIN), None, Some(-1), Some(0), Some(i32::MAX)]))),
        ("echo_local_timestamp", Arc::new(moments.clone())),
        ("echo_timestamp", Arc::new(moments.with_timezone("UTC"))),
    ]
}

/// The object `everything` of the plugin, as JSON.
pub(crate) fn everything(n: i64) -> String {
    let small = if n % 3 == 0 { "null".into() } else { format!("-{}", n % 128) };
    let text = if n % 2 == 0 { "null".into() } else { format!("\"ü{n}\"") };
    let numbers = if n % 5 == 0 { "[]".into() } else { format!("[{n},-{n},9223372036854775807]") };
    let at = format!("2024-01-0{}T00:00:00.000001Z", n % 9 + 1);
    format!(
        r#"{{"flag":{},"small":{small},"text":{text},"numbers":{numbers},"inner":{{"at":"{at}","bytes":"00ff"}}}}"#,
        n % 2 == 0
    )
}
