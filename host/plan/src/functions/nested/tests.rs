//! The functions in whole queries, parsed, rewritten and planned as the engine does it.

use super::*;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use arrow::record_batch::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use futures::TryStreamExt;
use futures::executor::block_on;
use serde_json::{Value, json};

use crate::batch_query::{BoundedInputs, BoundedRows, InputError, plan_batch_query};
use crate::ddl::parse_ddl;
use crate::{BeyondSpark, PlanSettings, QueryInput, StreamInput};
use arrow::array::{ArrayRef, Int64Array, ListArray};
use arrow::datatypes::{Int64Type, Schema};
use millstream_common::OutputMode;
use std::collections::BTreeMap;

fn settings(ansi: bool) -> SqlSettings {
    SqlSettings { ansi, ..SqlSettings::default() }
}

/// A session that knows the functions of this folder.
pub(super) fn session(ansi: bool) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .set_str("datafusion.sql_parser.dialect", "Databricks")
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false);
    let mut builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let planners = builder.expr_planners().get_or_insert_default();
    expr_planners(&settings(ansi)).into_iter().for_each(|planner| planners.insert(0, planner));
    let session = SessionContext::new_with_state(builder.build());
    for name in ["concat", "reverse"] {
        let text = Arc::clone(&session.state().scalar_functions()[name]);
        session.register_udf(for_arrays_too(text, &settings(ansi)).as_ref().clone());
    }
    for function in scalar_functions(&settings(ansi)) {
        session.register_udf(function.as_ref().clone());
    }
    higher_order_functions(&settings(ansi))
        .into_iter()
        .for_each(|function| session.register_higher_order_function(function));
    session
}

pub(super) fn query(session: &SessionContext, sql: &str) -> datafusion::common::Result<Vec<RecordBatch>> {
    block_on(async {
        let state = session.state();
        let mut statement = state.sql_to_statement(sql, &datafusion::config::Dialect::Databricks)?;
        if let Statement::Statement(statement) = &mut statement {
            rewrite_nested_syntax(statement.as_mut());
        }
        let plan = state.create_physical_plan(&state.statement_to_plan(statement).await?).await?;
        let mut batches = Vec::new();
        for partition in 0..plan.properties().output_partitioning().partition_count() {
            batches.extend(plan.execute(partition, session.task_ctx())?.try_collect::<Vec<_>>().await?);
        }
        Ok(batches)
    })
}

/// The rows as JSON objects.
pub(super) fn rows(batches: &[RecordBatch]) -> Vec<Value> {
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut text);
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one value of `SELECT expression`.
fn value_of(expression: &str, ansi: bool) -> Value {
    let sql = format!("SELECT {expression} AS v");
    let batches = query(&session(ansi), &sql).unwrap_or_else(|error| panic!("{expression}: {error}"));
    rows(&batches)[0]["v"].clone()
}

fn error_of(expression: &str) -> String {
    query(&session(true), &format!("SELECT {expression} AS v")).unwrap_err().to_string()
}

fn assert_values(expected: &[(&str, Value)]) {
    let session = session(true);
    for (expression, value) in expected {
        let batches = query(&session, &format!("SELECT {expression} AS v"));
        let found = batches.map(|batches| rows(&batches)[0]["v"].clone());
        assert_eq!(found.map_err(|error| error.to_string()), Ok(value.clone()), "{expression}");
    }
}

fn assert_errors(expected: &[(&str, &str)]) {
    for (expression, class) in expected {
        let error = error_of(expression);
        assert!(error.contains(class), "{expression}: {error}");
    }
}

#[test]
fn elements_are_found_by_index_and_by_key() {
    assert_values(&[
        ("element_at(array(1, 2, 3), -1)", json!(3)),
        ("element_at(array(1, 2, 3), 1)", json!(1)),
        ("try_element_at(array(1, 2, 3), 4)", json!(null)),
        ("get(array(1, 2, 3), 0)", json!(1)),
        ("get(array(1, 2, 3), 3)", json!(null)),
        ("get(array(1, 2, 3), -1)", json!(null)),
        ("array(1, 2, 3)[1]", json!(2)),
        ("map('a', 1)['a']", json!(1)),
        ("map('a', 1)['z']", json!(null)),
        ("map(1, 'x')[1]", json!("x")),
        ("element_at(map('a', 1), 'z')", json!(null)),
        ("element_at(cast(NULL AS ARRAY<INT>), 1)", json!(null)),
        ("size(array())", json!(0)),
        ("size(map('a', 1))", json!(1)),
        ("cardinality(cast(NULL AS ARRAY<INT>))", json!(null)),
    ]);
    assert_eq!(value_of("size(cast(NULL AS ARRAY<INT>))", false), json!(-1));
    assert_eq!(value_of("array(1, 2)[5]", false), json!(null));
    assert_eq!(value_of("element_at(array(1, 2), 5)", false), json!(null));
    assert_errors(&[
        ("array(1, 2)[5]", "[INVALID_ARRAY_INDEX]"),
        ("array(1, 2)[-1]", "[INVALID_ARRAY_INDEX]"),
        ("element_at(array(1, 2), 3)", "[INVALID_ARRAY_INDEX_IN_ELEMENT_AT]"),
        ("element_at(array(1, 2), 0)", "[INVALID_INDEX_OF_ZERO]"),
    ]);
}

