//! Avro's bytes in whole queries. The bytes of the examples are those of Avro's specification: zigzag numbers of variable
//! length, texts with their length before them, the number of the branch before a value of a union.

use super::super::tests::{query, rows, session};
use serde_json::{Value, json};

fn value_of(expression: &str) -> Value {
    let batches =
        query(&session(true), &format!("SELECT {expression} AS v")).unwrap_or_else(|e| panic!("{expression}: {e}"));
    rows(&batches)[0]["v"].clone()
}

fn error_of(expression: &str) -> String {
    query(&session(true), &format!("SELECT {expression} AS v")).expect_err(expression).to_string()
}

const USER: &str = r#"{"type":"record","name":"User","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]}]}"#;

#[test]
fn bytes_of_the_specification_become_values() {
    assert_eq!(value_of("from_avro(X'0A', '\"long\"')"), json!(5));
    assert_eq!(value_of("from_avro(X'06666f6f', 'string')"), json!("foo"));
    assert_eq!(value_of(&format!("from_avro(X'0A0206666f6f', '{USER}')")), json!({"id": 5, "name": "foo"}));
    assert_eq!(value_of(&format!("from_avro(X'0A00', '{USER}').name")), Value::Null);
    assert_eq!(value_of(r#"from_avro(X'02', '{"type":"enum","name":"E","symbols":["a","b"]}')"#), json!("b"));
    assert_eq!(value_of(r#"from_avro(X'04020400', '{"type":"array","items":"int"}')"#), json!([1, 2]));
}

#[test]
fn values_come_back_as_they_went_in() {
    let value = "named_struct('a', 1, 'b', 'x', 'c', array(CAST(1.5 AS DOUBLE), NULL), 'd', map('k', CAST(2 AS BIGINT)), 'e', CAST(12.34 AS DECIMAL(9,2)), 'f', true, 'g', X'0102', 'h', CAST(NULL AS STRING))";
    let schema = r#"["null",{"type":"record","name":"R","fields":[{"name":"a","type":["int","null"]},{"name":"b","type":["string","null"]},{"name":"c","type":[{"type":"array","items":["double","null"]},"null"]},{"name":"d","type":[{"type":"map","values":["long","null"]},"null"]},{"name":"e","type":[{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":9,"scale":2},"null"]},{"name":"f","type":["boolean","null"]},{"name":"g","type":["bytes","null"]},{"name":"h","type":["string","null"]}]}]"#;
    assert_eq!(value_of(&format!("from_avro(to_avro({value}, '{schema}'), '{schema}')")), value_of(value),);
}

#[test]
fn without_a_schema_null_stands_second_in_a_union_as_in_spark() {
    assert_eq!(value_of("to_avro('foo')"), json!("0006666f6f"));
    assert_eq!(value_of("to_avro(CAST(NULL AS STRING))"), json!("02"));
    assert_eq!(value_of("to_avro(CAST(5 AS SMALLINT))"), json!("000a"));
}

#[test]
fn bytes_that_do_not_fit_fail_the_query_or_are_null_and_their_neighbours_stay() {
    for bad in ["X'06666f'", "X''"] {
        let error = error_of(&format!("from_avro({bad}, '\"string\"')"));
        assert!(error.contains("MALFORMED_AVRO_MESSAGE") && error.contains("PERMISSIVE"), "{error}");
    }
    let sql = "SELECT from_avro(b, '\"string\"', map('mode', 'PERMISSIVE')) AS v FROM VALUES (X'06666f6f'), (X'06666f'), (NULL), (X'02') , (X'0261') AS t(b)";
    let found: Vec<Value> = rows(&query(&session(true), sql).unwrap()).iter().map(|row| row["v"].clone()).collect();
    assert_eq!(found, [json!("foo"), Value::Null, Value::Null, Value::Null, json!("a")]);
}

#[test]
fn a_record_that_cannot_be_read_is_a_struct_of_nulls_as_in_spark() {
    let sql = format!(
        "SELECT v IS NULL AS gone, v.id AS id, v.name AS name FROM (SELECT from_avro(b, '{USER}', map('mode', 'PERMISSIVE')) AS v \
         FROM VALUES (X'0A0206666f6f'), (X'0A'), (NULL), (X'0C00') AS t(b)) AS r"
    );
    assert_eq!(
        rows(&query(&session(true), &sql).unwrap()),
        [
            json!({"gone": false, "id": 5, "name": "foo"}),
            json!({"gone": false, "id": null, "name": null}),
            json!({"gone": true, "id": null, "name": null}),
            json!({"gone": false, "id": 6, "name": null}),
        ]
    );
}

#[test]
fn bytes_behind_a_value_are_not_looked_at_as_in_spark() {
    for more in ["00", "FF", "0000000001", "00000000000A"] {
        assert_eq!(value_of(&format!("from_avro(X'0A0206666f6f{more}', '{USER}')")), json!({"id": 5, "name": "foo"}));
    }
    let sql =
        format!("SELECT from_avro(b, '{USER}').id AS v FROM VALUES (X'0A0000'), (X'0C00'), (X'0E0000000000') AS t(b)");
    let found: Vec<Value> = rows(&query(&session(true), &sql).unwrap()).iter().map(|row| row["v"].clone()).collect();
    assert_eq!(found, [json!(5), json!(6), json!(7)]);
}

#[test]
fn a_newer_schema_reads_what_an_older_one_wrote() {
    let newer = r#"{"type":"record","name":"User","fields":[{"name":"name","type":["null","string"]},{"name":"age","type":"int","default":7}]}"#;
    assert_eq!(
        value_of(&format!("from_avro(X'0A0206666f6f', '{USER}', map('avroSchema', '{newer}'))")),
        json!({"name": "foo", "age": 7})
    );
}

#[test]
fn a_newer_schema_may_have_wider_types_and_other_names() {
    for (bytes, written, wanted, value) in [
        ("0A", r#""int""#, r#""long""#, json!(5)),
        ("0A", r#""int""#, r#""double""#, json!(5.0)),
        ("06666F6F", r#""string""#, r#"["null","string"]"#, json!("foo")),
        (
            "0A",
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}"#,
            r#"{"type":"record","name":"R","fields":[{"name":"b","aliases":["a"],"type":"long"}]}"#,
            json!({"b": 5}),
        ),
    ] {
        let call = format!("from_avro(X'{bytes}', '{written}', map('avroSchema', '{wanted}'))");
        assert_eq!(value_of(&call), value, "{written} as {wanted}");
    }
}

#[test]
fn what_cannot_be_read_is_said_when_the_query_is_planned() {
    assert!(error_of("from_avro(X'00', 'not a schema')").contains("INVALID_AVRO_SCHEMA"));
    assert!(error_of("from_avro(X'00', '\"long\"', map('framing', 'x'))").contains("avroSchema"));
    assert!(error_of("from_avro('text', '\"long\"')").contains("BINARY"));
}

#[test]
fn many_rows_and_many_batches_share_what_was_prepared() {
    let session = session(true);
    let bytes = "X'0A0206666f6f'";
    let many: Vec<String> =
        (0..1_000).map(|n| if n % 7 == 0 { "(NULL)".into() } else { format!("({bytes})") }).collect();
    let sql = format!("SELECT from_avro(b, '{USER}').name AS v FROM VALUES {} AS t(b)", many.join(", "));
    for _ in 0..3 {
        let found = rows(&query(&session, &sql).unwrap());
        assert_eq!(found.len(), 1_000);
        assert!(
            found.iter().enumerate().all(|(n, row)| row["v"] == if n % 7 == 0 { Value::Null } else { json!("foo") })
        );
    }
}

#[test]
fn credentials_may_not_stand_in_a_query_and_are_not_told() {
    let call = "from_avro(X'', 's', 'http://127.0.0.1:1', map('confluent.schema.registry.basic.auth.user.info', 'ada:sesame'))";
    let error = error_of(call);
    assert!(error.contains("basic.auth.user.info.env") && !error.contains("sesame"), "{error}");
    let error = error_of("from_avro(X'', 's', 'http://ada:sesame@127.0.0.1:1')");
    assert!(error.contains("***") && !error.contains("sesame"), "{error}");
}
