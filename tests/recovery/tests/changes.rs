//! What of a query may change between two runs on one checkpoint, row by row of Spark's table, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::{Hint, Options, OutputMode, StopSignal, Trigger, WatermarkPolicy};
use millstream_plan::{DropDuplicates, EventTime};
use millstream_runtime::{ColumnChange, QueryChange, QueryRun, QuerySpec, RuntimeError, Settings, StreamSpec};
use millstream_sink::{SinkError, SinkSpec};
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use std::ops::Deref;
use std::sync::Arc;
use streaming_stories::{World, unit};

fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("at", time, true),
        Field::new("k", DataType::Utf8, true),
        Field::new("v", DataType::Int64, true),
    ]))
}

fn stream(name: &str) -> StreamSpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: name.into(), format: "memory".into(), schema: None, options };
    StreamSpec { source, event_time: None, drop_duplicates: None }
}

fn spec(sql: &str) -> QuerySpec {
    QuerySpec {
        name: Some("changes".into()),
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(sql, vec![stream("s")], SinkSpec { format: "recorder".into(), options: Options::new() })
    }
}

fn watermarked(sql: &str, seconds: i64) -> QuerySpec {
    let mut spec = spec(sql);
    spec.streams[0].event_time = Some(EventTime { column: "at".into(), delay_us: seconds * 1_000_000 });
    spec
}

const COUNT: &str = "SELECT k, count(*) AS n FROM s GROUP BY k";
const WINDOWS: &str =
    "SELECT window(at, '10 seconds').start AS start, count(*) AS n FROM s GROUP BY window(at, '10 seconds')";

/// A world with a stream that rows can be added to.
struct Stage {
    world: World,
    stream: MemoryStream,
}

