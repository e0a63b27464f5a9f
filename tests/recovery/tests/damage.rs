//! Torn and foreign checkpoints: named, refused, and left as they are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use millstream_common::{BatchId, DurableFiles, Hint, Options, OutputMode, StopSignal, Trigger, describe_chain};
use millstream_runtime::{QueryRun, QuerySpec, RuntimeError, Settings, StateLimits, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::{World, unit};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]))
}

fn spec(sql: &str, stream: &str) -> QuerySpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: stream.into(), format: "memory".into(), schema: None, options };
    QuerySpec {
        name: Some("counts".into()),
        streams: vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
        tables: Vec::new(),
        plugins: Vec::new(),
        query: sql.into(),
        mode: OutputMode::Update,
        trigger: Trigger::Default,
        sink: SinkSpec { format: "recorder".into(), options: Options::new() },
        checkpoint: Some("checkpoint".into()),
        checkpoint_options: Vec::new(),
        settings: Settings { partitions: 1, ..Settings::default() },
        uids: BTreeMap::new(),
        state: StateLimits::default(),
        late_rows: None,
    }
}

const COUNT: &str = "SELECT k, count(*) AS n FROM keys GROUP BY k";

/// A world with a checkpoint of three batches and rows for a fourth.
fn world() -> World {
    let world = World::new().unwrap();
    let keys = world.streams.create("keys", schema());
    world.streams.create("others", schema());
    let mut run = QueryRun::open(&world.session, spec(COUNT, "keys"), StopSignal::new()).unwrap();
    for key in ["a", "b", "a", "c"] {
        keys.add_data(unit(&schema(), &[vec![Some(key.into())]]).unwrap()).unwrap();
    }
    for batch in 0..3 {
        assert_eq!(run.run_next().unwrap().unwrap().batch_id, batch);
    }
    run.close();
    world
}

/// Every file but the lease.
fn content(files: &dyn DurableFiles) -> BTreeMap<String, Bytes> {
    let mut content = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let below = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
        for name in files.list(&folder).unwrap() {
            let path = below(name);
            content.insert(path.clone(), files.get(&path).unwrap());
        }
        folders.extend(files.list_folders(&folder).unwrap().into_iter().map(below));
    }
    content.remove("lease");
    content
}

/// Opens the query, which must be refused and change nothing.
fn refusal(world: &World, spec: QuerySpec) -> RuntimeError {
    let files = world.checkpoint_files();
    let (before, rows) = (content(files.as_ref()), world.recorder.batches());
    let opened = QueryRun::open(&world.session, spec, StopSignal::new());
    let Err(error) = opened else { panic!("it was opened") };
    assert_eq!(content(files.as_ref()), before, "something was written");
    assert_eq!(world.recorder.batches(), rows);
    world.pass_lease();
    error
}

fn newest_state(world: &World) -> String {
    let commit = world.checkpoint().unwrap().unwrap().commit_log().get(BatchId(2)).unwrap().unwrap();
    let text = format!("{:?}", commit.state);
    let content = content(world.checkpoint_files().as_ref());
    let named = |path: &&String| path.starts_with("state/") && text.contains(path.rsplit('/').next().unwrap());
    content.keys().rfind(named).unwrap().clone()
}

/// What happens to a file.
type Damage = fn(&Bytes) -> Bytes;

#[test]
fn torn_files_are_named_and_nothing_is_written() {
    let paths = |world: &World| {
        ["metadata", "offsets/2", "commits/2"].map(str::to_owned).into_iter().chain([newest_state(world)])
    };
    for index in 0..paths(&world()).count() {
        let damages: [(&str, Damage); 4] = [
            ("cut in half", |bytes| bytes.slice(..bytes.len() / 2)),
            ("empty", |_| Bytes::new()),
            ("with a flipped bit", |bytes| {
                let mut bytes = bytes.to_vec();
                let middle = bytes.len() * 2 / 3;
                bytes[middle] ^= 4;
                bytes.into()
            }),
            ("foreign", |_| Bytes::from_static(b"v1\n{\"batchWatermarkMs\":0}\n")),
        ];
        for (what, damage) in damages {
            let world = world();
            let files = world.checkpoint_files();
            // State files are named by the run that wrote them.
            let path = paths(&world).nth(index).unwrap();
            files.put_over(&path, damage(&files.get(&path).unwrap())).unwrap();
            let error = refusal(&world, spec(COUNT, "keys"));
            let text = describe_chain(&error);
            let named = path.rsplit('/').next().unwrap();
            assert!(text.contains(named), "`{path}` {what}: {text}");
            let is_typed =
                matches!(error, RuntimeError::Checkpoint(_) | RuntimeError::State(_) | RuntimeError::Batch { .. });
            assert!(is_typed || path.starts_with("state/"), "`{path}` {what}: {error:?}");
        }
    }
}

#[test]
fn missing_files_are_not_guessed_around() {
    for path in ["metadata", "offsets/1", "commits/1"] {
        let world = world();
        let files = world.checkpoint_files();
        files.delete(path).unwrap();
        let error = refusal(&world, spec(COUNT, "keys"));
        let text = describe_chain(&error);
        assert!(matches!(error, RuntimeError::Checkpoint(_)), "`{path}` {error:?}");
        assert!(error.hint().is_some() || !text.is_empty(), "{text}");
    }
    let world = world();
    let path = newest_state(&world);
    world.checkpoint_files().delete(&path).unwrap();
    let text = describe_chain(&refusal(&world, spec(COUNT, "keys")));
    assert!(text.contains(path.rsplit('/').next().unwrap()), "{path}: {text}");
}

#[test]
fn another_query_on_the_checkpoint_is_refused_with_the_difference() {
    let world = world();
    let cases = [
        (
            "SELECT k, count(*) AS n, max(k) AS m FROM keys GROUP BY k",
            "keys",
            "value column `max(keys.k)[value]` Utf8 is new",
        ),
        ("SELECT k, count(*) AS n FROM others GROUP BY k", "others", "source `others` is new"),
        ("SELECT k FROM keys", "keys", "would be lost"),
    ];
    for (sql, stream, part) in cases {
        let error = refusal(&world, spec(sql, stream));
        let (text, hint) = (error.to_string(), error.hint());
        let RuntimeError::Changed { .. } = error else { panic!("{sql}: {error:?}") };
        assert!(text.contains(part) && hint.is_some(), "{sql}: {text}");
    }
    // The right one goes on where it was.
    let mut run = QueryRun::open(&world.session, spec(COUNT, "keys"), StopSignal::new()).unwrap();
    assert_eq!(run.run_next().unwrap().unwrap().batch_id, 3);
    assert_eq!(world.recorder.batches()[&3], ["c | 1"]);
}
