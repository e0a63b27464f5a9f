//! Functions with attributes, called as the exports of a component call them, but natively.

#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_lifetimes, reason = "tests")]

use millstream_sdk::prelude::*;
use millstream_sdk::private::{Batch, Call, Function, Plugin, ScalarOutput, Schema, TableOutput};

/// Plain arithmetic.
#[scalar_function]
fn add(a: i64, b: i32) -> i64 {
    a + i64::from(b)
}

/// Knows nulls.
#[scalar_function(name = "or_zero")]
fn or_else(x: Option<i64>) -> Option<i64> {
    if x == Some(1) { None } else { Some(x.unwrap_or(0)) }
}

/// Fails on rows.
#[scalar_function]
fn parsed(text: &str) -> Result<i64, std::num::ParseIntError> {
    text.parse()
}

/// Refuses calls.
#[scalar_function]
fn strict(text: &str) -> CallResult<i64> {
    Ok(text.parse::<i64>()?)
}

/// Borrows, with a name for the lifetime.
#[table_function(column = "part")]
fn parts<'a>(text: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(',')
}

/// A row.
#[derive(Row)]
struct Pair<'a> {
    key: &'a str,
    value: Option<i64>,
}

/// Rows of several columns, or an error for the argument row.
#[table_function(volatile)]
fn pairs(text: &str) -> Result<Vec<Pair<'_>>, String> {
    if text.is_empty() {
        return Err("nothing in it".into());
    }
    Ok(text.split(',').map(|key| Pair { key, value: key.parse().ok() }).collect())
}

/// An error in the middle.
#[table_function]
fn careful(x: i64) -> impl Iterator<Item = Result<i64, String>> {
    (0..3).map(move |n| if n == x { Err(format!("stopped at {n}")) } else { Ok(n) })
}

/// No row or one.
#[table_function]
fn positive(x: i64) -> Option<i64> {
    (x > 0).then_some(x)
}

/// Functions may live in modules.
mod inner {
    use millstream_sdk::prelude::*;

    /// Boxed.
    #[table_function]
    pub(super) fn boxed(x: bool) -> Box<dyn Iterator<Item = bool>> {
        Box::new([x, !x].into_iter())
    }
}

plugin!(add, or_else, parsed, strict, parts, pairs, careful, positive, inner::boxed);

fn function(name: &str) -> &'static Function {
    __MillstreamPlugin::FUNCTIONS.iter().find(|function| function.name == name).unwrap()
}

fn scalar(name: &str, batch: &Batch) -> Result<ScalarOutput, CallError> {
    let Call::Scalar(call) = function(name).call else { panic!("{name} is no scalar") };
    call(batch)
}

fn table(name: &str, batch: &Batch) -> TableOutput {
    let Call::Table(call) = function(name).call else { panic!("{name} is no table function") };
    call(batch).unwrap()
}

fn described(fill: fn(&mut Schema)) -> Vec<String> {
    let mut schema = Schema::default();
    fill(&mut schema);
    let shown = schema.fields.iter();
    shown.map(|f| format!("{} {}{} {}", f.name, f.format, if f.nullable { "?" } else { "" }, f.children)).collect()
}

fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn texts(texts: &[&str]) -> Batch {
    let mut offsets = vec![0];
    let mut end = 0;
    texts.iter().for_each(|text| {
        end += u32::try_from(text.len()).unwrap();
        offsets.push(end);
    });
    let rows = u32::try_from(texts.len()).unwrap();
    Batch { rows, buffers: vec![vec![], u32s(&offsets), texts.concat().into_bytes()] }
}

#[test]
fn descriptions_follow_the_rust_types() {
    assert_eq!(described(function("add").arguments), ["a l 0", "b i 0"]);
    assert_eq!(described(function("add").results), ["value l? 0"]);
    assert_eq!(described(function("or_zero").arguments), ["x l? 0"]);
    assert_eq!(described(function("parts").results), ["part u 0"]);
    assert_eq!(described(function("pairs").results), ["key u 0", "value l? 0"]);
    assert!(function("pairs").volatile && !function("parts").volatile);
}

#[test]
fn a_null_skips_the_function_unless_it_takes_options() {
    let ints = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let batch = Batch { rows: 3, buffers: vec![vec![0b101], i64s(&[1, 2, 3]), vec![0b011], ints(&[10, 20, 30])] };
    let output = scalar("add", &batch).unwrap();
    assert_eq!(output.values.buffers, [vec![0b001], i64s(&[11, 0, 0])]);

    let batch = Batch { rows: 3, buffers: vec![vec![0b101], i64s(&[1, 2, 3])] };
    assert_eq!(scalar("or_zero", &batch).unwrap().values.buffers, [vec![0b110], i64s(&[0, 0, 3])]);
}

#[test]
fn errors_are_of_rows_or_of_calls() {
    let batch = texts(&["7", "x", "9"]);
    let output = scalar("parsed", &batch).unwrap();
    assert_eq!(output.values.buffers, [vec![0b101], i64s(&[7, 0, 9])]);
    assert_eq!(output.row_errors, [(1, "invalid digit found in string".to_owned())]);
    assert_eq!(scalar("strict", &batch), Err(CallError::internal("invalid digit found in string")));
}

#[test]
fn table_functions_say_where_each_row_came_from() {
    let output = table("parts", &texts(&["a,b", "", "c"]));
    assert_eq!(output.input_rows, u32s(&[0, 0, 1, 2]));
    assert_eq!(output.rows, Batch { rows: 4, buffers: vec![vec![], u32s(&[0, 1, 2, 2, 3]), b"abc".to_vec()] });

    let output = table("pairs", &texts(&["a,1", "", "2"]));
    assert_eq!(output.row_errors, [(1, "nothing in it".to_owned())]);
    assert_eq!(output.input_rows, u32s(&[0, 0, 2]));
    let expected = vec![vec![], u32s(&[0, 1, 2, 3]), b"a12".to_vec(), vec![0b110], i64s(&[0, 1, 2])];
    assert_eq!(output.rows.buffers, expected);

    let three = Batch { rows: 3, buffers: vec![vec![], i64s(&[5, 2, 0])] };
    let output = table("careful", &three);
    assert_eq!(output.input_rows, u32s(&[0, 0, 0]), "a failed row keeps none of its rows");
    assert_eq!(output.row_errors, [(1, "stopped at 2".to_owned()), (2, "stopped at 0".to_owned())]);
    assert_eq!(table("positive", &three).input_rows, u32s(&[0, 1]));

    let bits = Batch { rows: 2, buffers: vec![vec![], vec![0b01]] };
    assert_eq!(table("boxed", &bits).rows, Batch { rows: 4, buffers: vec![vec![], vec![0b1001]] });
}

#[test]
fn functions_stay_ordinary() {
    assert_eq!((add(1, 2), or_else(None)), (3, Some(0)));
    assert_eq!(pairs("a,1").unwrap()[1].value, Some(1));
}