#[test]
fn searches_are_three_valued() {
    assert_values(&[
        ("array_contains(array(1, NULL), 1)", json!(true)),
        ("array_contains(array(1, NULL), 2)", json!(null)),
        ("array_contains(array(1, 2), 3)", json!(false)),
        ("array_contains(array(), 3)", json!(false)),
        ("array_position(array(3, NULL, 2, 2), 2)", json!(3)),
        ("array_position(array(3), 2)", json!(0)),
        ("array_min(array(3, NULL, 2))", json!(2)),
        ("array_max(array('a', 'é', 'b'))", json!("é")),
        ("array_max(array())", json!(null)),
        ("array_min(array(NULL))", json!(null)),
        ("array_max(array(cast('NaN' AS DOUBLE), 1.0)) > 5", json!(true)),
        ("array_min(array(struct(2, 'a'), struct(1, 'b')))", json!({"col1": 1, "col2": "b"})),
        ("arrays_overlap(array(1, 2), array(2))", json!(true)),
        ("arrays_overlap(array(1, NULL), array(2))", json!(null)),
        ("arrays_overlap(array(1, NULL), array())", json!(false)),
    ]);
}

#[test]
fn arrays_are_made_cut_and_joined() {
    assert_values(&[
        ("array(1, 2.5)", json!([1.0, 2.5])),
        ("slice(array(1, 2, 3, 4), 2, 2)", json!([2, 3])),
        ("slice(array(1, 2, 3, 4), -2, 9)", json!([3, 4])),
        ("slice(array(1, 2), 5, 1)", json!([])),
        ("slice(array(1, 2), -5, 1)", json!([])),
        ("flatten(array(array(1), array(2, NULL)))", json!([1, 2, null])),
        ("flatten(array(array(1), NULL))", json!(null)),
        ("array_append(array(1), NULL)", json!([1, null])),
        ("array_prepend(array(1), 0)", json!([0, 1])),
        ("array_insert(array(1, 2), 2, 9)", json!([1, 9, 2])),
        ("array_insert(array(1, 2), 5, 9)", json!([1, 2, null, null, 9])),
        ("array_insert(array(5, 4, 3, 2), -1, 1)", json!([5, 4, 3, 2, 1])),
        ("array_insert(array(2, 3, 4), -5, 1)", json!([1, null, 2, 3, 4])),
        ("array_compact(array(1, NULL, 2))", json!([1, 2])),
        ("array_remove(array(1, NULL, 2, 1), 1)", json!([null, 2])),
        ("array_repeat('x', 2)", json!(["x", "x"])),
        ("array_repeat('x', -2)", json!([])),
        ("array_join(array('a', NULL, 'b'), '-')", json!("a-b")),
        ("array_join(array('a', NULL, 'b'), '-', '?')", json!("a-?-b")),
        ("concat(array(1), array(2, 3))", json!([1, 2, 3])),
        ("concat('a', 'b')", json!("ab")),
        ("array(1) || array(2)", json!([1, 2])),
        ("reverse(array(1, 2, 3))", json!([3, 2, 1])),
        ("reverse('abc')", json!("cba")),
        ("arrays_zip(array(1, 2), array('a'))", json!([{"0": 1, "1": "a"}, {"0": 2, "1": null}])),
    ]);
    assert_errors(&[
        ("slice(array(1), 0, 1)", "[INVALID_PARAMETER_VALUE.START]"),
        ("slice(array(1), 1, -1)", "[INVALID_PARAMETER_VALUE.LENGTH]"),
        ("array_insert(array(1), 0, 1)", "[INVALID_INDEX_OF_ZERO]"),
        ("array_repeat(1, 2000000000)", "[COLLECTION_SIZE_LIMIT_EXCEEDED"),
    ]);
}

#[test]
fn sets_have_no_duplicates_and_one_null_equals_another() {
    assert_values(&[
        ("array_distinct(array(2, NULL, 2, NULL, 1))", json!([2, null, 1])),
        ("array_union(array(1, NULL), array(NULL, 2, 1))", json!([1, null, 2])),
        ("array_intersect(array(1, NULL, 1, 2), array(NULL, 1))", json!([1, null])),
        ("array_except(array(1, NULL, 1, 2, 2), array(1))", json!([null, 2])),
        ("array_distinct(array(0.0, -0.0))", json!([0.0])),
        ("array_union(array(), array())", json!([])),
        ("array_distinct(array(NULL, NULL))", json!([null])),
        ("array_except(array(1), array())", json!([1])),
        ("array_intersect(array(1), cast(NULL AS ARRAY<INT>))", json!(null)),
        ("array_distinct(array(struct(1, 'a'), struct(1, 'a')))", json!([{"col1": 1, "col2": "a"}])),
    ]);
}

#[test]
fn sorting_places_nulls_by_function_and_direction() {
    assert_values(&[
        ("sort_array(array(2, NULL, 1))", json!([null, 1, 2])),
        ("sort_array(array(2, NULL, 1), false)", json!([2, 1, null])),
        ("array_sort(array(2, NULL, 1))", json!([1, 2, null])),
        ("array_sort(array(1, 3, 2), (l, r) -> r - l)", json!([3, 2, 1])),
        (
            "array_sort(array(named_struct('n', 2), named_struct('n', NULL), named_struct('n', 1)))",
            json!([{"n": null}, {"n": 1}, {"n": 2}]),
        ),
    ]);
    assert_errors(&[("array_sort(array(1, 2), (l, r) -> cast(NULL AS INT))", "[COMPARATOR_RETURNS_NULL]")]);
}

#[test]
fn sequences_go_up_and_down_and_by_months() {
    assert_values(&[
        ("sequence(1, 4)", json!([1, 2, 3, 4])),
        ("sequence(4, 1, -2)", json!([4, 2])),
        ("sequence(1, 1)", json!([1])),
        (
            "sequence(DATE '2024-01-31', DATE '2024-04-01', INTERVAL '1' MONTH)",
            json!(["2024-01-31", "2024-02-29", "2024-03-31"]),
        ),
        (
            "size(sequence(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 02:00:00', INTERVAL '30' MINUTE))",
            json!(5),
        ),
    ]);
    assert_errors(&[
        ("sequence(1, 5, -1)", "[ILLEGAL_SEQUENCE_BOUNDARIES]"),
        ("sequence(1, 5, 0)", "[ILLEGAL_SEQUENCE_BOUNDARIES]"),
    ]);
}

