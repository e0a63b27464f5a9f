//! Stateful processors in queries: the clock, initial state, restarts with other code, batch queries, hostile code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::EventTime;
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::inspect::{CheckpointPlace, StateRequest, state};
use millstream_runtime::repartition::repartition;
use millstream_runtime::{PluginSpec, ProcessOptions, Progress, QueryRun, QuerySpec, Settings, StreamSpec, TableSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{World, component, rows as rows_as_text, unit};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(parse_ddl("k string, v bigint, at timestamp").unwrap()))
}

fn plugin(file: &str) -> PluginSpec {
    PluginSpec {
        name: "code".into(),
        component: component(file).unwrap(),
        limits: PluginLimits::default(),
        on_fault: FaultPolicy::Fail,
    }
}

fn spec(sql: &str, file: &str) -> QuerySpec {
    let stream = StreamSpec {
        source: SourceSpec {
            name: "rows".into(),
            format: "memory".into(),
            schema: None,
            options: Options::new().with("maxBatchesPerTrigger", "1"),
        },
        event_time: Some(EventTime { column: "at".into(), delay_us: 5_000_000 }),
        drop_duplicates: None,
    };
    QuerySpec {
        name: Some("processors".into()),
        plugins: vec![plugin(file)],
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(sql, vec![stream], SinkSpec { format: "recorder".into(), options: Options::new() })
    }
}

struct Place {
    world: World,
    rows: MemoryStream,
}

impl Place {
    fn new() -> Self {
        let world = World::new().unwrap();
        let rows = world.streams.create("rows", schema());
        Self { world, rows }
    }

    /// Rows such as `a,1; b,2`, all of one time.
    fn add(&self, rows: &str) {
        let value = |value: &str| Some(value.trim().to_owned());
        let row = |row: &str| row.split(',').map(value).chain([value("00:00:01")]).collect();
        let rows: Vec<Vec<Option<String>>> = rows.split(';').map(row).collect();
        self.rows.add_data(unit(&schema(), &rows).unwrap()).unwrap();
    }

    fn try_open(&self, spec: &QuerySpec) -> Result<QueryRun, String> {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, spec.clone(), StopSignal::new()).map_err(|error| describe_chain(&error))
    }

    fn open(&self, spec: &QuerySpec) -> QueryRun {
        self.try_open(spec).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The rows of the batch that comes next.
    fn batch(&self, run: &mut QueryRun) -> Vec<String> {
        let progress = next(run).unwrap_or_else(|error| panic!("{error}")).expect("there is a batch");
        let mut rows = self.world.recorder.batches().remove(&progress.batch_id).unwrap_or_default();
        rows.sort();
        rows
    }

    /// The state of the only operator, family by family, as text.
    fn state(&self) -> BTreeMap<String, Vec<String>> {
        let place = CheckpointPlace { place: "checkpoint".into(), options: Vec::new(), query: None };
        let tables = state(&self.world.session, &place, &StateRequest::default());
        let tables = tables.unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
        let text = |table: millstream_runtime::inspect::StateTable| {
            let (_, rows) = table.flat();
            // The partition is the last column, and says nothing here.
            let row = |row: String| row.rsplit_once(" | ").map(|(columns, _)| columns.to_owned()).unwrap_or_default();
            let mut cells: Vec<String> = rows_as_text(&rows).unwrap_or_default().into_iter().map(row).collect();
            cells.sort();
            (table.family, cells)
        };
        tables.into_iter().map(text).collect()
    }
}

fn next(run: &mut QueryRun) -> Result<Option<Progress>, String> {
    run.run_next().map_err(|error| describe_chain(&error))
}

fn balances(rows: &[(&str, i64)]) -> TableSpec {
    let schema: SchemaRef = Arc::new(Schema::new(parse_ddl("k string, v bigint").unwrap()));
    let columns: Vec<arrow::array::ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
    ];
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    TableSpec::Rows { name: "balances".into(), schema, rows: vec![rows] }
}

