//! State that goes on under code with another form of it: at a start, at a swap, in the shadow, beside a running query.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::inspect::{CheckpointPlace, history};
use millstream_runtime::verdict::{Check, Verdict, VerdictReport, VerdictRequest, check_component};
use millstream_runtime::{
    PluginSpec, QueryRun, QuerySpec, Remake, RuntimeError, Settings, StreamSpec, StreamingQuery, SwapGrounds,
};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streaming_stories::{World, component, unit};

const TALLY: &str = "SELECT k, tally(v) AS total FROM rows GROUP BY k";
const TRACKER: &str = "SELECT k, what, n, text FROM tracker(TABLE(SELECT v AS k, w AS v, at FROM rows) PARTITION BY k)";
const TOTALS: &str = "SELECT * FROM totals(TABLE(rows) PARTITION BY k)";

fn schema() -> SchemaRef {
    Arc::new(Schema::new(parse_ddl("k string, v bigint, w bigint, at timestamp").unwrap()))
}

/// A query whose plugin `code` is of that file.
fn spec(sql: &str, file: &str) -> QuerySpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: "rows".into(), format: "memory".into(), schema: None, options };
    let event_time = Some(millstream_plan::EventTime { column: "at".into(), delay_us: 0 });
    let plugin = PluginSpec {
        name: "code".into(),
        component: component(file).unwrap(),
        limits: PluginLimits::default(),
        on_fault: FaultPolicy::Fail,
    };
    QuerySpec {
        name: Some("carried".into()),
        plugins: vec![plugin],
        mode: if sql == TRACKER { OutputMode::Append } else { OutputMode::Update },
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, no_data_batches: false, ..Settings::default() },
        ..QuerySpec::new(
            sql,
            vec![StreamSpec { source, event_time, drop_duplicates: None }],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
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

    /// Rows such as `a,1,5,00:00:01; b,2,6,00:00:01`.
    fn add(&self, rows: &str) {
        let row = |row: &str| row.split(',').map(|value| Some(value.trim().to_owned())).collect();
        let rows: Vec<Vec<Option<String>>> = rows.split(';').map(row).collect();
        self.rows.add_data(unit(&schema(), &rows).unwrap()).unwrap();
    }

    fn try_open(&self, spec: &QuerySpec) -> Result<QueryRun, RuntimeError> {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, spec.clone(), StopSignal::new())
    }

    fn open(&self, spec: &QuerySpec) -> QueryRun {
        self.try_open(spec).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
    }

    /// The rows of the batch that comes next.
    fn batch(&self, run: &mut QueryRun) -> Vec<String> {
        let progress = run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error))).unwrap();
        let mut rows = self.world.recorder.batches().remove(&progress.batch_id).unwrap_or_default();
        rows.sort();
        rows
    }

    /// What became of the state, component by component.
    fn states(&self, spec: &QuerySpec) -> Vec<(String, String)> {
        let place = CheckpointPlace::of_query(spec.clone()).unwrap();
        let histories = history(&self.world.session, &place).unwrap();
        let spans = histories[0].components.iter();
        spans.map(|span| (span.by.clone(), span.state.clone().unwrap_or_default())).collect()
    }

    fn verdict(&self, spec: &QuerySpec, file: &str) -> VerdictReport {
        let place = CheckpointPlace::of_query(spec.clone()).unwrap();
        let request = VerdictRequest { plugin: None, batches: 1 };
        check_component(&self.world.session, &place, &request, &component(file).unwrap()).unwrap()
    }

    fn swap(&self, run: &mut QueryRun, file: &str, border: u64) {
        self.world.recorder.skip(border);
        let asked = run.swap("code", component(file).unwrap(), SwapGrounds::unasked("swap"), Some(Remake::Migrate));
        let asked = asked.unwrap();
        // The border is taken before the next batch; that there is none is no matter.
        run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error)));
        let swapped = asked.try_recv().unwrap().unwrap();
        assert_eq!(swapped.batch.0, border);
    }
}

