//! Every type, over its full range, through real guests; nulls; rows and columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
    StringViewArray, StructArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::json::ReaderBuilder;
use millstream_wasm::{FaultPolicy, PluginSlot};

use crate::components::{numbers, read, slot};

fn echo(slot: &PluginSlot, function: &str, column: ArrayRef) {
    let component = slot.component();
    let (_, signature) = component.function(function).unwrap();
    let column = arrow::compute::cast(&column, signature.arguments[0].data_type()).unwrap();
    for (offset, len) in [(0, column.len()), (1, column.len() - 1), (2, column.len() - 2), (0, 0)] {
        let slice = column.slice(offset, len);
        let outcome = slot.call_scalar(function, len, &[Arc::clone(&slice)]).unwrap();
        assert_eq!(&outcome.values, &slice, "{function} from {offset}");
    }
}

#[test]
fn every_type_comes_back_over_its_full_range() {
    let slot = slot("echo", FaultPolicy::Fail);
    let echo = |function: &str, column: ArrayRef| echo(&slot, function, column);
    echo("echo_bool", Arc::new((0..21).map(|i| (i % 5 != 0).then_some(i % 2 == 0)).collect::<BooleanArray>()));
    echo("echo_i8", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(0), Some(-1), Some(i8::MAX)])));
    echo("echo_u8", Arc::new(UInt8Array::from(vec![Some(0), None, Some(u8::MAX)])));
    echo("echo_i16", Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])));
    echo("echo_u16", Arc::new(UInt16Array::from(vec![Some(0), None, Some(u16::MAX)])));
    echo("echo_i32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])));
    echo("echo_u32", Arc::new(UInt32Array::from(vec![Some(0), None, Some(u32::MAX)])));
    let beyond_doubles = 9_007_199_254_740_993;
    echo("echo_i64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(beyond_doubles), Some(i64::MAX)])));
    echo("echo_u64", Arc::new(UInt64Array::from(vec![Some(0), None, Some(u64::MAX)])));
    echo("echo_f32", Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(-0.0), Some(f32::INFINITY)])));
    echo("echo_f64", Arc::new(Float64Array::from(vec![Some(f64::MIN_POSITIVE), None, Some(f64::NAN), Some(f64::MAX)])));
    let nines = 10i128.pow(38) - 1;
    let decimals = Decimal128Array::from(vec![Some(-nines), None, Some(1), Some(nines)]);
    echo("echo_decimal", Arc::new(decimals.with_precision_and_scale(38, 10).unwrap()));
    let texts = vec![Some(""), None, Some("\0"), Some("日本語 🦀"), Some("plain")];
    echo("echo_utf8", Arc::new(StringArray::from(texts.clone())));
    echo("echo_utf8", Arc::new(StringViewArray::from(texts.clone())));
    echo("echo_str", Arc::new(StringArray::from(texts)));
    let binary = vec![Some(&b"\xff\xfe"[..]), None, Some(b""), Some(b"\0\0")];
    echo("echo_binary", Arc::new(BinaryArray::from(binary.clone())));
    echo("echo_bytes", Arc::new(BinaryArray::from(binary)));
    echo("echo_date", Arc::new(Date32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])));
    let moments = TimestampMicrosecondArray::from(vec![Some(i64::MIN), None, Some(-1), Some(i64::MAX)]);
    echo("echo_local_timestamp", Arc::new(moments.clone()));
    echo("echo_timestamp", Arc::new(moments.with_timezone("UTC")));
}

