//! Writing framed Avro.

use super::Story;
use millstream_client::schema_registry::{Version, frame_of};
use serde_json::{Value, json};

/// What `expression` makes of the text of each value, as JSON of what is read back.
fn there_and_back(story: &Story, written: &str) -> Vec<Value> {
    story.rows(&format!("SELECT to_json(from_avro({written}, {})) AS j FROM t", story.place()))
}

#[test]
fn a_subject_that_is_not_there_gets_the_schema_of_the_column() {
    let story = Story::new("made");
    story.produce(vec![Some(b"ada".to_vec()), None]);
    let value = "CASE WHEN value IS NOT NULL THEN named_struct('name', CAST(value AS STRING), 'n', 7) END";
    let written = format!("to_avro({value}, {})", story.place());
    // The subject is made when the first query is planned, so the second one finds it.
    let hex = story.rows(&format!("SELECT concat('\"', hex({written}), '\"') AS j FROM t"));
    let id = story.registry.client().version(&story.subject, Version::Latest).unwrap().id;
    // The frame, then each field as a branch of a union and a value.
    let expected = format!("{:010X}{}", id, "0006616461".to_owned() + "000E");
    assert_eq!(hex, [json!(expected), Value::Null]);
    story.produce(vec![Some(b"bob".to_vec()), None]);
    assert_eq!(there_and_back(&story, &written), [json!({"name": "bob", "n": 7}), Value::Null]);
    assert_eq!(story.registry.client().version(&story.subject, Version::Latest).unwrap().version, 1);
}

#[test]
fn a_subject_that_is_there_says_how_values_are_written() {
    let story = Story::new("kept");
    let id = story
        .register(r#"{"type":"record","name":"User","namespace":"shop","fields":[{"name":"name","type":"string"}]}"#);
    story.produce(vec![Some(b"ada".to_vec())]);
    let written = format!("to_avro(named_struct('name', coalesce(CAST(value AS STRING), '')), {})", story.place());
    let hex = story.rows(&format!("SELECT concat('\"', hex({written}), '\"') AS j FROM t"));
    assert_eq!(hex, [json!(format!("{id:010X}06616461"))]);
    let wrong = format!("SELECT to_avro(named_struct('other', 1), {}) AS j FROM t", story.place());
    let error = story.open(&wrong).err().unwrap();
    assert!(error.contains("INVALID_AVRO_SCHEMA"), "{error}");
}

#[test]
fn a_schema_of_the_query_is_registered_once_and_only_if_it_may_be() {
    let story = Story::new("own");
    let schema =
        r#"{"type":"record","name":"User","fields":[{"name":"name","type":["null","string"],"default":null}]}"#;
    story.produce(vec![Some(b"ada".to_vec())]);
    let call = |more: &str| {
        let value = "named_struct('name', CAST(value AS STRING))";
        format!("to_avro({value}, {}, map('avroSchema', '{schema}'{more}))", story.place())
    };
    let error =
        story.open(&format!("SELECT {} AS j FROM t", call(", 'auto.register.schemas', 'false'"))).err().unwrap();
    assert!(error.contains("auto.register.schemas"), "{error}");
    for name in ["ada", "bob"] {
        assert_eq!(there_and_back(&story, &call("")), [json!({"name": name})]);
        story.produce(vec![Some(b"bob".to_vec())]);
    }
    let found = story.registry.client().version(&story.subject, Version::Latest).unwrap();
    assert_eq!(found.version, 1);
    assert!(frame_of(&[0, 0, 0, 0, 1]).is_some() && found.id > 0);
}