#[test]
fn state_is_spread_anew_after_a_restart_that_took_a_variable_away() {
    let place = Place::new();
    let sql = "SELECT * FROM totals(TABLE(rows) PARTITION BY k)";
    let mut run = place.open(&spec(sql, "processor_edition"));
    place.add("a,1; b,2");
    assert_eq!(place.batch(&mut run), ["a | 1001", "b | 2001"]);
    run.close();
    let without = spec(sql, "processors");
    let mut run = place.open(&without);
    place.add("a,10");
    assert_eq!(place.batch(&mut run), ["a | 11"]);
    run.close();
    place.world.pass_lease();
    let at = CheckpointPlace { place: "checkpoint".into(), options: Vec::new(), query: None };
    let done = repartition(&place.world.session, &at, 3).unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
    assert_eq!((done.batch, done.operators[0].keys), (Some(2), 2));
    place.world.recorder.skip(2);
    let mut run = place.open(&without);
    place.add("a,100; b,100");
    assert_eq!(place.batch(&mut run), ["a | 111", "b | 102"]);
    run.close();
}

#[test]
fn timers_and_times_to_live_by_the_clock_make_batches_of_their_own() {
    for restarts in [false, true] {
        let place = Place::new();
        let spec = spec("SELECT * FROM recent(TABLE(rows) PARTITION BY k)", "processors");
        let mut run = place.open(&spec);
        place.add("a,1; b,5");
        assert_eq!(place.batch(&mut run), ["a | 1", "b | 5"]);
        if restarts {
            run.close();
            place.world.clock.advance(Duration::from_secs(30));
            run = place.open(&spec);
        } else {
            assert!(next(&mut run).unwrap().is_none(), "nothing is due");
            place.world.clock.advance(Duration::from_secs(10));
        }
        assert_eq!(place.batch(&mut run), ["a! | 1", "b! | 1"]);
        assert!(next(&mut run).unwrap().is_none(), "each timer fires once");
        place.add("a,2");
        assert_eq!(place.batch(&mut run), if restarts { ["a | 2"] } else { ["a | 3"] });
        place.world.clock.advance(Duration::from_secs(60));
        assert_eq!(place.batch(&mut run), ["a! | 2"]);
        assert_eq!(place.state()["last"], Vec::<String>::new(), "what lived for a minute is gone");
        place.add("a,4");
        assert_eq!(place.batch(&mut run), ["a | 4"]);
        run.close();
    }
}

#[test]
fn state_is_read_as_rows_of_variables_and_timers() {
    let place = Place::new();
    let mut run = place.open(&spec(
        "SELECT * FROM baskets(TABLE(SELECT k, k AS item, v AS n FROM rows) PARTITION BY k)",
        "processors",
    ));
    place.add("a,1; a,2; b,5");
    place.batch(&mut run);
    let state = place.state();
    let families: Vec<&str> = state.keys().map(String::as_str).collect();
    assert_eq!(families, ["history", "history.range", "items", "items.range", "timers.by_key", "timers.by_time"]);
    assert_eq!(state["items"], ["a | 0 | a | 3", "b | 0 | b | 5"]);
    assert_eq!(state["history"], ["a | 0 | a | 1", "a | 1 | a | 2", "b | 0 | b | 5"]);
    run.close();
}

#[test]
fn initial_rows_of_a_static_table_come_before_the_first_batch() {
    for sql in [
        "SELECT * FROM totals(TABLE(rows) PARTITION BY k, initial => TABLE(balances))",
        "SELECT * FROM totals(TABLE(rows) PARTITION BY k, initial => TABLE(SELECT k AS owner, v FROM balances) PARTITION BY owner)",
    ] {
        let place = Place::new();
        let mut spec = spec(sql, "processors");
        spec.tables = vec![balances(&[("a", 100), ("b", 200)])];
        place.add("a,1; c,3");
        let mut run = place.open(&spec);
        assert_eq!(place.batch(&mut run), ["a | 101", "c | 3"]);
        run.close();
        let mut run = place.open(&spec);
        place.add("b,2; a,1");
        assert_eq!(place.batch(&mut run), ["a | 102", "b | 202"], "they come once");
        run.close();
    }
}

#[test]
fn variables_may_come_and_go_between_starts_and_may_not_change_their_meaning() {
    let place = Place::new();
    let sql = "SELECT * FROM totals(TABLE(rows) PARTITION BY k)";
    let mut run = place.open(&spec(sql, "processors"));
    place.add("a,1; b,2");
    place.batch(&mut run);
    run.close();
    let refused = place.try_open(&spec(sql, "processor_foreign")).err().unwrap();
    for part in [
        "the state `totals.total` of `query-processor` is stored as `1` (value Int64)",
        "wanted as `fraction` (value Float64)",
        "no migration leads there",
    ] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    let mut run = place.open(&spec(sql, "processor_edition"));
    place.add("a,4; c,7");
    assert_eq!(place.batch(&mut run), ["a | 5001", "c | 7001"]);
    place.add("a,1");
    assert_eq!(place.batch(&mut run), ["a | 6002"]);
    assert_eq!(place.state()["calls"].len(), 2);
    run.close();
    let mut run = place.open(&spec(sql, "processors"));
    place.add("a,10");
    assert_eq!(place.batch(&mut run), ["a | 16"]);
    assert!(!place.state().contains_key("calls"));
    run.close();
    let mut run = place.open(&spec(sql, "processor_edition"));
    place.add("a,1");
    assert_eq!(place.batch(&mut run), ["a | 17001"], "a variable that was gone begins anew");
    run.close();
}