#[test]
fn lambdas_see_elements_positions_and_columns() {
    assert_values(&[
        ("transform(array(1, 2), x -> x * 10)", json!([10, 20])),
        ("transform(array(5, 6), (x, i) -> x + i)", json!([5, 7])),
        ("transform(array(1, 2), x -> 7)", json!([7, 7])),
        ("transform(array(named_struct('a', named_struct('b', 1))), x -> x.a.b)", json!([1])),
        ("transform(array(array(1, 2)), x -> transform(x, y -> y + size(x)))", json!([[3, 4]])),
        ("filter(array(3, 1, 2), x -> x > 1)", json!([3, 2])),
        ("filter(array(3, 1, 2), (x, i) -> i > 0)", json!([1, 2])),
        ("exists(array(1, NULL), x -> x > 2)", json!(null)),
        ("exists(array(3, NULL), x -> x > 2)", json!(true)),
        ("exists(array(), x -> x > 2)", json!(false)),
        ("forall(array(1, NULL), x -> x > 0)", json!(null)),
        ("forall(array(-1, NULL), x -> x > 0)", json!(false)),
        ("forall(array(1), x -> x > 0)", json!(true)),
        ("aggregate(array(1, 2, 3), 0, (acc, x) -> acc + x)", json!(6)),
        ("aggregate(array(1, 2, 3), 0, (acc, x) -> acc + x, acc -> acc * 10)", json!(60)),
        ("reduce(array('a', 'b'), '', (acc, x) -> concat(acc, x))", json!("ab")),
        ("aggregate(array(), 5, (acc, x) -> acc + 1)", json!(5)),
        ("aggregate(array(1.5, 2.5), cast(0 AS DOUBLE), (acc, x) -> acc + x)", json!(4.0)),
        (
            "aggregate(array(1, 2), named_struct('s', 0, 'n', 0), (a, x) -> named_struct('sum', a.s + x, 'n', a.n + 1))",
            json!({"s": 3, "n": 2}),
        ),
        ("zip_with(array(1, 2), array(10), (x, y) -> coalesce(x, 0) + coalesce(y, 0))", json!([11, 2])),
        ("map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)", json!({"b": 2})),
        ("transform_values(map('a', 1), (k, v) -> v + length(k))", json!({"a": 2})),
        ("transform_keys(map('a', 1), (k, v) -> upper(k))", json!({"A": 1})),
        (
            "map_zip_with(map('a', 1, 'b', 2), map('b', 3, 'c', 4), (k, x, y) -> coalesce(x, 0) * 10 + coalesce(y, 0))",
            json!({"a": 10, "b": 23, "c": 4}),
        ),
    ]);
    assert_errors(&[
        ("transform_keys(map('a', 1, 'b', 2), (k, v) -> 'same')", "[DUPLICATED_MAP_KEY]"),
        ("filter(array(1), x -> 'no')", "[DATATYPE_MISMATCH"),
        ("aggregate(array(1.5, 2.5), 0, (acc, x) -> acc + x)", "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE]"),
        ("aggregate(array(1), cast(0 AS INT), (acc, x) -> acc + cast(x AS BIGINT))", "is BIGINT, but its start is INT"),
        ("transform(array(1))", "[WRONG_NUM_ARGS]"),
    ]);
}

#[test]
fn lambdas_run_over_many_rows_and_capture_their_columns() {
    let sql = "SELECT n, aggregate(a, n, (acc, x) -> acc + x) AS s, transform(a, x -> x + n) AS t, \
               array_sort(a, (l, r) -> r - l) AS o FROM (SELECT 1 AS n, array(1, 2) AS a \
               UNION ALL SELECT 2, from_json('', 'ARRAY<BIGINT>') UNION ALL SELECT 3, from_json('[]', 'ARRAY<BIGINT>') \
               UNION ALL SELECT 4, array(1, 9, 5)) AS t";
    let mut found = rows(&query(&session(true), sql).unwrap());
    found.sort_by_key(|row| row["n"].as_i64());
    assert_eq!(found[0], json!({"n": 1, "s": 4, "t": [2, 3], "o": [2, 1]}));
    assert_eq!(found[1], json!({"n": 2, "s": null, "t": null, "o": null}));
    assert_eq!(found[2], json!({"n": 3, "s": 3, "t": [], "o": []}));
    assert_eq!(found[3], json!({"n": 4, "s": 19, "t": [5, 13, 9], "o": [9, 5, 1]}));
}

#[test]
fn maps_are_made_from_everything_and_refuse_doubles() {
    assert_values(&[
        ("map('a', 1, 'b', NULL)", json!({"a": 1, "b": null})),
        ("map_keys(map('a', 1))", json!(["a"])),
        ("map_values(map('a', 1))", json!([1])),
        ("map_values(map(array(1), array(2)))", json!([[2]])),
        ("size(map())", json!(0)),
        ("map('a', 1, 'b', 2.5)['a']", json!(1.0)),
        ("map_entries(map('a', 1))", json!([{"key": "a", "value": 1}])),
        ("map_contains_key(map('a', 1), 'b')", json!(false)),
        ("map_from_arrays(array('p', 'q'), array(1, 2))", json!({"p": 1, "q": 2})),
        ("map_from_entries(array(struct('e', 1)))", json!({"e": 1})),
        ("map_from_entries(array(struct('e', 1), NULL))", json!(null)),
        ("str_to_map('x=1,y=2,z', ',', '=')", json!({"x": "1", "y": "2", "z": null})),
        ("str_to_map('a:1,b:2')", json!({"a": "1", "b": "2"})),
        // A digit is an ASCII one, as in Java.
        ("str_to_map('a=1٣b=2', '[0-9]?\\\\d', '=')", json!({"a": "1٣b=2"})),
        ("str_to_map('ab', '', ':')", json!({"a": null, "b": null})),
        ("map_concat(map('a', 1), map('b', 2))", json!({"a": 1, "b": 2})),
        ("map_concat(map('a', 1), NULL)", json!(null)),
    ]);
    assert_errors(&[
        ("map('a', 1, 'a', 2)", "[DUPLICATED_MAP_KEY]"),
        ("map_concat(map('a', 1), map('a', 2))", "[DUPLICATED_MAP_KEY]"),
        ("map_from_arrays(array(1, 1), array(1, 2))", "[DUPLICATED_MAP_KEY]"),
        ("map_from_arrays(array(1, NULL), array(1, 2))", "[NULL_MAP_KEY]"),
        ("str_to_map('a:1,a:2')", "[DUPLICATED_MAP_KEY]"),
        ("str_to_map('a:1', ',(?=b)')", "look-ahead"),
    ]);
}

