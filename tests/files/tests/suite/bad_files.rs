use crate::world::World;
use millstream_common::describe_chain;
use millstream_runtime::replay::replay;
use millstream_runtime::{Session, StreamingQuery};
use std::fs;
use std::io::Write;

fn query(policy: &str) -> String {
    format!(
        r#"
        name = "counts"
        sql = "SELECT id, word, input_day FROM words"
        trigger = "available now"
        checkpoint = "checkpoint"

        [[source]]
        name = "words"
        format = "csv"
        schema = "id INT, word STRING, input_day DATE"
        options = {{ path = "in", header = true, mode = "FAILFAST", maxFilesPerTrigger = 2, {policy} }}

        [sink]
        format = "json"
        options = {{ path = "out" }}
        "#
    )
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Good files, a cut gzip, and one with wrong columns.
fn fill(world: &World) {
    world.put("in/input_day=2024-05-01/a.csv", b"id,word\n1,one\n", 1);
    let whole = gzip(b"id,word\n2,two\n");
    world.put("in/input_day=2024-05-01/b.csv.gz", &whole[..whole.len() - 6], 2);
    world.put("in/input_day=2024-05-01/c.csv.gz", &gzip(b"id,word\n3,three\n"), 3);
    world.put("in/input_day=2024-05-02/d.csv", b"id,word\n4,four\nfive,5,V\n", 4);
    world.put("in/input_day=2024-05-02/e.csv", b"id,word\n6,six\n", 5);
}

fn run(world: &World) -> Result<(), String> {
    let session = Session::new().unwrap();
    let query = StreamingQuery::start(&session, world.load().spec, None).unwrap();
    query.await_termination().map_err(|error| describe_chain(&*error))
}

#[test]
fn a_bad_file_stops_the_query_by_its_name_unless_the_user_says_otherwise() {
    let world = World::new(&query(""), "");
    fill(&world);
    let error = run(&world).unwrap_err();
    assert!(error.contains("b.csv.gz") && error.contains("gzip stream is damaged"), "{error}");
    // The policy is the user's, not the checkpoint's: with another one the same batch goes on.
    fs::write(world.path("query.toml"), query(r#"badFiles = "skip""#)).unwrap();
    run(&world).unwrap();
    assert_eq!(world.rows("out").len(), 3);
}

#[test]
fn bad_files_are_dead_letters_and_nothing_else_is_lost_on_replay_too() {
    let world = World::new(&query(r#"badFiles = "dead-letter""#), "");
    fill(&world);
    run(&world).unwrap();
    let expected = [
        r#"{"id":1,"word":"one","input_day":"2024-05-01"}"#,
        r#"{"id":3,"word":"three","input_day":"2024-05-01"}"#,
        r#"{"id":6,"word":"six","input_day":"2024-05-02"}"#,
    ];
    assert_eq!(world.rows("out"), expected);
    let mut letters = Vec::new();
    for entry in fs::read_dir(world.path("checkpoint/dead-letters")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        letters.extend(text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()));
    }
    letters.sort_by_key(|letter| letter["place"].to_string());
    let told: Vec<(String, String)> = letters
        .iter()
        .map(|letter| {
            assert_eq!(letter["source"], "words");
            let place = letter["place"].as_str().unwrap();
            (place.rsplit('/').next().unwrap().to_owned(), letter["message"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(told[0].0, "b.csv.gz");
    assert!(told[0].1.contains("gzip stream is damaged"), "{told:?}");
    assert_eq!(told[1], ("d.csv".into(), "line 3 is malformed: `five,5,V`".into()));

    // Somebody repairs the files: the batches stay what they were.
    world.put("in/input_day=2024-05-01/b.csv.gz", &gzip(b"id,word\n2,two\n"), 2);
    world.put("in/input_day=2024-05-02/d.csv", b"id,word\n4,four\n", 4);
    let session = Session::new().unwrap();
    for batch in 0..3 {
        let again = replay(&session, &world.load().spec, batch, None).unwrap();
        assert!(again.is_same, "{:?}", again.notes);
    }
    run(&world).unwrap();
    assert_eq!(world.rows("out"), expected);
}

#[test]
fn a_truncated_parquet_file_costs_nothing_else() {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use std::sync::Arc;
    let parquet = |n: i64| {
        let column: ArrayRef = Arc::new(Int64Array::from((0..1000).map(|row| n * 1000 + row).collect::<Vec<_>>()));
        let rows = RecordBatch::try_from_iter([("id", column)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        bytes
    };
    let text = r#"
        sql = "SELECT count(*) AS n, sum(id) AS total FROM ids"
        output_mode = "complete"
        trigger = "available now"
        checkpoint = "checkpoint"
        [settings]
        spark.sql.streaming.schemaInference = true
        [[source]]
        name = "ids"
        format = "parquet"
        options = { path = "in", badFiles = "dead-letter" }
        [sink]
        format = "noop"
        "#;
    let world = World::new(text, "");
    world.put("in/a.parquet", &parquet(0), 1);
    world.put("in/b.parquet", &parquet(1)[..3000], 2);
    world.put("in/c.parquet", &parquet(2), 3);
    let session = Session::new().unwrap();
    let query = StreamingQuery::start(&session, world.load().spec, None).unwrap();
    query.await_termination().unwrap();
    assert_eq!(query.recent_progress().iter().map(|progress| progress.num_input_rows).sum::<u64>(), 2000);
    let letter = fs::read_to_string(world.path("checkpoint/dead-letters/0.jsonl")).unwrap();
    assert!(letter.contains("b.parquet"), "{letter}");
}