#[test]
fn output_is_the_same_when_the_instance_is_thrown_away_after_every_call() {
    let play = |recycle: bool, rows_per_call: usize| {
        let place = Place::new();
        let mut spec =
            spec("SELECT * FROM baskets(TABLE(SELECT k, k AS item, v AS n FROM rows) PARTITION BY k)", "processors");
        spec.plugins[0].limits.recycle_every_call = recycle;
        spec.plugins[0].limits.rows_per_call = rows_per_call;
        let mut run = place.open(&spec);
        for rows in ["a,1; b,2; a,3; c,4; d,5", "a,0; b,7; e,1", "c,-1; c,3; d,2; a,2"] {
            place.add(rows);
            place.batch(&mut run);
        }
        run.close();
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        place.world.recorder.batches().into_values().map(sorted).collect::<Vec<_>>()
    };
    let whole = play(false, 8192);
    assert_eq!(whole[2], ["a | 2 a | a a a", "c | 3 c | c", "d | 7 d | d d"]);
    assert_eq!(play(true, 8192), whole);
    assert_eq!(play(true, 1), whole, "calls are cut between keys");
    assert_eq!(play(false, 2), whole);
}

#[test]
fn hostile_answers_are_garbage_and_change_nothing() {
    for (name, reason) in [
        ("rows_of_no_key", "there is no key"),
        ("unsorted_rows", "output rows: "),
        ("missing_variable", "it changes 0 variables, and there are 1"),
        ("extra_variable", "it changes 2 variables, and there are 1"),
        ("two_values", "comes after key 0"),
        ("entries_of_no_key", "there is no key 4294967295"),
        ("short_numbers", "are no numbers of keys"),
        ("short_column", "values of `v` has 7 bytes"),
        ("failed_with_rows", "failed, but has rows or changes"),
        ("failed_beyond", "is said to have failed"),
        ("timers_without_mode", "it registers timers, and goes by no time"),
        ("removed_from_value", "map keys are removed from a value"),
        ("huge_state", "wanted more than 67108864 bytes of memory"),
    ] {
        let place = Place::new();
        let mut spec = spec(&format!("SELECT * FROM {name}(TABLE(rows) PARTITION BY k)"), "hostile_processor");
        spec.settings.partitions = 1;
        place.add("a,1; b,2");
        let mut run = place.open(&spec);
        let error = next(&mut run).expect_err(name);
        assert!(error.contains(reason), "{name}: {error}");
        run.close();
        // The same batch, with the policy skip: no key gets through, and the batch ends.
        spec.plugins[0].on_fault = FaultPolicy::Skip;
        let mut run = place.open(&spec);
        assert_eq!(place.batch(&mut run), Vec::<String>::new(), "{name}");
        assert_eq!(place.state()["last"], Vec::<String>::new(), "{name}");
        run.close();
    }
}

#[test]
fn keys_at_which_code_traps_or_loops_are_found_and_the_others_go_on() {
    for name in ["traps_at_seven", "loops_at_seven"] {
        let place = Place::new();
        let mut spec = spec(&format!("SELECT * FROM {name}(TABLE(rows) PARTITION BY k)"), "hostile_processor");
        spec.plugins[0].on_fault = FaultPolicy::Skip;
        spec.plugins[0].limits.deadline = Duration::from_millis(50);
        place.add("a,1; b,7; c,3; d,4; e,7");
        let mut run = place.open(&spec);
        assert_eq!(place.batch(&mut run), ["1", "3", "4"], "{name}");
        place.add("b,8");
        assert_eq!(place.batch(&mut run), ["8"], "{name}");
        run.close();
    }
}