#[test]
fn structs_are_named_by_their_columns_and_compared_field_by_field() {
    assert_values(&[
        ("struct(1, 'x' AS n)", json!({"col1": 1, "n": "x"})),
        ("named_struct('u', 1, 'v', named_struct('z', 2)).v.z", json!(2)),
        ("array(named_struct('a', 1), NULL)[0].a", json!(1)),
        ("struct(1, 2) < struct(1, 3)", json!(true)),
        ("struct(1, NULL) = struct(1, NULL)", json!(true)),
        ("struct(1, cast(NULL AS BIGINT)) < struct(1, 0)", json!(true)),
    ]);
    let sql = "SELECT struct(id, p.x, p.x + 1) AS s, p.X AS up, arrays_zip(l, p.m) AS z, st.a AS sa FROM (SELECT 7 AS id, \
               named_struct('x', 1, 'm', array(1)) AS p, array('a') AS l, array(named_struct('a', 5)) AS st)";
    let found = rows(&query(&session(true), sql).unwrap());
    assert_eq!(found[0], json!({"s": {"id": 7, "x": 1, "col3": 2}, "up": 1, "z": [{"l": "a", "m": 1}], "sa": [5]}));
    assert_errors(&[("named_struct('a', 1).b", "[FIELD_NOT_FOUND]")]);
}