#[test]
fn lists_and_structs_come_back() {
    let slot = slot("echo", FaultPolicy::Fail);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in
        [Some(vec![Some("a"), None, Some("")]), None, Some(vec![]), Some(vec![None]), Some(vec![Some("long enough")])]
    {
        match row {
            Some(row) => lists.append_value(row),
            None => lists.append_null(),
        }
    }
    echo(&slot, "echo_list", Arc::new(lists.finish()));
    for function in ["echo_lists", "echo_struct", "echo_structs"] {
        let component = slot.component();
        let (_, signature) = component.function(function).unwrap();
        let everything = |n: i64| {
            format!(
                r#"{{"flag":true,"small":-{n},"text":"t{n}","numbers":[{n},2],"inner":{{"at":"2024-01-0{n}T00:00:00Z","bytes":"00ff"}}}}"#
            )
        };
        let text = match function {
            "echo_lists" => r#"{"x":[[1.5,null],null,[]]}{"x":null}{"x":[]}{"x":[[2.5]]}"#.to_owned(),
            "echo_struct" => format!(r#"{{"x":{}}}{{"x":null}}{{"x":{}}}"#, everything(1), everything(2)),
            _ => format!(r#"{{"x":[{},null]}}{{"x":null}}{{"x":[{}]}}"#, everything(1), everything(2)),
        };
        let field = Field::clone(&signature.arguments[0]).with_nullable(true);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = ReaderBuilder::new(schema).build(text.as_bytes()).unwrap().next().unwrap().unwrap();
        echo(&slot, function, Arc::clone(batch.column(0)));
    }
}

#[test]
fn a_row_type_becomes_the_columns_of_a_table_function() {
    let slot = slot("echo", FaultPolicy::Fail);
    let component = slot.component();
    let (_, signature) = component.function("echo_rows").unwrap();
    let names: Vec<_> = signature.results.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["flag", "small", "text", "numbers", "inner"]);
    let text = r#"{"x":{"flag":true,"small":7,"text":null,"numbers":[1],"inner":{"at":"2024-01-01T00:00:00Z","bytes":"00"}}}{"x":null}"#;
    let field = Field::clone(&signature.arguments[0]).with_nullable(true);
    let batch: RecordBatch =
        ReaderBuilder::new(Arc::new(Schema::new(vec![field]))).build(text.as_bytes()).unwrap().next().unwrap().unwrap();
    let outcome = slot.call_table("echo_rows", 2, batch.columns()).unwrap();
    assert_eq!(outcome.input_rows.values(), &[0], "a null argument has no rows");
    let argument: &StructArray = batch.column(0).as_struct();
    for (column, expected) in outcome.columns.iter().zip(argument.columns()) {
        assert_eq!(column, &expected.slice(0, 1));
    }
}

#[test]
fn lists_are_taken_apart_into_rows() {
    let slot = slot("echo", FaultPolicy::Fail);
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(3)]),
    ]);
    let outcome = slot.call_table("elements", 4, &[Arc::new(lists) as ArrayRef]).unwrap();
    assert_eq!(outcome.input_rows.values(), &[0, 0, 3]);
    assert_eq!(read(&outcome.columns[0]), [Some(1), None, Some(3)]);
}

#[test]
fn a_null_gives_null_where_the_function_has_no_use_for_it() {
    let slot = slot("heat_plugin", FaultPolicy::Fail);
    let like: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(0)]));
    let dwell: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 1.0, 30.5]));
    let outcome = slot.call_scalar("heat", 3, &[numbers([1, 1, 3]), numbers([1, 1, 10]), dwell, like]).unwrap();
    let values: Vec<_> = outcome.values.as_any().downcast_ref::<Float64Array>().unwrap().iter().collect();
    assert_eq!(values, [Some(2.4), None, Some(21.5)]);
}

#[test]
fn rows_with_nulls_are_left_out_for_plugins_that_ask_for_it() {
    let slot = slot("skips_nulls", FaultPolicy::Skip);
    let column: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1), None, Some(13), Some(2)]));
    let outcome = slot.call_scalar("negate", 5, &[Arc::clone(&column)]).unwrap();
    assert_eq!(read(&outcome.values), [None, Some(-1), None, None, Some(-2)]);
    assert_eq!(outcome.faults.iter().map(|fault| fault.row).collect::<Vec<_>>(), [3]);
    let outcome = slot.call_table("same", 5, &[column]).unwrap();
    assert_eq!(outcome.input_rows.values(), &[1, 3, 4]);
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, None]));
    assert_eq!(slot.call_scalar("negate", 2, &[nulls]).unwrap().values.null_count(), 2);
}

#[test]
fn a_function_may_have_no_arguments() {
    let outcome = slot("echo", FaultPolicy::Fail).call_scalar("seven", 3, &[]).unwrap();
    assert_eq!(outcome.values.as_ref(), &Int32Array::from(vec![7, 7, 7]) as &dyn Array);
    assert_eq!(outcome.values.data_type(), &DataType::Int32);
}