#[test]
fn what_a_processor_may_not_do_on_a_stream_is_refused() {
    let refused = |change: &dyn Fn(&mut QuerySpec), sql: &str| {
        let place = Place::new();
        let mut spec = spec(sql, "processors");
        change(&mut spec);
        place.try_open(&spec).err().unwrap_or_else(|| panic!("{sql} was not refused"))
    };
    let append = |spec: &mut QuerySpec| spec.mode = OutputMode::Append;
    let nothing = |_: &mut QuerySpec| {};
    let no_watermark = |spec: &mut QuerySpec| spec.streams[0].event_time = None;
    let complete = |spec: &mut QuerySpec| spec.mode = OutputMode::Complete;
    let silence = "SELECT * FROM silence(TABLE(rows) PARTITION BY k)";
    let totals = "SELECT * FROM totals(TABLE(rows) PARTITION BY k)";
    for (change, sql, reason) in [
        (&no_watermark as &dyn Fn(&mut QuerySpec), silence, "its rows have no watermark"),
        (
            &nothing,
            "SELECT * FROM silence(TABLE(SELECT k, CAST(at AS STRING) AS x, timestamp_micros(1) AS at FROM rows) PARTITION BY k)",
            "its rows have no watermark",
        ),
        (&no_watermark, "SELECT * FROM recent(TABLE(rows) PARTITION BY k, event_time => 'k')", "must be a TIMESTAMP"),
        (&no_watermark, "SELECT * FROM silence(TABLE(rows) PARTITION BY k, event_time => 'told')", "no watermark"),
        (&complete, totals, "output mode complete"),
        (
            &complete,
            "SELECT * FROM totals(TABLE(SELECT k, count(*) AS v FROM rows GROUP BY k) PARTITION BY k)",
            "output mode complete",
        ),
        (
            &nothing,
            "SELECT k, count(*) AS n FROM totals(TABLE(rows) PARTITION BY k) GROUP BY k",
            "above or below another stateful",
        ),
        (
            &nothing,
            "SELECT * FROM totals(TABLE(SELECT k, count(*) AS v FROM rows GROUP BY k) PARTITION BY k)",
            "above or below another stateful",
        ),
        (
            &append,
            "SELECT window(at, '1 minute') AS w, count(*) AS n FROM (SELECT since AS at FROM silence(TABLE(rows) PARTITION BY k)) GROUP BY window(at, '1 minute')",
            "watermark",
        ),
        (&nothing, "SELECT * FROM idle(TABLE(rows) PARTITION BY k)", "its code says that it may have append"),
        (
            &nothing,
            "SELECT * FROM totals(TABLE(rows) PARTITION BY k, initial => TABLE(rows))",
            "initial rows of `totals` are those of a stream",
        ),
        (&nothing, "SELECT * FROM nobody(TABLE(rows) PARTITION BY k)", "there is no processor `nobody`"),
        (&nothing, "SELECT * FROM totals(TABLE(rows))", "is partitioned by 1 columns (k), and 0 are given"),
        (&nothing, "SELECT * FROM totals(TABLE(SELECT k FROM rows) PARTITION BY k)", "takes a column `v`"),
        (&nothing, "SELECT * FROM totals(TABLE(SELECT k, CAST(v AS DOUBLE) AS v FROM rows) PARTITION BY k)", "CAST it"),
        (&nothing, "SELECT * FROM totals(TABLE(rows) PARTITION BY k, start => 1)", "takes no argument `start`"),
        (&append, "SELECT * FROM silence(TABLE(rows) PARTITION BY k, event_time => 'n')", "must be a TIMESTAMP"),
    ] {
        let error = refused(change, sql);
        assert!(error.contains(reason), "{sql}: {error}");
    }
}

#[test]
fn keys_are_expressions_and_numbers_are_widened() {
    let place = Place::new();
    let sql = "SELECT total FROM totals(TABLE(SELECT k, CAST(v AS INT) AS V FROM rows) PARTITION BY upper(substring(k, 1, 1))) AS t WHERE t.k = 'A'";
    let mut run = place.open(&spec(sql, "processors"));
    place.add("anna,1; Ab,2; b,5");
    assert_eq!(place.batch(&mut run), ["3"]);
    run.close();
}

