//! Borders that go wrong: storage that is away for a moment, code that is refused, several swaps at once, and who waits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{Schema, SchemaRef};
use millstream_checkpoint::{OffsetEntry, SwapEntry, open_files};
use millstream_common::{BatchId, Digest, Hint, Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::control::{ControlClient, ControlServer, RunDir, SwapTerms};
use millstream_runtime::verdict::Verdict;
use millstream_runtime::{
    PluginSpec, QueryRun, QuerySpec, Remake, RuntimeError, Settings, StreamSpec, StreamingQuery, SwapGrounds, Swapped,
};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use streaming_stories::{Call, Fate, MeddledFiles, World, component, unit};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(parse_ddl("k string, v bigint").unwrap()))
}

fn plugin(name: &str, component: Vec<u8>) -> PluginSpec {
    PluginSpec { name: name.into(), component, limits: PluginLimits::default(), on_fault: FaultPolicy::Fail }
}

/// A query with two plugins: `sums` keeps state, `same` gives back what it gets.
fn spec(sums: Vec<u8>) -> QuerySpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: "rows".into(), format: "memory".into(), schema: None, options };
    QuerySpec {
        plugins: vec![plugin("sums", sums), plugin("same", component("echo").unwrap())],
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(
            "SELECT k, tally(echo_i64(v)) AS total FROM rows GROUP BY k",
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    }
}

fn of(file: &str) -> QuerySpec {
    spec(component(file).unwrap())
}

/// `echo` with something more in its file.
fn echo_again() -> Vec<u8> {
    let mut bytes = component("echo").unwrap();
    // A section without meaning, named `it`.
    bytes.extend([0, 3, 2, b'i', b't']);
    bytes
}

/// `tally_two` whose migration fails at a total that seven divides.
fn fussy() -> Vec<u8> {
    let mut bytes = component("tally_two").unwrap();
    let mark = b"upgrade-edition:base.";
    let at = bytes.windows(mark.len()).position(|window| window == mark).unwrap();
    let name = b"fails-on-an-old-key.";
    bytes[at + 16..at + 16 + name.len()].copy_from_slice(name);
    bytes
}

struct Place {
    world: World,
    files: Arc<MeddledFiles>,
    rows: MemoryStream,
}

impl Place {
    fn new() -> Self {
        let files = MeddledFiles::new(open_files("memory:///", &[]).unwrap());
        let world = World::on(Arc::clone(&files) as _);
        let rows = world.streams.create("rows", schema());
        Self { world, files, rows }
    }

    fn add(&self, k: &str, v: i64) {
        self.rows.add_data(unit(&schema(), &[vec![Some(k.to_owned()), Some(v.to_string())]]).unwrap()).unwrap();
    }

    fn try_open(&self, spec: &QuerySpec) -> Result<QueryRun, RuntimeError> {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, spec.clone(), StopSignal::new())
    }

    fn open(&self, spec: &QuerySpec) -> QueryRun {
        self.try_open(spec).unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
    }

    /// The rows of a batch of this row.
    fn batch(&self, run: &mut QueryRun, k: &str, v: i64) -> Vec<String> {
        self.add(k, v);
        let progress = run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error))).unwrap();
        self.world.recorder.batches().remove(&progress.batch_id).unwrap_or_default()
    }

    fn entry(&self, batch: u64) -> OffsetEntry {
        self.world.checkpoint().unwrap().unwrap().offset_log().get(BatchId(batch)).unwrap().unwrap()
    }

    fn swaps(&self) -> Vec<SwapEntry> {
        self.world.checkpoint().unwrap().unwrap().swap_log().all().unwrap()
    }

    /// What a batch ran: the code of `sums`, and that the state is of it.
    fn code(&self, batch: u64) -> (Digest, String) {
        let entry = self.entry(batch);
        (entry.plugins["sums"].digest, entry.state_schemas["query-aggregate"].schema_id.clone())
    }
}

fn swap(run: &QueryRun, file: &str) -> Receiver<Result<Swapped, String>> {
    run.swap("sums", component(file).unwrap(), SwapGrounds::unasked("swap"), Some(Remake::Migrate)).unwrap()
}