#[test]
fn a_start_whose_file_names_code_with_another_form_migrates_at_its_first_border() {
    let place = Place::new();
    let (one, three) = (spec(TALLY, "tally_one"), spec(TALLY, "tally_three"));
    let mut run = place.open(&one);
    place.add("a,1,0,00:00:01; b,2,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 1", "b | 2"]);
    place.add("a,10,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 11"]);
    run.close();

    place.world.recorder.skip(2);
    let mut run = place.open(&three);
    place.add("a,100,0,00:00:01; c,5,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 111", "c | 5"]);
    run.close();
    assert_eq!(place.states(&three)[1], ("restart".into(), "migrated".into()));

    // Neither knows a way back.
    let refused = place.try_open(&one).map(drop).unwrap_err();
    let RuntimeError::Refused { report } = refused else { panic!("{refused:?}") };
    assert!(report.reasons().contains("no migration leads there"), "{report}");
    let mut run = place.open(&three);
    place.add("b,1000,0,00:00:01");
    let rows = place.batch(&mut run);
    run.close();
    assert_eq!(rows, ["b | 1002"]);
}

#[test]
fn a_start_whose_file_names_code_that_fails_at_an_old_key_is_refused_and_the_old_code_goes_on() {
    let place = Place::new();
    let one = spec(TALLY, "tally_one");
    let mut run = place.open(&one);
    place.add("a,7,0,00:00:01; b,2,0,00:00:01");
    place.batch(&mut run);
    run.close();
    let mut bytes = component("tally_two").unwrap();
    let mark = b"upgrade-edition:base.";
    let at = bytes.windows(mark.len()).position(|window| window == mark).unwrap();
    let name = b"fails-on-an-old-key.";
    bytes[at + 16..at + 16 + name.len()].copy_from_slice(name);
    let mut failing = spec(TALLY, "tally_two");
    failing.plugins[0].component = bytes;
    let refused = place.try_open(&failing).map(drop).unwrap_err();
    let RuntimeError::Refused { report } = refused else { panic!("{refused:?}") };
    for part in ["cannot be migrated at key {\"k\":\"a\"}", "7 is a multiple of seven"] {
        assert!(report.reasons().contains(part), "{part} in {report}");
    }
    let mut run = place.open(&one);
    place.add("a,1,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 8"]);
    run.close();
}

#[test]
fn an_unfinished_batch_is_ended_by_the_old_code_before_a_start_migrates() {
    let place = Place::new();
    let one = spec(TALLY, "tally_one");
    let mut run = place.open(&one);
    for (row, total) in [("a,1,0,00:00:01", "a | 1"), ("a,2,0,00:00:01", "a | 3")] {
        place.add(row);
        assert_eq!(place.batch(&mut run), [total]);
    }
    run.close();
    // As if it had died before the second batch was done.
    let files = place.world.checkpoint_files();
    files.delete("commits/1").unwrap();
    place.world.recorder.skip(2);
    let mut run = place.open(&spec(TALLY, "tally_two"));
    assert!(run.has_unfinished());
    assert_eq!(place.batch(&mut run), ["a | 3"], "the same batch by the same code");
    place.add("a,4,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 7"]);
    run.close();
    let states = place.states(&spec(TALLY, "tally_two"));
    assert_eq!(states[1], ("restart".into(), "migrated".into()));
}

#[test]
fn a_value_a_list_a_map_and_timers_of_a_processor_get_over_migrations_there_and_back() {
    let place = Place::new();
    let of_one = spec(TRACKER, "ledger_one");
    let mut run = place.open(&of_one);
    place.add("x,1,5,00:00:01; x,1,6,00:00:01; x,2,7,00:00:01");
    assert_eq!(place.batch(&mut run), ["1 | rows | 11 | [5, 6] [(1, 1), (2, 1)]", "2 | rows | 7 | [7] [(3, 1)]"]);
    let report = place.verdict(&of_one, "ledger_three");
    assert_eq!(report.verdict, Verdict::NeedsApproval, "its rows tell more: {report}");
    assert_eq!(report.migration.len(), 3, "{report}");
    place.swap(&mut run, "ledger_three", 1);
    place.add("x,1,9,00:00:02");
    assert_eq!(place.batch(&mut run), ["1 | rows | 20 | [(5, 5), (6, 6), (9, 9)] [(1, 2, 9), (2, 1, -1)] 1 calls"]);
    // The timer of the first row was kept: it is due by the watermark of second four.
    place.add("x,3,1,00:00:05");
    place.batch(&mut run);
    place.add("x,3,2,00:00:06");
    let rows = place.batch(&mut run);
    assert_eq!(rows[0], "1 | timer | 4 | 20 in 1 calls");
    assert_eq!(rows[1], "2 | timer | 4 | 7 in 0 calls");
    place.swap(&mut run, "ledger_one", 5);
    place.add("x,1,100,00:00:07");
    assert_eq!(place.batch(&mut run)[0], "1 | rows | 120 | [100] [(0, 1), (1, 2), (2, 1)]");
    run.close();
    // And at a start.
    place.world.recorder.skip(7);
    let mut run = place.open(&spec(TRACKER, "ledger_two"));
    place.add("x,1,4,00:00:08");
    assert_eq!(place.batch(&mut run)[0], "1 | rows | 124 | [100, 4] [(0, 2, 4), (1, 2, -1), (2, 1, -1)] 1 calls");
    run.close();
}