#[test]
fn a_frame_is_the_same_query_with_the_same_state() {
    let place = Place::new();
    place.world.session.register_plugin(plugin("processors"));
    let session = &place.world.session;
    let table = match balances(&[("a", 100)]) {
        TableSpec::Rows { schema, rows, .. } => session.create_data_frame(schema, rows).unwrap(),
        TableSpec::Files(_) => panic!("they are rows"),
    };
    let frame = session.read_stream().name("rows").format("memory").option("maxBatchesPerTrigger", 1).load().unwrap();
    let frame = frame.with_watermark("at", "5 seconds").unwrap();
    let initial = ProcessOptions::default().initial_state(table.group_by(["k"]));
    let totals =
        frame.group_by(["upper(k)"]).transform_with_state_using("totals", OutputMode::Update, initial).unwrap();
    let mut of_frame = spec("", "processors");
    let writer = totals.filter("total > 1").unwrap().write_stream().output_mode(OutputMode::Update).format("recorder");
    of_frame.query = writer.spec().unwrap().query;
    of_frame.tables = writer.spec().unwrap().tables;
    place.add("a,1; b,2; A,3");
    let mut run = place.open(&of_frame);
    assert_eq!(place.batch(&mut run), ["A | 4", "B | 2"]);
    run.close();
    let sql = "SELECT * FROM totals(TABLE(rows) PARTITION BY upper(k)) WHERE total > 1";
    place.add("a,1; b,2");
    let mut run = place.open(&spec(sql, "processors"));
    assert_eq!(place.batch(&mut run), ["A | 5", "B | 4"]);
    run.close();
    let chained = frame.group_by(["k"]).flat_map_groups_with_state("idle", OutputMode::Append).unwrap();
    let counted = chained.with_column("at", "timestamp_micros(0)").unwrap().group_by(["k"]).count().unwrap();
    let writer = counted.write_stream().output_mode(OutputMode::Append).format("recorder");
    let refused = QueryRun::open(
        session,
        QuerySpec { plugins: vec![plugin("processors")], ..writer.spec().unwrap() },
        StopSignal::new(),
    );
    let refused = refused.map(|_| ()).map_err(|error| describe_chain(&error)).unwrap_err();
    assert!(refused.contains("flat_map_groups_with_state") || refused.contains("watermark"), "{refused}");
    let other = frame.group_by(["k"]).transform_with_state("totals", OutputMode::Append).unwrap();
    let writer = other.write_stream().output_mode(OutputMode::Update).format("recorder");
    let refused = QueryRun::open(
        session,
        QuerySpec { plugins: vec![plugin("processors")], ..writer.spec().unwrap() },
        StopSignal::new(),
    );
    let refused = refused.map(|_| ()).map_err(|error| describe_chain(&error)).unwrap_err();
    assert!(refused.contains("was called with output mode append"), "{refused}");
    assert!(frame.group_by(["k"]).transform_with_state("nobody", OutputMode::Append).is_err());
}

#[test]
fn a_batch_query_gives_every_key_once_and_fires_no_timer() {
    let folder = tempfile::tempdir().unwrap();
    let line = |k: &str, v: i64| format!("{{\"k\":\"{k}\",\"v\":{v},\"at\":\"1970-01-01T00:00:01Z\"}}\n");
    std::fs::write(folder.path().join("1.json"), line("a", 1) + &line("b", 2)).unwrap();
    std::fs::write(folder.path().join("2.json"), line("a", 3)).unwrap();
    let answer = |sql: &str| {
        let place = Place::new();
        let mut spec = spec(sql, "processors");
        spec.streams[0].source = SourceSpec {
            name: "rows".into(),
            format: "json".into(),
            schema: Some(schema()),
            options: Options::new().with("path", folder.path().display().to_string()),
        };
        spec.checkpoint = None;
        spec.mode = OutputMode::Append;
        spec.tables = vec![balances(&[("a", 100), ("z", 1)])];
        run_batch_query(&place.world.session, &spec, &StopSignal::new())
            .unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
        let mut rows: Vec<String> = place.world.recorder.batches().into_values().flatten().collect();
        rows.sort();
        rows
    };
    assert_eq!(answer("SELECT * FROM totals(TABLE(rows) PARTITION BY k)"), ["a | 4", "b | 2"]);
    let initial = "SELECT * FROM totals(TABLE(rows) PARTITION BY k, initial => TABLE(balances))";
    assert_eq!(answer(initial), ["a | 104", "b | 2"]);
    assert_eq!(answer("SELECT * FROM silence(TABLE(rows) PARTITION BY k)"), Vec::<String>::new());
    let sum = "SELECT sum(total) AS s FROM totals(TABLE(rows) PARTITION BY k) ORDER BY s";
    assert_eq!(answer(sum), ["6"]);
    assert_eq!(answer("SELECT * FROM recent(TABLE(rows) PARTITION BY k)"), ["a | 4", "b | 2"]);
}