#[test]
fn a_border_that_fails_while_storage_is_away_leaves_the_old_code_and_its_state() {
    for end in ["swaps/2", "offsets/2"] {
        let place = Place::new();
        let mut run = place.open(&of("tally_one"));
        assert_eq!(place.batch(&mut run, "a", 1), ["a | 1"]);
        assert_eq!(place.batch(&mut run, "a", 10), ["a | 11"]);
        let before = place.code(1);
        let asked = swap(&run, "tally_three");
        let mut is_away = false;
        place.files.meddle(move |call, path| {
            is_away |= call == Call::Write && path.ends_with(end);
            if is_away { Fate::Fails } else { Fate::Passes }
        });
        place.add("a", 100);
        let error = run.run_next().unwrap_err();
        assert!(error.may_pass(), "{error:?}");
        assert!(asked.try_recv().unwrap().unwrap_err().contains("the storage is away"));
        place.files.leave_alone();
        run.run_next().unwrap().unwrap();
        assert_eq!(place.world.recorder.batches()[&2], ["a | 111"]);
        assert_eq!(place.code(2), before, "{end}");
        assert!(place.swaps().is_empty(), "nothing tells of a swap that was not: {:?}", place.swaps());
        run.close();
        let mut run = place.open(&of("tally_one"));
        assert_eq!(place.batch(&mut run, "a", 1000), ["a | 1111"]);
        run.close();
    }
}

#[test]
fn a_border_that_is_defined_is_ended_as_soon_as_storage_is_back() {
    for (end, fate) in [("commits/1", Fate::Fails), ("commits/1", Fate::IsUnheard), ("offsets/1", Fate::IsUnheard)] {
        let place = Place::new();
        let mut run = place.open(&of("tally_one"));
        place.batch(&mut run, "a", 1);
        place.world.recorder.skip(1);
        let asked = swap(&run, "tally_two");
        place.files.once(Call::Write, end, fate);
        place.add("a", 10);
        if end == "commits/1" {
            let error = run.run_next().unwrap_err();
            assert!(error.may_pass(), "{error:?}");
        }
        let progress = run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error))).unwrap();
        assert_eq!(asked.try_recv().unwrap().unwrap().batch, BatchId(1), "{end}, {fate:?}");
        assert_eq!(place.world.recorder.batches()[&progress.batch_id], ["a | 11"]);
        assert_eq!((progress.batch_id, place.code(2).0), (2, Digest::of(&component("tally_two").unwrap())));
        run.close();
        let mut run = place.open(&of("tally_one"));
        assert_eq!(place.batch(&mut run, "a", 100), ["a | 111"]);
        run.close();
    }
}

#[test]
fn a_swap_that_waits_for_the_log_is_told_of_by_the_border_behind_it() {
    let place = Place::new();
    let mut run = place.open(&of("tally_one"));
    place.batch(&mut run, "a", 1);
    place.world.recorder.skip(1);
    let first = run.swap("same", echo_again(), SwapGrounds::unasked("swap"), None).unwrap();
    let second = swap(&run, "tally_two");
    // There is nothing to read: only the border comes.
    assert!(run.run_next().unwrap().is_none());
    for answer in [first, second] {
        assert_eq!(answer.try_recv().unwrap().unwrap().batch, BatchId(1));
    }
    let told = place.swaps();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].swaps.keys().collect::<Vec<_>>(), ["same", "sums"]);
    assert!(told[0].is_of(&place.entry(1)));
    drop(run);
    let mut run = place.open(&of("tally_one"));
    assert_eq!(place.batch(&mut run, "a", 10), ["a | 11"]);
    assert_eq!(place.swaps(), told);
    run.close();
}

#[test]
fn code_of_the_query_file_that_the_first_border_refuses_is_judged_anew_at_the_next_start() {
    let place = Place::new();
    let mut run = place.open(&of("tally_one"));
    assert_eq!(place.batch(&mut run, "a", 1), ["a | 1"]);
    assert_eq!(place.batch(&mut run, "a", 6), ["a | 7"]);
    drop(run);
    // As if it had died before the second batch was done: the verdict does not see the seven yet.
    place.world.checkpoint_files().delete("commits/1").unwrap();
    let (old, new) = (Digest::of(&component("tally_one").unwrap()), Digest::of(&fussy()));
    let mut run = place.open(&spec(fussy()));
    run.run_next().unwrap().unwrap();
    assert_eq!(place.batch(&mut run, "a", 7), ["a | 14"]);
    let pin = place.entry(2).plugins["sums"].clone();
    assert_eq!((pin.digest, pin.declared), (old, old), "what was refused is not taken for what runs");
    run.close();

    let refused = place.try_open(&spec(fussy())).map(drop).unwrap_err();
    let RuntimeError::Refused { report } = refused else { panic!("{refused:?}") };
    assert_eq!(report.verdict, Verdict::Reject);
    let mut run = place.open(&of("tally_one"));
    assert_eq!(place.batch(&mut run, "a", 1), ["a | 15"]);
    run.close();

    place.world.recorder.skip(4);
    let mut run = place.open(&spec(fussy()));
    assert_eq!(place.batch(&mut run, "a", 1), ["a | 16"]);
    let pin = place.entry(5).plugins["sums"].clone();
    assert_eq!((pin.digest, pin.declared), (new, new));
    run.close();
}

