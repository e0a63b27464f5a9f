//! Reading framed JSON.

use super::{Story, framed};
use millstream_common::Fault;
use serde_json::{Value, json};

const SCHEMA: &str =
    r#"{"type":"object","properties":{"id":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}"#;
const AVRO: &str = r#"{"type":"record","name":"Other","fields":[{"name":"id","type":"long"}]}"#;

#[test]
fn texts_behind_the_number_of_a_json_schema_have_its_type() {
    let story = Story::new("texts");
    let id = story.register_json(SCHEMA);
    story.produce(vec![
        framed(id, br#"{"id":1,"tags":["a"],"more":true}"#),
        framed(id, br#"{"id":"x"}"#),
        None,
        framed(id, br#"{"tags":[]}"#),
    ]);
    let sql = format!("SELECT to_json(from_json(value, {})) AS j FROM t", story.place());
    let expected = [json!({"id": 1, "tags": ["a"]}), json!({}), Value::Null, json!({"tags": []})];
    assert_eq!(story.rows(&sql), expected);
}

#[test]
fn the_query_may_say_the_type() {
    let story = Story::new("typed");
    let id = story.register_json(
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"id":{}}}"#,
    );
    story.produce(vec![framed(id, br#"{"id":1}"#)]);
    let error = story.open(&format!("SELECT from_json(value, {}) AS j FROM t", story.place())).err().unwrap();
    assert!(error.contains("schema = 'id BIGINT"), "{error}");
    let sql = format!("SELECT to_json(from_json(value, {}, map('schema', 'id INT'))) AS j FROM t", story.place());
    assert_eq!(story.rows(&sql), [json!({"id": 1})]);
}

#[test]
fn what_is_not_framed_or_framed_as_something_else_is_malformed() {
    let story = Story::new("unframed");
    let id = story.register_json(SCHEMA);
    let other = story.registry.client();
    let avro = other
        .register(&format!("{}-other", story.topic), &millstream_client::schema_registry::Schema::avro(AVRO))
        .unwrap();
    let text = br#"{"id":1}"#;
    story.produce(vec![Some(text.to_vec()), framed(avro, text), framed(4_000_000_000, text), framed(id, text)]);
    let failing = format!("SELECT to_json(from_json(value, {}, map('mode', 'FAILFAST'))) AS j FROM t", story.place());
    let (fault, error) = story.failure(&failing);
    assert!(fault == Fault::Data && error.contains("MALFORMED_RECORD_IN_PARSING"), "{fault:?} {error}");
    let columns = "map('schema', 'id INT, _corrupt_record STRING')";
    let sql = format!("SELECT to_json(from_json(value, {}, {columns})) AS j FROM t", story.place());
    let found = story.rows(&sql);
    assert_eq!(found[0], json!({"_corrupt_record": r#"{"id":1}"#}));
    assert!(found[1].get("id").is_none() && found[2].get("id").is_none(), "{found:?}");
    assert_eq!(found[3], json!({"id": 1}));
}