impl Deref for Stage {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Stage {
    fn add(&self, at: &str, k: &str, v: &str) {
        let row = [at, k, v].map(|cell| Some(cell.to_owned())).to_vec();
        self.stream.add_data(unit(&schema(), &[row]).unwrap()).unwrap();
    }
}

/// A world in which a query has run two batches, and a third waits.
fn after(spec: &QuerySpec) -> Stage {
    let world = World::new().unwrap();
    let [stream, _] = ["s", "t"].map(|name| world.streams.create(name, schema()));
    let stage = Stage { world, stream };
    let mut run = QueryRun::open(&stage.session, spec.clone(), StopSignal::new()).unwrap();
    for (at, k, v) in [("00:00:01", "a", "1"), ("00:00:12", "b", "2")] {
        stage.add(at, k, v);
        run.run_next().unwrap().unwrap();
    }
    run.close();
    stage.add("00:00:13", "a", "3");
    stage
}

/// The changed query goes on; answers the rows of its first batch.
fn goes_on(world: &World, spec: QuerySpec) -> Vec<String> {
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap_or_else(|error| panic!("{error}"));
    let batch = run.run_next().unwrap().unwrap().batch_id;
    run.close();
    let mut rows = world.recorder.batches().remove(&batch).unwrap_or_default();
    rows.sort();
    rows
}

/// The changed query is refused, and the unchanged one goes on as if nothing had been tried.
fn refused(before: &QuerySpec, changed: QuerySpec) -> (Vec<QueryChange>, String, String) {
    let world = after(before);
    let Err(error) = QueryRun::open(&world.session, changed.clone(), StopSignal::new()) else {
        panic!("it was opened")
    };
    world.pass_lease();
    // Looking says the same as starting. (The recorder is of one query, and looking is of none.)
    let elsewhere = QuerySpec { sink: SinkSpec { format: "noop".into(), options: Options::new() }, ..changed };
    let looked = millstream_runtime::inspect::check(&world.session, &elsewhere).unwrap_err();
    assert_eq!(looked.to_string(), error.to_string());
    let (text, hint) = (error.to_string(), error.hint().unwrap());
    let RuntimeError::Changed { changes } = error else { panic!("{error:?}") };
    goes_on(&world, before.clone());
    (changes, text, hint)
}

#[test]
fn the_number_of_sources_cannot_change() {
    let one = spec(COUNT);
    let mut two = spec("SELECT k, count(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM t) GROUP BY k");
    two.streams.push(stream("t"));
    let (changes, ..) = refused(&one, two.clone());
    assert_eq!(changes, [QueryChange::SourceNew { source: "t".into() }]);
    let (changes, ..) = refused(&two, one);
    assert_eq!(changes, [QueryChange::SourceGone { source: "t".into() }]);
}

#[test]
fn a_source_cannot_become_another_one() {
    let before = spec("SELECT count(*) AS n FROM s");
    let mut changed = before.clone();
    changed.streams[0].source.format = "rate".into();
    changed.streams[0].source.options = Options::new();
    let (changes, text, _) = refused(&before, changed);
    let (was, is) = ("memory".to_owned(), "rate".to_owned());
    assert_eq!(changes, [QueryChange::SourceFormat { source: "s".into(), was, is }]);
    assert!(text.ends_with("source `s` has the connector `rate`, its offsets are of `memory`"), "{text}");
}

#[test]
fn the_rate_of_a_source_can_change() {
    let world = after(&spec(COUNT));
    world.add("00:00:14", "a", "4");
    let mut changed = spec(COUNT);
    changed.streams[0].source.options = Options::new().with("maxBatchesPerTrigger", "2");
    assert_eq!(goes_on(&world, changed), ["a | 3"]);
}

#[test]
fn the_path_of_files_cannot_change_unless_only_their_names_count() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let files = |index: usize, name_only: bool| {
        let mut spec = spec("SELECT value, count(*) AS n FROM s GROUP BY value");
        let options = Options::new().with("path", folders[index].path().to_str().unwrap());
        let options = options.with("fileNameOnly", if name_only { "true" } else { "false" });
        spec.streams[0].source = SourceSpec { name: "s".into(), format: "text".into(), schema: None, options };
        spec
    };
    let world = World::new().unwrap();
    let write = |index: usize, name: &str| std::fs::write(folders[index].path().join(name), "a\n").unwrap();
    write(0, "1.txt");
    assert_eq!(goes_on(&world, files(0, false)), ["a | 1"]);
    let Err(error) = QueryRun::open(&world.session, files(1, false), StopSignal::new()) else {
        panic!("it was opened")
    };
    assert!(error.hint().unwrap().contains("fileNameOnly"), "{error:?}");
    let RuntimeError::Changed { changes } = error else { panic!("{error:?}") };
    assert!(matches!(&*changes, [QueryChange::SourcePlace { source, .. }] if source == "s"), "{changes:?}");
    world.pass_lease();
    write(1, "1.txt");
    write(1, "2.txt");
    assert_eq!(goes_on(&world, files(1, true)), ["a | 2"]);
}

#[test]
fn a_sink_that_keeps_no_account_can_take_over() {
    let world = after(&spec(COUNT));
    let mut changed = spec(COUNT);
    changed.sink = SinkSpec { format: "noop".into(), options: Options::new() };
    goes_on(&world, changed);
    assert_eq!(world.recorder.batches().len(), 2);
}

#[test]
fn a_file_sink_must_have_every_batch() {
    let to = |path: &str| SinkSpec { format: "json".into(), options: Options::new().with("path", path) };
    let rows = QuerySpec { mode: OutputMode::Append, ..spec("SELECT k FROM s") };
    let in_files = QuerySpec { sink: to("output"), ..rows.clone() };
    // Neither from another sink, nor from another path.
    for (before, changed) in [(&rows, &in_files), (&in_files, &QuerySpec { sink: to("elsewhere"), ..rows.clone() })] {
        let world = after(before);
        let Err(error) = QueryRun::open(&world.session, changed.clone(), StopSignal::new()) else {
            panic!("it was opened")
        };
        assert!(matches!(&error, RuntimeError::Sink(SinkError::Elsewhere { next, .. }) if next.0 == 2), "{error:?}");
        assert!(error.hint().is_some());
        world.pass_lease();
        goes_on(&world, before.clone());
    }
    let world = after(&in_files);
    goes_on(&world, QuerySpec { sink: SinkSpec { format: "noop".into(), options: Options::new() }, ..rows });
    assert_eq!(world.output().unwrap().len(), 2);
}