#[test]
fn code_of_the_query_file_whose_border_fails_for_a_moment_takes_over_at_the_next() {
    let place = Place::new();
    let mut run = place.open(&of("tally_one"));
    place.batch(&mut run, "a", 1);
    run.close();
    let mut run = place.open(&of("tally_two"));
    place.files.once(Call::Write, "offsets/1", Fate::Fails);
    assert_eq!(place.batch(&mut run, "a", 10), ["a | 11"]);
    let (old, new) = (Digest::of(&component("tally_one").unwrap()), Digest::of(&component("tally_two").unwrap()));
    let pin = place.entry(1).plugins["sums"].clone();
    assert_eq!((pin.digest, pin.declared), (old, old));
    place.world.recorder.skip(2);
    assert_eq!(place.batch(&mut run, "a", 100), ["a | 111"]);
    let pin = place.entry(2).plugins["sums"].clone();
    assert_eq!((pin.digest, pin.declared), (new, new));
    run.close();
}

/// Rows come until then.
fn fed(place: &Place, query: &StreamingQuery, until: &mut dyn FnMut() -> bool) {
    let begin = Instant::now();
    while !until() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it takes too long");
        assert!(query.is_active(), "{:?}", query.exception().map(|error| describe_chain(&*error)));
        place.add("a", 1);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn without_sink(spec: QuerySpec) -> QuerySpec {
    QuerySpec { sink: SinkSpec { format: "noop".into(), options: Options::new() }, ..spec }
}

#[test]
fn a_shadow_over_which_a_border_passes_says_so_and_rejects_nobody() {
    let place = Place::new();
    let query = StreamingQuery::start(&place.world.session, without_sink(of("tally_one")), None).unwrap();
    place.add("a", 1);
    query.process_all_available().unwrap();
    let again = echo_again();
    let report = query.verdict("same", &again, Some(0)).unwrap();
    let error = std::thread::scope(|scope| {
        let shadow = scope.spawn(|| query.shadow(report, &again, 10_000).unwrap_err());
        let mut editions = ["tally_two", "tally_one"].iter().cycle();
        // One border may come before the shadow has seen a batch; the next does not.
        while !shadow.is_finished() {
            let next = component(editions.next().unwrap()).unwrap();
            let asked = query.swap_on("sums", next, SwapGrounds::unasked("swap"), Some(Remake::Migrate)).unwrap();
            fed(&place, &query, &mut || asked.try_recv().is_ok());
            let until = Instant::now() + Duration::from_millis(100);
            fed(&place, &query, &mut || Instant::now() > until);
        }
        shadow.join().unwrap()
    });
    let text = describe_chain(&error);
    assert!(text.contains("other code took over in batch") && text.contains("keys migrated"), "{text}");
    assert!(error.hint().unwrap().contains("try again"));
    query.stop().unwrap();
}

#[test]
fn clients_that_do_not_wait_for_a_border_keep_nobody_out() {
    let place = Place::new();
    let query = StreamingQuery::start(&place.world.session, without_sink(of("tally_one")), None).unwrap();
    place.add("a", 1);
    query.process_all_available().unwrap();
    let folder = tempfile::Builder::new().prefix("ms").tempdir().unwrap();
    let file = folder.path().join("echo.wasm");
    std::fs::write(&file, echo_again()).unwrap();
    let dir = RunDir::at(folder.path().join("run"));
    let server = ControlServer::start(Arc::new(query.clone()), &dir, None).unwrap();
    let terms = SwapTerms { batches: Some(0), ..SwapTerms::default() };
    let connect = || ControlClient::connect(&dir, query.id()).unwrap();
    for _ in 0..20 {
        connect().swap("same", &file, &terms).unwrap().accepted(&mut |_| {}).unwrap();
        // That a client has left is seen at the next look.
        std::thread::sleep(Duration::from_millis(50));
    }
    connect().status().unwrap();
    // Who does wait is told.
    let mut last = connect().swap("same", &file, &terms).unwrap().accepted(&mut |_| {}).unwrap();
    place.add("a", 1);
    assert!(last.wait(Duration::from_secs(20)).unwrap().is_some());
    drop(server);
    query.stop().unwrap();
}