#[test]
fn json_is_read_permissively() {
    assert_values(&[
        (
            r#"from_json('{"a":1,"b":"x","c":[1,2]}', 'a INT, b STRING, c ARRAY<INT>')"#,
            json!({"a": 1, "b": "x", "c": [1, 2]}),
        ),
        (r#"from_json('{"a":"7","b":5}', 'a INT, b STRING')"#, json!({"a": null, "b": "5"})),
        (r#"from_json('not json', 'a INT')"#, json!({"a": null})),
        (r#"from_json('[1,2]', 'ARRAY<INT>')"#, json!([1, 2])),
        (r#"from_json('{"k":1}', 'MAP<STRING,INT>')"#, json!({"k": 1})),
        (r#"from_json('{"a":1}', 'ARRAY<STRUCT<a: INT>>')"#, json!([{"a": 1}])),
        (r#"from_json('[1,"x"]', 'ARRAY<INT>')"#, json!(null)),
        (r#"from_json('', 'a INT')"#, json!(null)),
        (r#"from_json('{"a":3000000000,"b":2.5}', 'a INT, b BIGINT')"#, json!({"a": null, "b": null})),
        (r#"from_json('{"t":"2024-05-01T12:00:00.25Z"}', 't TIMESTAMP')"#, json!({"t": "2024-05-01T12:00:00.250Z"})),
        (r#"from_json('{"d":1.005,"e":"2.5"}', 'd DECIMAL(10,2), e DECIMAL(5,1)')"#, json!({"d": 1.01, "e": 2.5})),
        (r#"from_json('{"s":{"x":[1, 2 ]}}', 's STRUCT<x: STRING>')"#, json!({"s": {"x": "[1,2]"}})),
        (r#"from_json('{"A":1}', 'a INT')"#, json!({"a": null})),
        (r#"from_json('{"a":1,"b":{"c":2}}', schema_of_json('{"a":1,"b":{"c":2}}'))"#, json!({"a": 1, "b": {"c": 2}})),
        (r#"from_json('{"a":', 'a INT, _corrupt_record STRING')"#, json!({"a": null, "_corrupt_record": "{\"a\":"})),
        (
            r#"from_json('{"a":"x"}', 'a INT, _corrupt_record STRING')"#,
            json!({"a": null, "_corrupt_record": "{\"a\":\"x\"}"}),
        ),
        (r#"from_json('{}', 'a INT, _corrupt_record STRING')"#, json!({"a": null, "_corrupt_record": null})),
        (r#"from_json('{"a":1} tail', 'a INT')"#, json!({"a": 1})),
        (r#"from_json("{'a':1}", 'a INT')"#, json!({"a": 1})),
        (r#"from_json('{"a":[{"b":"x"},null]}', 'a ARRAY<STRUCT<b: INT>>')"#, json!({"a": [{"b": null}, null]})),
        (r#"from_json('{"a":1,"a":2}', 'a INT')"#, json!({"a": 2})),
        (r#"from_json('{"a":1}', 'a INT', map('mode', 'FAILFAST'))"#, json!({"a": 1})),
    ]);
    assert_errors(&[
        ("from_json('x', 'a INT', map('mode', 'FAILFAST'))", "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION]"),
        ("from_json('x', 'a FOO')", "[INVALID_SCHEMA]"),
    ]);
}

/// Texts, and what Spark 4.3 makes of them.
#[test]
fn json_values_become_what_spark_reads() {
    assert_values(&[
        // A STRING takes what is no string written anew.
        (
            r#"from_json('{"a":1.10,"b":1e10,"c":-0,"d":NaN,"e":{"f":[1, 2.50, null]},"g":12345678901234567890123}', 'MAP<STRING,STRING>')"#,
            json!({"a": "1.1", "b": "1.0E10", "c": "0", "d": "\"NaN\"", "e": "{\"f\":[1,2.5,null]}", "g": "12345678901234567890123"}),
        ),
        (r#"map_values(from_json('{"a":1,"a":2}', 'MAP<STRING,INT>'))"#, json!([1, 2])),
        (r#"from_json('{"a":3,"a":"x"}', 'a INT')"#, json!({"a": 3})),
        (r#"from_json('{"a":3,"a":null}', 'a INT')"#, json!({"a": null})),
        (r#"from_json('{"a":128,"b":256}', 'a TINYINT, b TINYINT')"#, json!({"a": -128, "b": null})),
        (r#"to_json(from_json('{"a":-0}', 'a DOUBLE'))"#, json!(r#"{"a":0.0}"#)),
        (r#"from_json('{"a":+INF}', 'a DOUBLE').a > 1e300"#, json!(true)),
        (r#"from_json('{"a":INF}', 'a DOUBLE')"#, json!({"a": null})),
        (
            r#"from_json('{"a":"1,000.5","b":" 1"}', 'a DECIMAL(10,2), b DECIMAL(10,2)')"#,
            json!({"a": 1000.5, "b": null}),
        ),
        (r#"from_json('{"a":"20240501","b":"2024-05"}', 'a DATE, b DATE').b"#, json!("2024-05-01")),
        (r#"from_json('{"a":"1"}', 'a DATE')"#, json!({"a": "1970-01-02"})),
        (r#"from_json('{"a":"2024-05-01T12:00:00+02:00"}', 'a TIMESTAMP')"#, json!({"a": "2024-05-01T10:00:00Z"})),
        (r#"from_json('{"a":"2024-05-01T12:00:00+02:00"}', 'a TIMESTAMP_NTZ')"#, json!({"a": null})),
        (
            r#"from_json('{"a":"YQ==","b":"YQ","c":"","d":"YWI=YWI="}', 'a BINARY, b BINARY, c BINARY, d BINARY')"#,
            json!({"a": "61", "b": null, "c": "", "d": "61626162"}),
        ),
        (r#"from_json('null', 'a INT, _corrupt_record STRING')"#, json!({"a": null, "_corrupt_record": "null"})),
        (
            r#"from_json('{"m":{"k":{"a":"x"}}}', 'm MAP<STRING,STRUCT<a:INT>>, _corrupt_record STRING')"#,
            json!({"m": {"k": {"a": null}}, "_corrupt_record": r#"{"m":{"k":{"a":"x"}}}"#}),
        ),
    ]);
    for text in
        [r#"{"a":"x"}"#, r#"{"a":1,}"#, r#"{"a":1.0}"#, r#"{"a":01}"#, r#"{a:1}"#, r#"{"a":/**/1}"#, "null", "1"]
    {
        let sql = format!("from_json('{text}', 'a INT', map('mode', 'FAILFAST'))");
        assert_errors(&[(&sql, "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION]")]);
    }
    assert_errors(&[
        (
            "from_json('[1]', 'a INT', map('mode', 'FAILFAST'))",
            "[MALFORMED_RECORD_IN_PARSING.CANNOT_PARSE_JSON_ARRAYS_AS_STRUCTS]",
        ),
        ("from_json('1', 'INT')", "[DATATYPE_MISMATCH.INVALID_JSON_SCHEMA]"),
        ("from_json('{}', 'MAP<INT,INT>')", "[DATATYPE_MISMATCH.INVALID_JSON_MAP_KEY_TYPE]"),
    ]);
}

/// Calls with options, and what Spark 4.3 makes of them.
#[test]
fn options_of_json_are_sparks() {
    assert_values(&[
        (
            r#"from_json('{"a":"x"}', 'a INT, bad STRING', map('columnNameOfCorruptRecord', 'bad'))"#,
            json!({"a": null, "bad": r#"{"a":"x"}"#}),
        ),
        (
            r#"from_json('{"a":', 'a INT, _corrupt_record STRING', map('columnNameOfCorruptRecord', 'bad'))"#,
            json!({"a": null, "_corrupt_record": null}),
        ),
        (
            r#"from_json('{"d":"01/05/2024","t":"01/05/2024 13:14:15.5"}', 'd DATE, t TIMESTAMP', map('dateFormat', 'dd/MM/yyyy', 'timestampFormat', 'dd/MM/yyyy HH:mm:ss.S'))"#,
            json!({"d": "2024-05-01", "t": "2024-05-01T13:14:15.500Z"}),
        ),
        (
            r#"from_json('{"d":"2024-05-01","t":"2024-05-01 12:00:00"}', 'd DATE, t TIMESTAMP', map('dateFormat', 'dd/MM/yyyy', 'timestampFormat', 'dd/MM/yyyy'))"#,
            json!({"d": null, "t": null}),
        ),
        (
            r#"from_json('{"t":"2024-05-01 12:00:00"}', 't TIMESTAMP', map('timestampFormat', 'dd/MM/yyyy', 'enableDateTimeParsingFallback', 'true'))"#,
            json!({"t": "2024-05-01T12:00:00Z"}),
        ),
        (
            r#"from_json('{"n":"01/05/2024 13:14"}', 'n TIMESTAMP_NTZ', map('timestampNTZFormat', 'dd/MM/yyyy HH:mm'))"#,
            json!({"n": "2024-05-01T13:14:00"}),
        ),
        (
            r#"from_json('{"t":"2024-05-01 12:00:00","u":"2024-05-01T12:00:00Z"}', 't TIMESTAMP, u TIMESTAMP', map('timeZone', 'Europe/Berlin'))"#,
            json!({"t": "2024-05-01T10:00:00Z", "u": "2024-05-01T12:00:00Z"}),
        ),
        (
            r#"from_json('/*x*/{"a":/**/1, // y
"b":2}', 'a INT, b INT', map('allowComments', 'true'))"#,
            json!({"a": 1, "b": 2}),
        ),
        (
            r#"from_json('{a:1,1a:2,a-x :3}', 'MAP<STRING,INT>', map('allowUnquotedFieldNames', 'true'))"#,
            json!({"a": 1, "1a": 2, "a-x": 3}),
        ),
        (r#"from_json("{'a':1}", 'a INT', map('allowSingleQuotes', 'false'))"#, json!({"a": null})),
        (
            r#"from_json('{"a":007,"b":-01.5,"c":00}', 'a INT, b DOUBLE, c STRING', map('allowNumericLeadingZeros', 'true'))"#,
            json!({"a": 7, "b": -1.5, "c": "0"}),
        ),
        (
            r#"from_json('{"a":NaN}', 'a DOUBLE, b STRING', map('allowNonNumericNumbers', 'false'))"#,
            json!({"a": null, "b": null}),
        ),
        (r#"from_json('{"a":1}', schema_of_json('{"a":1}', map('primitivesAsString', 'true')))"#, json!({"a": "1"})),
        (r#"to_json(named_struct('a', 1, 'n', NULL), map('ignoreNullFields', 'false'))"#, json!(r#"{"a":1,"n":null}"#)),
        (
            "to_json(named_struct('a', 1, 'm', map('k', 1), 'l', array(1, NULL), 's', array(named_struct('x', NULL))), map('pretty', 'true'))",
            json!("{\n  \"a\" : 1,\n  \"m\" : {\n    \"k\" : 1\n  },\n  \"l\" : [ 1, null ],\n  \"s\" : [ { } ]\n}"),
        ),
        (
            "to_json(from_json('{\"t\":\"2024-05-01T12:00:00.123456Z\",\"d\":\"2024-05-01\"}', 't TIMESTAMP, d DATE'), map('timeZone', 'Europe/Berlin', 'dateFormat', 'dd/MM/yyyy'))",
            json!(r#"{"t":"2024-05-01T14:00:00.123+02:00","d":"01/05/2024"}"#),
        ),
        (
            "to_json(from_json('{\"t\":\"2024-05-01T12:00:00.123456Z\"}', 't TIMESTAMP'), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS XXX z'))",
            json!(r#"{"t":"2024-05-01 12:00:00.123456 Z UTC"}"#),
        ),
        (
            "to_json(named_struct('a', 'é😀'), map('writeNonAsciiCharacterAsCodePoint', 'true'))",
            json!(r#"{"a":"\u00E9\uD83D\uDE00"}"#),
        ),
        ("to_json(map('k', 'v'))", json!(r#"{"k":"v"}"#)),
        ("to_json(map(from_json('{\"d\":\"2024-05-01\"}', 'd DATE').d, 1))", json!(r#"{"19844":1}"#)),
    ]);
    assert_errors(&[
        ("from_json('{}', 'a INT', map('mode', 'DROPMALFORMED'))", "[PARSE_MODE_UNSUPPORTED]"),
        ("from_json('{}', 'a INT, c INT', map('columnNameOfCorruptRecord', 'c'))", "[INVALID_CORRUPT_RECORD_TYPE]"),
        ("from_json('{}', 'a INT', map('nonsense', 'x'))", "[INVALID_OPTIONS]"),
        ("to_json(named_struct('a', 1), map('nonsense', 'x'))", "[INVALID_OPTIONS]"),
        ("to_json(named_struct('a', 1), map('pretty', true))", "[INVALID_OPTIONS.NON_STRING_TYPE]"),
        ("schema_of_json('x')", "[MALFORMED_RECORD_IN_PARSING"),
        ("json_tuple('{}', 1)", "[DATATYPE_MISMATCH.NON_STRING_TYPE]"),
    ]);
}

/// Records, and what Spark 4.3 makes of them.
#[test]
fn records_of_separated_values_are_read_and_written() {
    assert_values(&[
        (r#"from_csv('1,"x,y"', 'a INT, b STRING')"#, json!({"a": 1, "b": "x,y"})),
        ("from_csv('', 'a INT, b STRING')", json!({"a": null, "b": null})),
        ("from_csv(NULL, 'a INT, b STRING')", json!(null)),
        (r#"from_csv('1,"",', 'a INT, b STRING, c STRING')"#, json!({"a": 1, "b": null, "c": null})),
        (
            r#"from_csv('NA,"",', 'a INT, b STRING, c STRING', map('nullValue', 'NA'))"#,
            json!({"a": null, "b": "", "c": null}),
        ),
        (
            "from_csv('1', 'a INT, b STRING, _corrupt_record STRING')",
            json!({"a": 1, "b": null, "_corrupt_record": "1"}),
        ),
        (
            "from_csv('x,y', '_corrupt_record STRING, a INT, b STRING')",
            json!({"_corrupt_record": "x,y", "a": null, "b": "y"}),
        ),
        (
            "from_csv('1,x,2', 'a INT, b STRING, bad STRING', map('columnNameOfCorruptRecord', 'bad'))",
            json!({"a": 1, "b": "x", "bad": "1,x,2"}),
        ),
        (
            "from_csv('1, x ', 'a INT, b STRING, _corrupt_record STRING')",
            json!({"a": 1, "b": " x ", "_corrupt_record": null}),
        ),
        (
            "from_csv('+1|01/05/2024|2024|1.005|TRUE|Inf', 'a INT, d DATE, t TIMESTAMP, x DECIMAL(10,2), b BOOLEAN, f DOUBLE', map('sep', '|', 'dateFormat', 'dd/MM/yyyy')).x",
            json!(1.01),
        ),
        (
            "from_csv('01/05/2024|2024-05-01T12:00:00+02:00', 'd DATE, t TIMESTAMP', map('sep', '|', 'dateFormat', 'dd/MM/yyyy'))",
            json!({"d": "2024-05-01", "t": "2024-05-01T10:00:00Z"}),
        ),
        ("from_csv('1,x', schema_of_csv('2,y'))", json!({"_c0": 1, "_c1": "x"})),
        (
            "to_csv(named_struct('a', 1, 'b', 'x,y', 'c', NULL, 'd', 1.5, 'g', 'a\"b', 'h', '', 'i', true, 'k', ' x ', 'l', array(1, 2)))",
            json!(r#"1,"x,y",,1.5,"a\"b","",true,x,"[1, 2]""#),
        ),
        (
            "to_csv(from_csv('2024-05-01,2024-05-01 12:00:00.5', 'd DATE, t TIMESTAMP'), map('dateFormat', 'dd.MM.yy'))",
            json!("01.05.24,2024-05-01T12:00:00.500Z"),
        ),
        (
            "to_csv(named_struct('a', NULL, 'b', 'x'), map('nullValue', 'NULL', 'quoteAll', 'true'))",
            json!(r#""NULL","x""#),
        ),
        ("to_csv(named_struct('a', '#x', 'b', '#x'), map('sep', '|'))", json!("\"#x\"|#x")),
        ("to_csv(named_struct('a', 'x\"y'), map('escape', '\"'))", json!(r#""x""y""#)),
        ("to_csv(named_struct('a', 'x\"y'), map('escapeQuotes', 'false'))", json!(r#"x"y"#)),
    ]);
    assert_errors(&[
        ("from_csv('1', 'a INT, b INT', map('mode', 'FAILFAST'))", "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION]"),
        ("from_csv('1', 'a INT', map('mode', 'DROPMALFORMED'))", "[PARSE_MODE_UNSUPPORTED]"),
        ("from_csv('1', 'ARRAY<INT>')", "[INVALID_SCHEMA.NON_STRUCT_TYPE]"),
        ("from_csv('1', 'a ARRAY<INT>')", "[UNSUPPORTED_DATATYPE]"),
        ("from_csv('1', 'a INT', map('nonsense', '1'))", "[INVALID_OPTIONS]"),
        ("to_csv(1)", "[DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE]"),
    ]);
}

#[test]
fn json_is_written_and_asked() {
    assert_values(&[
        ("to_json(named_struct('a', 1, 'b', NULL, 'c', 1.5))", json!(r#"{"a":1,"c":1.5}"#)),
        ("to_json(map('k', NULL))", json!(r#"{"k":null}"#)),
        (r#"to_json(array('x"y', NULL))"#, json!(r#"["x\"y",null]"#)),
        (
            "to_json(named_struct('t', from_json('{\"t\":\"2024-05-01T12:00:00Z\"}', 't TIMESTAMP').t))",
            json!(r#"{"t":"2024-05-01T12:00:00.000Z"}"#),
        ),
        (r#"get_json_object('{"d":{"e":2.50}}', '$.d.e')"#, json!("2.5")),
        (r#"get_json_object('x', '$.d')"#, json!(null)),
        (r#"get_json_object('{"a":1}', '$.*')"#, json!(null)),
        (r#"get_json_object('{"a":NaN}', '$.a')"#, json!(null)),
        (r#"get_json_object('{"a":-0,"b":1.10}', '$')"#, json!(r#"{"a":0,"b":1.1}"#)),
        (r#"json_tuple('{"b":1,"a":"x","b":2,"a":null}', 'a', 'b')"#, json!({"c0": "x", "c1": "2"})),
        (r#"json_array_length('[1,2]')"#, json!(2)),
        (r#"json_array_length('{}')"#, json!(null)),
        (r#"json_object_keys('{"b":1,"a":2}')"#, json!(["b", "a"])),
        (r#"json_tuple('{"b":1,"a":"x"}', 'a', 'b', 'c')"#, json!({"c0": "x", "c1": "1", "c2": null})),
        (r#"schema_of_json('{"b":1}')"#, json!("STRUCT<b: BIGINT>")),
    ]);
}

#[test]
fn rows_that_are_cut_out_of_a_batch_are_read_at_their_place() {
    let session = session(true);
    let sql = "SELECT n, array(n, NULL, n + 1) AS a, map('k', n) AS m, named_struct('x', n) AS s, \
               concat('{\"v\":', cast(n AS STRING), '}') AS j FROM (SELECT unnest(sequence(1, 9)) AS n)";
    let batch = query(&session, sql).unwrap().remove(0);
    let schema = batch.schema();
    let parts = vec![batch.slice(6, 2)];
    let table = datafusion::datasource::MemTable::try_new(schema, vec![parts]).unwrap();
    session.register_table("cut", Arc::new(table)).unwrap();
    let sql = "SELECT a[2] AS i, m['k'] AS k, s.x AS x, transform(a, (v, i) -> v + i + n) AS t, sort_array(a) AS o, \
               aggregate(a, 0, (c, v) -> c + coalesce(v, 0)) AS g, map_values(transform_values(m, (k, v) -> v + n)) AS w, \
               from_json(j, 'v INT').v AS v, __with_position(a)[2] AS p, to_json(s) AS js, __list_or_null(a) AS l, \
               array_max(array_union(a, array(n))) AS u FROM cut";
    let found = rows(&query(&session, sql).unwrap());
    let expected = |n: i64| {
        json!({
            "i": n + 1, "k": n, "x": n, "t": [n + n, null, n + 1 + 2 + n], "o": [null, n, n + 1], "g": n + n + 1,
            "w": [n + n], "v": n, "p": {"pos": 2, "col": n + 1}, "js": format!("{{\"x\":{n}}}"),
            "l": [n, null, n + 1], "u": n + 1
        })
    };
    assert_eq!(found, vec![expected(7), expected(8)]);
}

#[test]
fn generators_have_their_lists() {
    assert_values(&[
        ("__list_or_null(array(1))", json!([1])),
        ("__list_or_null(array())", json!([null])),
        ("__list_or_null(cast(NULL AS ARRAY<INT>))", json!([null])),
        ("__with_position(array('a', NULL))", json!([{"pos": 0, "col": "a"}, {"pos": 1, "col": null}])),
        ("__with_position(map('k', 1))", json!([{"pos": 0, "key": "k", "value": 1}])),
        ("__map_entries(map('k', 1))", json!([{"key": "k", "value": 1}])),
    ]);
}

/// Two rows of a stream whose `a` is an array of BIGINT.
#[derive(Debug)]
struct TwoRows;

impl BoundedInputs for TwoRows {
    fn read(&self, _stream: &str, projection: &[usize]) -> Result<BoundedRows, InputError> {
        let a = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(4), Some(6)]), None]);
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(a)];
        let batch = RecordBatch::try_new(Arc::clone(&two_rows().schema), columns)?;
        Ok(Box::new(std::iter::once(Ok(batch.project(projection)?))))
    }
}

fn two_rows() -> StreamInput {
    let schema = Arc::new(Schema::new(parse_ddl("id bigint, a array<bigint>").unwrap()));
    StreamInput { name: "t".into(), schema, event_time: None, drop_duplicates: None }
}

/// The values of `v` in an answer over these rows, planned as a whole query is.
fn planned(sql: &str) -> Result<Vec<Value>, String> {
    let input = QueryInput {
        streams: vec![two_rows()],
        tables: Vec::new(),
        plugins: Vec::new(),
        query: sql.into(),
        mode: OutputMode::Append,
        settings: PlanSettings {
            sql: settings(true),
            partitions: 1,
            uids: BTreeMap::new(),
            beyond: BeyondSpark::default(),
        },
    };
    let plan = plan_batch_query(&input, Arc::new(TwoRows)).map_err(|error| error.to_string())?;
    let batches = plan.execute(&|| false).map_err(|error| error.to_string())?.unwrap();
    Ok(rows(&batches).iter().map(|row| row["v"].clone()).collect())
}

#[test]
fn an_accumulator_has_the_type_of_its_start() {
    for (expression, value) in [
        ("aggregate(a, 0L, (acc, x) -> acc + x)", json!(10)),
        ("aggregate(a, id, (acc, x) -> acc + x)", json!(11)),
        ("aggregate(a, CAST(0 AS DOUBLE), (acc, x) -> acc + x, acc -> acc / size(a))", json!(5.0)),
        ("aggregate(array(1, 2, 3), 0, (acc, x) -> acc + x * 2 - 1)", json!(9)),
        ("aggregate(array(1, 3, 2), 0, (acc, x) -> CASE WHEN x > acc THEN x ELSE acc END)", json!(3)),
        ("aggregate(array(1, 3, 2), 0, (acc, x) -> if(x > acc, x, acc))", json!(3)),
        ("aggregate(array(1, 3, 2), 0, (acc, x) -> greatest(acc, coalesce(x, 0)))", json!(3)),
        ("aggregate(transform(array(1, 2), y -> y * 2), 0, (acc, x) -> acc + x)", json!(6)),
        ("aggregate(sequence(1, 3), 1, (acc, x) -> acc * x)", json!(6)),
        ("aggregate(array(1, 2), '', (acc, x) -> acc || CAST(x AS STRING))", json!("12")),
        ("aggregate(split('a,b', ','), '', (acc, x) -> concat(acc, x, ';'))", json!("a;b;")),
        ("aggregate(array(array(1), array(2)), array(0), (acc, x) -> concat(acc, x))", json!([0, 1, 2])),
        ("aggregate(array(1.5D, 2.5D), 0D, (acc, x) -> acc + x)", json!(4.0)),
        (
            "aggregate(array(1, 2), named_struct('s', 0, 'n', 0), (acc, x) -> named_struct('s', acc.s + x, 'n', acc.n + 1), \
             acc -> acc.s / acc.n)",
            json!(1.5),
        ),
    ] {
        let found = planned(&format!("SELECT {expression} AS v FROM t WHERE id = 1"));
        assert_eq!(found, Ok(vec![value]), "{expression}");
    }
    let inner = "SELECT aggregate(b, n, (acc, x) -> acc + x) AS v FROM (SELECT id, 1 AS n, array(1, 2) AS b FROM t) WHERE id = 1";
    assert_eq!(planned(inner), Ok(vec![json!(4)]));
    for refused in [
        "aggregate(array(1.5, 2.5), 0, (acc, x) -> acc + x)",
        "aggregate(a, 0, (acc, x) -> acc + x)",
        "aggregate(array(1, 2), '', (acc, x) -> x)",
        "reduce(array(1, 2), array(), (acc, x) -> array(x))",
    ] {
        let error = planned(&format!("SELECT {refused} AS v FROM t")).unwrap_err();
        assert!(error.contains("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE]"), "{refused}: {error}");
    }
}

#[test]
fn a_condition_protects_rows_on_whose_values_a_function_fails() {
    for guarded in [
        "size(transform_keys(map(1, 1, 2, 2), (k, v) -> if(id = 1, k, 7))) = 2",
        "INTERVAL '1' HOUR / (2 - id) > INTERVAL '1' MINUTE",
        "from_csv(if(id = 1, '7', 'x'), 'n INT', map('mode', 'FAILFAST')).n = 7",
        "substring('abc', if(id = 1, '1', 'x'), 1) = 'a'",
        "hour(if(id = 1, '2024-01-01 12:00:00', 'x')) = 12",
        "coalesce(hour(if(id = 1, '2024-01-01 12:00:00', 'x')), 0) = 12",
    ] {
        assert_eq!(
            planned(&format!("SELECT id AS v FROM t WHERE id = 1 AND {guarded}")),
            Ok(vec![json!(1)]),
            "{guarded}"
        );
        assert!(planned(&format!("SELECT id AS v FROM t WHERE {guarded}")).is_err(), "{guarded}");
    }
}
