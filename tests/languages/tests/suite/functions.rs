//! Scalar and table functions answer what Rust answers.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, Decimal128Array, Int64Array};
use arrow::datatypes::Int32Type;

use crate::columns::{all, json, measure, numbers, others, same_scalar, same_table, texts};

const LINES: [Option<&str>; 9] = [
    Some("to be or not"),
    Some(""),
    None,
    Some("  two  blanks "),
    Some("null and null"),
    Some("Ümläute ß 🦀 e\u{301}"),
    Some("tab\tis no blank\nnor a line"),
    Some("zzz"),
    Some("AbC-xyz0"),
];

#[test]
fn scalars_answer_what_rust_answers() {
    let few = || numbers([0, 1, -1, 2, 3, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1]);
    let holes = || -> ArrayRef { Arc::new(Int64Array::from(vec![Some(4), None, Some(5), None, Some(i64::MIN)])) };
    same_scalar("heat", &[few(), numbers([5, -7, 11, 1 << 60, i64::MIN, 3, 0, 1, 2])]);
    same_scalar("heat", &[holes(), numbers([1, 2, 3, 4, 5])]);
    same_scalar("or_zero", &[holes()]);
    same_scalar("null_if_odd", &[few()]);
    same_scalar("null_if_odd", &[holes()]);
    same_scalar("shout", &[texts(LINES)]);
    same_scalar("length", &[texts(LINES)]);
    let bytes = vec![Some(&b"\x00\x01\xff"[..]), None, Some(b""), Some(b"ab")];
    same_scalar("reversed", &[Arc::new(BinaryArray::from(bytes))]);
    let nines = 10i128.pow(38) - 1;
    let decimals = Decimal128Array::from(vec![Some(nines), None, Some(-nines), Some(0), Some(-15)]);
    same_scalar("negate", &[Arc::new(decimals.with_precision_and_scale(38, 10).unwrap())]);
    same_scalar("total", &[json("total", &["[1,null,2]", "null", "[]", "[null]", "[-9223372036854775808]"])]);
}

#[test]
fn a_function_without_arguments_gives_one_value_per_row() {
    for guest in all() {
        let outcome = guest.scalar_of("seven", 3, &[]).unwrap();
        assert_eq!(outcome.values.as_primitive::<Int32Type>().values(), &[7, 7, 7], "{}", guest.name);
    }
}

#[test]
fn tables_answer_what_rust_answers() {
    same_table("words", &[texts(LINES)]);
    same_table("numbered", &[texts(LINES)]);
    same_table("elements", &[json("elements", &["[1,null]", "null", "[]", "[3,-4,9223372036854775807]"])]);
    same_table("countdown", &[numbers([3, 0, 1, 500])]);
}

#[test]
fn a_batch_without_rows_gives_none() {
    for signature in measure().component().functions() {
        let arguments: Vec<_> =
            signature.arguments.iter().map(|field| arrow::array::new_empty_array(field.data_type())).collect();
        let name = &signature.name;
        if signature.kind == millstream_wasm::FunctionKind::Table {
            same_table(name, &arguments);
        } else {
            same_scalar(name, &arguments);
        }
    }
}

#[test]
fn rows_that_fail_are_named_with_the_same_words() {
    let nearly = [i64::MAX, 1, i64::MIN, 5];
    same_scalar("add", &[numbers(nearly), numbers([1, 2, -1, i64::MIN])]);
    same_scalar("picky", &[numbers([12, 13, 14, 13])]);
    same_table("countdown", &[numbers([2, -1, 1, i64::MIN])]);
    let faults = measure().scalar("add", &[numbers(nearly), numbers([1, 2, -1, i64::MIN])]).unwrap().faults;
    let told: Vec<_> = faults.iter().map(|fault| (fault.row, fault.error.as_str())).collect();
    let expected = [(0, "9223372036854775807 + 1 does not fit"), (2, "-9223372036854775808 + -1 does not fit")];
    assert!(told.iter().zip(expected).all(|(told, text)| told.0 == text.0 && told.1.contains(text.1)), "{told:?}");
}

#[test]
fn an_instance_that_is_taken_anew_for_every_call_answers_the_same() {
    let lines = [texts(LINES)];
    let expected = measure().scalar("shout", &lines).unwrap().values;
    for guest in others() {
        let anew = |limits: &mut millstream_wasm::PluginLimits| {
            limits.recycle_every_call = true;
            limits.rows_per_call = 2;
        };
        let slot = guest.slot(millstream_wasm::FaultPolicy::Fail, anew).unwrap();
        let found = slot.call_scalar("shout", LINES.len(), &lines).unwrap();
        assert_eq!(&found.values, &expected, "{}", guest.name);
        assert!(slot.take_metrics().instances >= 4, "{}", guest.name);
    }
}