#[test]
fn filters_and_projections_can_change() {
    let filtered =
        "SELECT upper(k) AS name, n * 10 AS n, 1 AS one FROM (SELECT k, count(*) AS n FROM s WHERE v <> 3 GROUP BY k)";
    let world = after(&spec(filtered));
    assert_eq!(goes_on(&world, spec(COUNT)), ["a | 2"]);
    let world = after(&spec(COUNT));
    world.add("00:00:14", "a", "4");
    assert!(goes_on(&world, spec(filtered)).is_empty());
    assert_eq!(goes_on(&world, spec(filtered)), ["A | 20 | 1"]);
}

#[test]
fn grouping_keys_and_aggregates_cannot_change() {
    let change = |side, column: &str, was: Option<&str>, is: Option<&str>| ColumnChange {
        family: None,
        side,
        column: column.into(),
        was: was.map(str::to_owned),
        is: is.map(str::to_owned),
    };
    let cases = [
        ("SELECT k, v, count(*) AS n FROM s GROUP BY k, v", vec![change("key", "v", None, Some("Int64"))]),
        (
            "SELECT v, count(*) AS n FROM s GROUP BY v",
            vec![change("key", "k", Some("Utf8"), None), change("key", "v", None, Some("Int64"))],
        ),
        (
            "SELECT k, count(*) AS n, max(v) AS m FROM s GROUP BY k",
            vec![change("value", "max(s.v)[value]", None, Some("Int64"))],
        ),
    ];
    for (sql, expected) in cases {
        let (changes, _, hint) = refused(&spec(COUNT), spec(sql));
        let [QueryChange::State { uid, columns, was, is }] = &*changes else { panic!("{sql}: {changes:?}") };
        assert_eq!((uid.as_str(), columns), ("query-aggregate", &expected), "{sql}");
        assert!(was != is && hint.contains("keys and functions"), "{sql}: {hint}");
    }
    let (sum, text) =
        ("SELECT k, sum(v) AS x FROM s GROUP BY k", "SELECT k, sum(CAST(v AS DOUBLE)) AS x FROM s GROUP BY k");
    let (changes, shown, _) = refused(&spec(sum), spec(text));
    let [QueryChange::State { columns, .. }] = &*changes else { panic!("{changes:?}") };
    assert!(columns.iter().any(|column| column.is.as_deref() == Some("Float64")), "{shown}");
}

#[test]
fn the_columns_of_a_deduplication_cannot_change() {
    let deduplicated = |columns: &[&str]| {
        let mut spec = QuerySpec { mode: OutputMode::Append, ..spec("SELECT k, v FROM s") };
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        spec.streams[0].drop_duplicates = Some(DropDuplicates { columns, within_watermark: false });
        spec
    };
    let (changes, text, _) = refused(&deduplicated(&["k"]), deduplicated(&["k", "v"]));
    assert!(matches!(&*changes, [QueryChange::State { columns, .. }] if columns.len() == 1), "{changes:?}");
    assert!(text.contains("key column `v` Int64 is new"), "{text}");
    // Without it, all that it remembers would be lost; with it, it would not know what was before.
    let without = QuerySpec { mode: OutputMode::Append, ..spec("SELECT k, v FROM s") };
    let (changes, ..) = refused(&deduplicated(&["k"]), without.clone());
    assert!(matches!(&*changes, [QueryChange::OperatorGone { .. }]), "{changes:?}");
    let (changes, ..) = refused(&without, deduplicated(&["k"]));
    assert!(matches!(&*changes, [QueryChange::OperatorNew { .. }]), "{changes:?}");
}

#[test]
fn an_operator_under_another_name_is_lost_until_uid_names_it() {
    let named = |name: &str| spec(&format!("WITH {name} AS ({COUNT}) SELECT k, n FROM {name}"));
    let (changes, text, hint) = refused(&named("counts"), named("totals"));
    let gone =
        QueryChange::OperatorGone { uid: "counts-aggregate".into(), renamed_to: Some("totals-aggregate".into()) };
    assert_eq!(changes, [gone, QueryChange::OperatorNew { uid: "totals-aggregate".into() }]);
    assert!(text.contains("its state would be lost"), "{text}");
    assert!(hint.contains("`totals-aggregate = \"counts-aggregate\"` below [uid]"), "{hint}");
    let world = after(&named("counts"));
    let mut renamed = named("totals");
    renamed.uids.insert("totals-aggregate".into(), "counts-aggregate".into());
    assert_eq!(goes_on(&world, renamed), ["a | 2"]);
}