#[test]
fn variables_come_and_go_at_a_swap_as_they_do_at_a_start() {
    let place = Place::new();
    let before = spec(TOTALS, "processors");
    let mut run = place.open(&before);
    place.add("a,1,0,00:00:01; b,2,0,00:00:01");
    place.batch(&mut run);
    let report = place.verdict(&before, "processor_edition");
    assert!(report.migration.contains(&"`calls` of `query-processor` is new".to_owned()), "{report}");
    assert!(report.findings.iter().all(|finding| finding.check != Check::Structure), "{report}");
    place.swap(&mut run, "processor_edition", 1);
    place.add("a,4,0,00:00:01; c,7,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 5001", "c | 7001"]);
    let report = place.verdict(&before, "processors");
    assert_eq!(report.verdict, Verdict::NeedsApproval, "{report}");
    assert!(report.reasons().contains("`calls` of `query-processor` is gone, and what it holds with it"), "{report}");
    place.swap(&mut run, "processors", 3);
    place.add("a,10,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 15"]);
    // What a variable has left in files is in nobody's way at the next migration.
    place.swap(&mut run, "processor_edition", 5);
    place.add("a,1,0,00:00:01");
    assert_eq!(place.batch(&mut run), ["a | 16001"]);
    run.close();
}

/// A query that gets rows all the time, until it is stopped.
fn fed(place: &Place, query: &StreamingQuery, until: &mut dyn FnMut() -> bool) {
    let begin = Instant::now();
    let mut n = 0;
    while !until() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it takes too long");
        assert!(query.is_active(), "{:?}", query.exception().map(|error| describe_chain(&*error)));
        n += 1;
        place.add(&format!("k{},{n},0,00:00:01; k{},1,0,00:00:01", n % 7, n % 3));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_candidate_that_migrates_runs_in_the_shadow_and_takes_over_beside_the_running_query() {
    let place = Place::new();
    let mut of_one = spec(TALLY, "tally_one");
    of_one.sink = SinkSpec { format: "noop".into(), options: Options::new() };
    let query = StreamingQuery::start(&place.world.session, of_one, None).unwrap();
    let mut batches = 0;
    fed(&place, &query, &mut || {
        batches += 1;
        batches > 10
    });
    query.process_all_available().unwrap();
    let two = component("tally_two").unwrap();
    let report = query.verdict("code", &two, Some(2)).unwrap();
    assert_eq!(report.verdict, Verdict::OkAfterMigration, "{report}");
    let report = std::thread::scope(|scope| {
        let shadow = scope.spawn(|| query.shadow(report, &two, 5).unwrap());
        fed(&place, &query, &mut || shadow.is_finished());
        shadow.join().unwrap()
    });
    let seen = report.shadow.as_ref().unwrap();
    assert_eq!((seen.batches.len(), seen.rows_changed), (5, 0), "{report}");
    // So few rows say nothing about its cost, which may be held against it.
    assert!(seen.rows_after >= 5 && report.verdict != Verdict::Reject, "{report}");
    let asked = query.swap_on("code", two, SwapGrounds::of("swap", &report, false), Some(Remake::Migrate)).unwrap();
    let mut answer = None;
    fed(&place, &query, &mut || {
        answer = asked.try_recv().ok();
        answer.is_some()
    });
    let swapped = answer.unwrap().unwrap();
    query.process_all_available().unwrap();
    query.stop().unwrap();
    let checkpoint = place.world.checkpoint().unwrap().unwrap();
    let entry = checkpoint.offset_log().get(swapped.batch).unwrap().unwrap();
    let border = entry.border.unwrap();
    assert!(border.what.contains("keys migrated: `tally` of `query-aggregate`"), "{border:?}");
    // What is in the files is what the stores had that were handed over.
    let mut run = place.open(&{
        let mut spec = spec(TALLY, "tally_one");
        spec.name = Some("again".into());
        spec.sink = SinkSpec { format: "noop".into(), options: Options::new() };
        spec
    });
    place.add("a,1,0,00:00:01");
    run.run_next().unwrap().unwrap();
    run.close();
}
