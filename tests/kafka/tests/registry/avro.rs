//! Reading framed Avro.

use super::{Story, framed, long, rows, text, to_the_end};
use millstream_client::schema_registry::{Reference, Schema, SchemaKind};
use millstream_common::Fault;
use serde_json::{Value, json};

const FIRST: &str = r#"{"type":"record","name":"User","namespace":"shop","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"}]}"#;
const SECOND: &str = r#"{"type":"record","name":"User","namespace":"shop","fields":[{"name":"email","type":["null","string"],"default":null},{"name":"id","type":"long"},{"name":"name","type":"string"}]}"#;
const THIRD: &str = r#"{"type":"record","name":"User","namespace":"shop","fields":[{"name":"id","type":"long"},{"name":"age","type":"int","default":-1}]}"#;

fn first(id: u32, user: i64, name: &str) -> Option<Vec<u8>> {
    framed(id, &[long(user), text(name)].concat())
}

fn second(id: u32, email: Option<&str>, user: i64, name: &str) -> Option<Vec<u8>> {
    let email = email.map_or(long(0), |email| [long(1), text(email)].concat());
    framed(id, &[email, long(user), text(name)].concat())
}

#[test]
fn values_of_two_schema_versions_in_one_batch_are_rows_of_the_newest() {
    let story = Story::new("versions");
    let (one, two) = (story.register(FIRST), story.register(SECOND));
    assert_ne!(one, two);
    let mut values = vec![first(one, 1, "ada"), second(two, Some("b@x"), 2, "bob"), None, first(one, 3, "cyd")];
    // More than fit into one builder, in turns.
    for n in 4..400 {
        values.push(if n % 2 == 0 { first(one, n, "x") } else { second(two, None, n, "y") });
    }
    story.produce(values);
    let sql = format!("SELECT to_json(from_avro(value, {})) AS j FROM t", story.place());
    let found = story.rows(&sql);
    assert_eq!(found.len(), 400);
    assert_eq!(found[0], json!({"id": 1, "name": "ada"}));
    assert_eq!(found[1], json!({"email": "b@x", "id": 2, "name": "bob"}));
    assert_eq!(found[2], Value::Null);
    assert_eq!(found[3], json!({"id": 3, "name": "cyd"}));
    for (n, row) in found.iter().enumerate().skip(4) {
        assert_eq!(row, &json!({"id": n, "name": if n % 2 == 0 { "x" } else { "y" }}));
    }
}

#[test]
fn the_type_is_that_of_the_start_until_the_next_start_and_a_pinned_version_stays() {
    let story = Story::new("evolving");
    let one = story.register(FIRST);
    story.produce(vec![first(one, 1, "ada")]);
    let sql = format!("SELECT to_json(from_avro(value, {})) AS j FROM t", story.place());
    let pinned = format!("SELECT to_json(from_avro(value, {}, map('version', '1'))) AS j FROM t", story.place());
    let (mut run, tables) = story.open(&sql).unwrap();
    to_the_end(&mut run).unwrap();
    let two = story.register(SECOND);
    drop(run);
    assert_eq!(rows(&tables), [json!({"id": 1, "name": "ada"})]);

    story.produce(vec![second(two, Some("b@x"), 2, "bob")]);
    // What was added since is not in the type of the pinned version; the value is read all the same.
    assert_eq!(story.rows(&pinned), [json!({"id": 2, "name": "bob"})]);
    story.produce(vec![second(two, Some("c@x"), 3, "cyd")]);
    assert_eq!(story.rows(&sql), [json!({"email": "c@x", "id": 3, "name": "cyd"})]);
}

#[test]
fn a_run_goes_on_with_its_type_when_values_of_a_newer_version_come() {
    let story = Story::new("running");
    let one = story.register(FIRST);
    story.produce(vec![first(one, 1, "ada")]);
    let sql = format!("SELECT to_json(from_avro(value, {})) AS j FROM t", story.place());
    let (mut run, tables) = story.open(&sql).unwrap();
    let two = story.register(SECOND);
    story.produce(vec![second(two, Some("b@x"), 2, "bob")]);
    to_the_end(&mut run).unwrap();
    drop(run);
    let mut found = rows(&tables);
    // Whether the run had fixed its end before the second value came is not the matter.
    if found.len() == 1 {
        found.extend(
            story
                .rows(&format!("SELECT to_json(from_avro(value, {}, map('version', '1'))) AS j FROM t", story.place())),
        );
    }
    assert_eq!(found, [json!({"id": 1, "name": "ada"}), json!({"id": 2, "name": "bob"})]);
}

