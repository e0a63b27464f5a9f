//! Sources that plugins bring, in queries: ranges in the log, the same rows after restarts, crashes and swaps, replay with the
//! code that read them, triggers, options, and grants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_common::{BatchId, Fault, Hint, Options, OutputMode, StopSignal, Trigger, describe_chain};
use millstream_plan::EventTime;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::inspect::CheckpointPlace;
use millstream_runtime::replay::replay;
use millstream_runtime::verdict::{Verdict, VerdictReport, VerdictRequest, check_component};
use millstream_runtime::{PluginSpec, Progress, QueryRun, QuerySpec, RuntimeError, Settings, StreamSpec, SwapGrounds};
use millstream_sink::SinkSpec;
use millstream_source::contract;
use millstream_source::{SourceRegistry, SourceSpec};
use millstream_wasm::{BatchStamp, FaultPolicy, HttpGrant, Permissions, PluginHost, PluginLimits, PluginSlot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{SourceKind, TextServer, Variant, World, component, crash_everywhere, parse, play};

const STORY: &str = "# Goal: a windowed count over a file that grows behind a web server.
source events (at timestamp, k string) watermark at delay 5 seconds
query SELECT window(at, '10 seconds').start AS start, split(line, ' ')[1] AS k, count(*) AS n
  FROM events GROUP BY window(at, '10 seconds'), split(line, ' ')[1]
mode append

add events 00:00:01,a; 00:00:02,b; 00:00:12,a
batch
----

no-data batch
----

add events 00:00:03,a; 00:00:16,c; 00:00:17,a; 00:00:18,a; 00:00:18,b
batch
----

no-data batch
----
00:00:00 | a | 2
00:00:00 | b | 1

add events 00:00:04,late; 00:00:33,b
batch
----

late_rows 1
no-data batch
----
00:00:10 | a | 3
00:00:10 | b | 1
00:00:10 | c | 1

idle
";

fn tail() -> Variant {
    Variant { source: SourceKind::Tail, ..Variant::default() }
}

#[test]
fn a_windowed_count_over_a_plugin_source_is_the_same_with_restarts_fresh_instances_and_any_partitions() {
    let story = parse("tail", STORY).unwrap();
    let play = |variant: Variant| play(&story, variant).unwrap_or_else(|error| panic!("{variant:?}: {error:#}"));
    let straight = play(Variant { replays: true, ..tail() });
    assert_eq!(straight.batches.len(), 6);
    for partitions in [1, 2, 5] {
        let restarted =
            play(Variant { partitions: Some(partitions), restart_after_every_batch: true, replays: true, ..tail() });
        assert_eq!(restarted.batches, straight.batches);
    }
    play(Variant { fresh_instances: true, restart_after_every_batch: true, ..tail() });
    play(Variant { repartition_after_every_batch: true, ..tail() });
}

#[test]
fn a_crash_at_any_durable_write_changes_nothing() {
    let story = parse("tail", STORY).unwrap();
    let crashes = crash_everywhere(&story, Variant { partitions: Some(2), ..tail() });
    assert!(crashes.unwrap_or_else(|error| panic!("{error:#}")) >= 40);
}

/// Three steps of a script.
const SCRIPT: &str = "1 a, 2 b, 3 a; 12 c; 21 a, 22 c";

fn script() -> Options {
    Options::new().with("plugin", "events").with("source", "script").with("script", SCRIPT)
}

fn plugin(code: &str, permissions: Permissions) -> PluginSpec {
    let limits = PluginLimits {
        deadline: Duration::from_secs(20),
        permissions: Arc::new(permissions),
        ..PluginLimits::default()
    };
    let component = component(code).unwrap_or_else(|error| panic!("{error:#}"));
    PluginSpec { name: "events".into(), component, limits, on_fault: FaultPolicy::Fail }
}

/// Everything that the component `sources` asks for.
fn granted() -> Permissions {
    Permissions { clock: true, random: true, config: Some(BTreeMap::new()), http: None }
}

fn spec(sql: &str, options: Options) -> QuerySpec {
    let source = SourceSpec { name: "s".into(), format: "plugin".into(), schema: None, options };
    let streams = vec![StreamSpec { source, event_time: None, drop_duplicates: None }];
    let sink = SinkSpec { format: "recorder".into(), options: Options::new() };
    QuerySpec {
        name: Some("sources".into()),
        plugins: vec![plugin("sources", granted())],
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(sql, streams, sink)
    }
}

const KEYS: &str = "SELECT unix_seconds(at) AS at, k FROM s";

fn open(world: &World, spec: &QuerySpec) -> QueryRun {
    QueryRun::open(&world.session, spec.clone(), StopSignal::new())
        .unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

fn next(run: &mut QueryRun) -> Option<Progress> {
    run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
}

fn all(world: &World, spec: &QuerySpec) -> Vec<Progress> {
    let mut run = open(world, spec);
    let told = std::iter::from_fn(|| next(&mut run)).collect();
    run.close();
    told
}

fn offsets(progress: &Progress) -> (Option<String>, Option<String>) {
    let text = |offset: &Option<serde_json::Value>| offset.as_ref().map(ToString::to_string);
    (text(&progress.sources[0].start_offset), text(&progress.sources[0].end_offset))
}

#[test]
fn a_limit_makes_batches_of_it_and_progress_shows_the_offsets() {
    let world = World::new().unwrap();
    let told = all(&world, &spec(KEYS, script().with("maxRowsPerTrigger", "2")));
    let ranges: Vec<_> = told.iter().map(offsets).collect();
    let text = |offset: &str| Some(format!("\"{offset}\""));
    assert_eq!(ranges, [(None, text("1")), (text("1"), text("2")), (text("2"), text("3"))]);
    assert_eq!(told.iter().map(|told| told.num_input_rows).collect::<Vec<_>>(), [3, 1, 2]);
    assert_eq!(told[0].sources[0].description, "PluginSource[events.script]");
    assert!(told.iter().all(|told| told.plugins[0].calls >= 2), "{told:?}");
    let rows: Vec<String> = world.recorder.batches().into_values().flatten().collect();
    assert_eq!(rows, ["1 | a", "2 | b", "3 | a", "12 | c", "21 | a", "22 | c"]);
}

#[test]
fn once_takes_everything_and_available_now_what_there_is_in_batches() {
    let limited = script().with("maxRowsPerTrigger", "1");
    for (trigger, batches) in [(Trigger::Once, 1), (Trigger::AvailableNow, 3)] {
        let world = World::new().unwrap();
        let told = all(&world, &QuerySpec { trigger, ..spec(KEYS, limited.clone()) });
        assert_eq!(told.len(), batches, "{trigger}");
        assert_eq!(world.recorder.batches().into_values().flatten().count(), 6);
    }
    let world = World::new().unwrap();
    let seconds = Options::new().with("plugin", "events").with("source", "seconds").with("maxRowsPerTrigger", "2");
    let query = QuerySpec { trigger: Trigger::AvailableNow, ..spec("SELECT tick FROM s", seconds) };
    assert!(all(&world, &query).is_empty(), "it begins now");
    world.clock.advance(Duration::from_secs(5));
    let mut run = open(&world, &query);
    assert_eq!(next(&mut run).unwrap().num_input_rows, 2);
    world.clock.advance(Duration::from_secs(5));
    assert_eq!(next(&mut run).unwrap().num_input_rows, 2);
    assert_eq!(next(&mut run).unwrap().num_input_rows, 1);
    assert!(next(&mut run).is_none(), "what came later is for the next start");
}

#[test]
fn where_a_query_began_is_kept() {
    let world = World::new().unwrap();
    let options = Options::new().with("plugin", "events").with("source", "seconds");
    let query = spec("SELECT tick FROM s", options);
    let mut run = open(&world, &query);
    assert!(next(&mut run).is_none());
    drop(run);
    world.pass_lease();
    world.clock.advance(Duration::from_secs(3));
    let told = all(&world, &query);
    assert!(told[0].num_input_rows > 3, "rows since the first start: {}", told[0].num_input_rows);
}

#[test]
fn the_contract_of_sources_holds() {
    let host = PluginHost::new().unwrap();
    let component = host.load("events", &component("sources").unwrap()).unwrap();
    let limits = PluginLimits { permissions: Arc::new(granted()), ..PluginLimits::default() };
    let slot = PluginSlot::new("events", host, component, limits, FaultPolicy::Fail);
    let clock = Arc::new(millstream_common::ManualClock::at(1_700_000_000_000));
    let stamp = {
        let (slot, clock) = (Arc::clone(&slot), Arc::clone(&clock));
        move || {
            let time_ms = millstream_common::Clock::now_ms(clock.as_ref());
            slot.begin_batch(BatchStamp { query: None, batch: Some(BatchId(3)), time_ms });
        }
    };
    stamp();
    let registry = SourceRegistry::with_builtins().with_plugins(&[slot]);
    let options = Options::new().with("plugin", "events").with("source", "seconds");
    let spec = SourceSpec { name: "s".into(), format: "plugin".into(), schema: None, options };
    let factory = Arc::clone(registry.factory(&spec).unwrap());
    let mut feed = {
        let clock = Arc::clone(&clock);
        move || {
            clock.advance(Duration::from_secs(4));
            stamp();
        }
    };
    contract::source(&mut contract::Subject { factory, spec, feed: &mut feed, clock, replays_after_restart: true });
}

fn swap(run: &mut QueryRun, code: &str) -> Result<(), String> {
    let bytes = component(code).unwrap();
    let answer = run.swap("events", bytes, SwapGrounds::unasked("test"), None).unwrap();
    let told = next(run);
    answer.recv().unwrap().map(|swapped| assert_eq!(Some(swapped.batch.0), told.map(|told| told.batch_id)))
}

#[test]
fn other_code_reads_from_the_border_on_and_each_batch_again_with_the_code_that_it_had() {
    let world = World::new().unwrap();
    let query = spec(KEYS, script().with("maxRowsPerTrigger", "1"));
    let mut run = open(&world, &query);
    assert!(next(&mut run).is_some());
    swap(&mut run, "sources_next").unwrap();
    drop(run);
    world.pass_lease();
    let mut run = open(&world, &query);
    let told = next(&mut run).unwrap();
    run.close();
    let rows: Vec<String> = world.recorder.batches().into_values().flatten().collect();
    assert_eq!(rows, ["1 | a", "2 | b", "3 | a", "12 | C", "21 | A", "22 | C"]);
    let log = world.checkpoint().unwrap().unwrap();
    let digest =
        |batch: u64| log.offset_log().get(BatchId(batch)).unwrap().unwrap().plugins["events"].digest.to_string();
    assert_ne!(digest(0), digest(1));
    assert_eq!(digest(2), told.plugins[0].digest);
    for batch in 0..3 {
        let again = replay(&world.session, &query, batch, None).unwrap();
        let input = &again.inputs["s"];
        assert!(again.is_same && input.was.is_some(), "{again:?}");
        assert_eq!((again.plugins["events"].clone(), input.rows), (digest(batch), again.input_rows));
    }
}

#[test]
fn a_swap_that_changes_the_columns_or_needs_an_option_leaves_the_old_code() {
    let world = World::new().unwrap();
    let mut run = open(&world, &spec(KEYS, script().with("maxRowsPerTrigger", "1")));
    assert!(next(&mut run).is_some());
    let refused = swap(&mut run, "sources_other").unwrap_err();
    assert!(refused.contains("column `k` of `script` was Utf8 and is Int64"), "{refused}");
    let refused = swap(&mut run, "sources_needy").unwrap_err();
    assert!(refused.contains("source `script` must be given the option `more`"), "{refused}");
    let rows: Vec<String> = world.recorder.batches().into_values().flatten().collect();
    assert_eq!(rows.len(), 6, "{rows:?}");
    assert!(rows.contains(&"22 | c".to_owned()), "{rows:?}");
}

fn verdict(world: &World, query: &QuerySpec, code: &str) -> VerdictReport {
    let place = CheckpointPlace::of_query(query.clone()).unwrap();
    let request = VerdictRequest { plugin: None, batches: 3 };
    check_component(&world.session, &place, &request, &component(code).unwrap()).unwrap()
}

#[test]
fn the_verdict_reads_the_last_ranges_again_with_both() {
    let world = World::new().unwrap();
    let query = spec(KEYS, script().with("maxRowsPerTrigger", "1"));
    assert_eq!(all(&world, &query).len(), 3);
    let same = verdict(&world, &query, "sources");
    assert_eq!((same.verdict, same.used), (Verdict::Ok, vec!["script".to_owned()]));
    let loud = verdict(&world, &query, "sources_next");
    assert_eq!(loud.verdict, Verdict::NeedsApproval, "{loud:?}");
    assert!(loud.reasons().contains("6 of 6 rows of the result come out otherwise"), "{loud:?}");
    for (code, reason) in [
        ("sources_other", "column `k` of `script` was Utf8 and is Int64"),
        ("sources_needy", "must be given the option `more`"),
        ("text_plugin", "source `script` is gone"),
    ] {
        let rejected = verdict(&world, &query, code);
        assert_eq!(rejected.verdict, Verdict::Reject, "{code}");
        assert!(rejected.reasons().contains(reason), "{code}: {rejected:?}");
    }
}

#[test]
fn options_of_the_plugin_and_grants_hold_for_its_sources() {
    let told = Options::new().with("plugin", "events").with("source", "told");
    let world = World::new().unwrap();
    let mut query = spec("SELECT what FROM s", told);
    let config = Some(BTreeMap::from([("what".to_owned(), "the plugin's own".to_owned())]));
    query.plugins = vec![plugin("sources", Permissions { config, ..granted() })];
    assert_eq!(all(&world, &query).len(), 1);
    assert_eq!(world.recorder.batches()[&0], ["the plugin's own"]);
    query.plugins = vec![plugin("sources", Permissions { random: false, ..granted() })];
    let error = QueryRun::open(&World::new().unwrap().session, query, StopSignal::new()).err().unwrap();
    assert!(describe_chain(&error).contains("imports `random`, which is not granted"), "{error}");
}

#[test]
fn what_the_query_says_of_a_source_is_checked_before_it_starts() {
    let plugin_only = || Options::new().with("plugin", "events");
    let refused = |options: Options| {
        let error =
            QueryRun::open(&World::new().unwrap().session, spec(KEYS, options), StopSignal::new()).err().unwrap();
        assert_eq!(error.fault(), Fault::Query, "{error:?}");
        describe_chain(&error)
    };
    assert!(refused(Options::new()).contains("option `plugin` of source `plugin` is missing"));
    assert!(refused(Options::new().with("plugin", "x")).contains("the query has `events`"));
    assert!(refused(plugin_only()).contains("has the sources `script`, `seconds`, `told`"));
    assert!(refused(plugin_only().with("source", "x")).contains("plugin `events` has the sources"));
    let script_only = || plugin_only().with("source", "script");
    assert!(refused(script_only()).contains("option `script` of source `script` is missing"));
    assert!(refused(script().with("color", "red")).contains("option `color` is unknown to source `script`"));
    assert!(refused(script().with("maxRowsPerTrigger", "0")).contains("at least 1"));
    let world = World::new().unwrap();
    assert_eq!(all(&world, &spec(KEYS, script())).len(), 1);
    world.pass_lease();
    let seconds = plugin_only().with("source", "seconds");
    let error = QueryRun::open(&world.session, spec("SELECT tick FROM s", seconds), StopSignal::new()).err().unwrap();
    assert!(matches!(&error, RuntimeError::Changed { .. }), "{error:?}");
    let text = describe_chain(&error);
    assert!(text.contains("reads `events.seconds`, its offsets are of `events.script`"), "{text}");
}

/// A query over a file behind a server.
fn over_http(server: &TextServer, url: &str) -> QuerySpec {
    let hosts = vec![server.host().parse().unwrap()];
    let http = Some(HttpGrant { hosts, private: true, response_bytes: 1 << 20 });
    let options = Options::new().with("plugin", "events").with("url", url);
    let mut query = spec("SELECT line FROM s", options);
    query.plugins = vec![plugin("tail_plugin", Permissions { http, ..Permissions::default() })];
    query
}

#[test]
fn a_server_that_is_away_is_asked_again_and_no_row_is_lost() {
    let (world, server) = (World::new().unwrap(), TextServer::start().unwrap());
    let query = over_http(&server, &server.url("log"));
    server.append("log", b"one\ntwo\n");
    server.set_sick(true);
    let mut run = open(&world, &query);
    let error = run.run_next().unwrap_err();
    assert_eq!(error.fault(), Fault::Outside, "it is tried again: {error:?}");
    let text = describe_chain(&error);
    assert!(text.contains("source `s` cannot say what is new") && text.contains("the server answers 503"), "{text}");
    server.set_sick(false);
    assert_eq!(next(&mut run).unwrap().num_input_rows, 2);
    server.append("log", b"three\n");
    assert_eq!(next(&mut run).unwrap().num_input_rows, 1);
    server.replace("log", b"x\n");
    let error = run.run_next().unwrap_err();
    assert_eq!(error.fault(), Fault::Plugin);
    assert!(describe_chain(&error).contains("it is another one by now"), "{error:?}");
}

#[test]
fn hosts_that_were_not_granted_are_not_asked() {
    let (world, server, other) = (World::new().unwrap(), TextServer::start().unwrap(), TextServer::start().unwrap());
    let mut run = open(&world, &over_http(&server, &other.url("log")));
    let text = describe_chain(&run.run_next().unwrap_err());
    assert!(text.contains("is at a host that was not granted"), "{text}");
    assert_eq!(other.requests(), 0);
}

#[test]
fn a_batch_query_and_a_watermark_read_it_too() {
    let world = World::new().unwrap();
    let mut query =
        spec("SELECT k, count(*) AS n FROM s GROUP BY k ORDER BY k", script().with("maxRowsPerTrigger", "2"));
    let summary = run_batch_query(&world.session, &query, &StopSignal::new()).unwrap().unwrap();
    assert_eq!(summary.rows_in, [("s".to_owned(), 6)]);
    assert_eq!(world.recorder.batches()[&0], ["a | 3", "b | 1", "c | 2"]);
    let world = World::new().unwrap();
    query.streams[0].event_time = Some(EventTime { column: "at".into(), delay_us: 0 });
    query.query =
        "SELECT window(at, '10 seconds').start AS w, count(*) AS n FROM s GROUP BY window(at, '10 seconds')".into();
    query.mode = OutputMode::Append;
    all(&world, &query);
    let rows: Vec<String> = world.recorder.batches().into_values().flatten().collect();
    assert_eq!(rows, ["00:00:00 | 3", "00:00:10 | 1"]);
}

#[test]
fn a_program_reads_a_source_of_a_registered_plugin() {
    let world = World::new().unwrap();
    world.session.register_plugin(plugin("sources", granted()));
    let mut reader = world.session.read_stream().format("plugin");
    for (name, value) in script().iter() {
        reader = reader.option(name, value);
    }
    let frame = reader.load().unwrap();
    assert_eq!(frame.columns(), ["at", "k"]);
    let query = frame.select(["k"]).unwrap().write_stream().format("recorder").trigger(Trigger::AvailableNow);
    query.start().unwrap().await_termination().unwrap();
    assert_eq!(world.recorder.batches().into_values().flatten().count(), 6);
}