#[test]
fn triggers_and_plain_settings_can_change_and_frozen_ones_stay() {
    let world = after(&spec(COUNT));
    let mut changed = spec(COUNT);
    changed.trigger = Trigger::Once;
    changed.settings = Settings {
        partitions: 7,
        watermark_policy: WatermarkPolicy::Max,
        polling_delay_ms: 1,
        changelogs_before_snapshot: 1,
        ..Settings::default()
    };
    assert_eq!(goes_on(&world, changed), ["a | 2"]);
    let log = world.checkpoint().unwrap().unwrap().offset_log();
    let [first, last] = [0, 2].map(|batch| log.get(millstream_common::BatchId(batch)).unwrap().unwrap());
    assert_eq!(first.settings, last.settings);
    assert_eq!(last.state_schemas["query-aggregate"].partitions, 2);
}

#[test]
fn another_delay_counts_for_new_batches_and_the_watermark_never_goes_back() {
    let world = after(&watermarked(WINDOWS, 0));
    let watermark_after = |spec: QuerySpec| {
        let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap();
        let mut watermark = String::new();
        while let Some(progress) = run.run_next().unwrap() {
            watermark = progress.event_time["watermark"].clone();
        }
        run.close();
        watermark
    };
    // The newest row is of 00:00:13, and the watermark had come to 00:00:12.
    assert_eq!(watermark_after(watermarked(WINDOWS, 10)), "1970-01-01T00:00:12.000Z");
    world.add("00:00:30", "a", "1");
    assert_eq!(watermark_after(watermarked(WINDOWS, 10)), "1970-01-01T00:00:20.000Z");
}

#[test]
fn the_output_mode_can_change_unless_it_needs_what_was_dropped() {
    let in_mode = |spec: QuerySpec, mode| QuerySpec { mode, ..spec };
    let (changes, text, _) = refused(&watermarked(WINDOWS, 0), in_mode(watermarked(WINDOWS, 0), OutputMode::Complete));
    let (was, is) = (OutputMode::Update, OutputMode::Complete);
    assert_eq!(changes, [QueryChange::OutputMode { uid: "query-aggregate".into(), was, is }]);
    assert!(text.contains("those that the watermark passed were dropped"), "{text}");

    let world = after(&spec(COUNT));
    assert_eq!(goes_on(&world, in_mode(spec(COUNT), OutputMode::Complete)), ["a | 2", "b | 1"]);
    world.add("00:00:14", "b", "1");
    assert_eq!(goes_on(&world, spec(COUNT)), ["b | 2"]);

    let world = after(&in_mode(watermarked(WINDOWS, 0), OutputMode::Complete));
    assert_eq!(goes_on(&world, in_mode(watermarked(WINDOWS, 0), OutputMode::Append)), ["00:00:00 | 1"]);
}

#[test]
fn keys_and_columns_of_a_join_cannot_change() {
    let joined = |sql: &str| {
        let mut spec = QuerySpec { mode: OutputMode::Append, ..spec(sql) };
        spec.streams.push(stream("t"));
        spec
    };
    let before = joined("SELECT s.k FROM s JOIN t ON s.k = t.k");
    for (sql, part) in [
        ("SELECT s.k FROM s JOIN t ON s.k = t.k AND s.v = t.v", "key column `v@"),
        ("SELECT s.k, t.v FROM s JOIN t ON s.k = t.k", "value column `v` of `right-rows` Int64 is new"),
    ] {
        let (changes, text, _) = refused(&before, joined(sql));
        assert!(matches!(&*changes, [QueryChange::State { uid, .. }] if uid == "query-join"), "{changes:?}");
        assert!(text.contains(part), "{sql}: {text}");
    }
}