#[test]
fn a_schema_of_the_query_reads_what_every_version_wrote() {
    let story = Story::new("given");
    let (one, three) = (story.register(FIRST), story.register(THIRD));
    story.produce(vec![first(one, 1, "ada"), framed(three, &[long(2), long(7)].concat())]);
    let sql = format!(
        "SELECT to_json(from_avro(value, {}, map('avroSchema', '{}'))) AS j FROM t",
        story.place(),
        r#"{"type":"record","name":"User","namespace":"shop","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"],"default":null}]}"#
    );
    assert_eq!(story.rows(&sql), [json!({"id": 1, "name": "ada"}), json!({"id": 2})]);
}

#[test]
fn values_that_cannot_be_read_fail_the_batch_or_are_structs_of_nulls_and_their_neighbours_stay() {
    let story = Story::new("broken");
    let one = story.register(FIRST);
    let values = vec![
        first(one, 1, "ada"),
        Some(b"{\"id\":1}".to_vec()),
        first(4_000_000_000, 2, "bob"),
        framed(one, &[2]),
        Some(vec![0, 0]),
        first(one, 3, "cyd"),
    ];
    story.produce(values);
    let sql = format!("SELECT to_json(from_avro(value, {})) AS j FROM t", story.place());
    let (fault, error) = story.failure(&sql);
    assert!(fault == Fault::Data && error.contains("MALFORMED_AVRO_MESSAGE"), "{fault:?} {error}");
    let sql = format!("SELECT to_json(from_avro(value, {}, map('mode', 'PERMISSIVE'))) AS j FROM t", story.place());
    // A struct of nulls has no fields in JSON.
    let mut expected = vec![json!({}); 6];
    expected[0] = json!({"id": 1, "name": "ada"});
    expected[5] = json!({"id": 3, "name": "cyd"});
    assert_eq!(story.rows(&sql), expected);
}

#[test]
fn a_registry_that_is_not_there_is_not_taken_for_broken_values() {
    let story = Story::new("gone");
    let one = story.register(FIRST);
    story.produce(vec![first(one, 1, "ada")]);
    // The schema to read with stands in the query, so the registry is asked for the first time by the first value.
    let sql = format!(
        "SELECT to_json(from_avro(value, 's', 'http://127.0.0.1:1', map('avroSchema', '{FIRST}', 'mode', 'PERMISSIVE', 'max.retries', '0'))) AS j FROM t"
    );
    let (fault, error) = story.failure(&sql);
    assert!(fault == Fault::Outside && error.contains("cannot reach the schema registry"), "{fault:?} {error}");
}

#[test]
fn what_is_not_in_the_registry_is_told_when_the_query_is_planned() {
    let story = Story::new("absent");
    let error = story.open(&format!("SELECT from_avro(value, {}) AS j FROM t", story.place())).err().unwrap();
    assert!(error.contains(&format!("no version `latest` of subject `{}`", story.subject)), "{error}");
    assert!(error.contains("correct the subject"), "{error}");
    let sql = "SELECT from_avro(value, 's', 'http://127.0.0.1:1', map('max.retries', '0')) AS j FROM t";
    let error = story.open(sql).err().unwrap();
    assert!(error.contains("cannot reach the schema registry at `http://127.0.0.1:1`"), "{error}");
}

#[test]
fn a_schema_may_use_types_of_other_subjects() {
    let story = Story::new("references");
    let money = r#"{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}"#;
    let client = story.registry.client();
    let other = format!("{}-money", story.topic);
    client.register(&other, &Schema::avro(money)).unwrap();
    let order = r#"{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"price","type":"Money"},{"name":"tip","type":["null","shop.Money"]}]}"#;
    let references = vec![Reference { name: "shop.Money".into(), subject: other, version: 1 }];
    let schema = Schema { kind: SchemaKind::Avro, text: order.into(), references };
    let id = client.register(&story.subject, &schema).unwrap();
    story.produce(vec![framed(id, &[long(500), long(1), long(50)].concat()), framed(id, &[long(7), long(0)].concat())]);
    let sql = format!("SELECT to_json(from_avro(value, {})) AS j FROM t", story.place());
    assert_eq!(
        story.rows(&sql),
        [json!({"price": {"cents": 500}, "tip": {"cents": 50}}), json!({"price": {"cents": 7}})]
    );
}
