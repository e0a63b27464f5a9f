//! Sources that do what none should, each with where and how it is contained; beside each an honest one is read right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_common::{Options, StopSignal, describe_chain};
use millstream_runtime::replay::replay;
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginHost, PluginLimits};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use streaming_stories::{World, component};

/// What becomes of a source.
enum End {
    /// The first batch fails, and says this.
    Fails(&'static str),
    /// Some batch fails, and says this.
    FailsLater(&'static str),
    /// It does its worst, and all rows are right.
    Harmless,
    /// It gives other rows when its stream is read twice.
    OtherRows,
}
use End::{Fails, FailsLater, Harmless, OtherRows};

const ENDS: [(&str, End); 27] = [
    ("honest", Harmless),
    ("spins_at_the_start", Fails("did not return from `spins_at_the_start.initial-offset` within")),
    ("spins_when_asked", Fails("did not return from `spins_when_asked.latest-offset` within")),
    ("spins_while_reading", Fails("did not return from `spins_while_reading.read` within")),
    ("spins_in_commit", Harmless),
    ("traps_at_the_start", Fails("trapped in `traps_at_the_start.initial-offset`")),
    ("traps_when_asked", Fails("trapped in `traps_when_asked.latest-offset`")),
    ("traps_while_reading", Fails("trapped in `traps_while_reading.read`")),
    ("traps_in_commit", Harmless),
    ("huge_offset", Fails("the offset has 1048576 bytes, more than 65536")),
    ("huge_cursor", Fails("the cursor has 1048576 bytes, more than 65536")),
    ("goes_back", FailsLater("after `20` it went back to the offset `10`")),
    ("endless_pages", Fails("breaks its word: ")),
    ("endless_empty_pages", Fails("leads nowhere")),
    ("page_to_itself", Fails("page 1 of (0, 10] leads nowhere")),
    ("too_many_rows", Fails("bytes from `too_many_rows.read`")),
    ("short_column", Fails("values of `n` has 7 bytes, not 80")),
    ("missing_column", Fails("no validity bitmap of `t`")),
    ("extra_column", Fails("1 buffers more than the schema has")),
    ("bad_text", Fails("column `t`")),
    ("null_where_none", Fails("10 nulls in `n`")),
    ("lying_rows", Fails("has 80 bytes, not")),
    ("hoards", Fails("of memory in `hoards.read`")),
    ("refuses", Fails("no such rows, said the source")),
    ("not_now", Fails("the sea is rough")),
    ("other_rows_again", OtherRows),
    ("remembers", OtherRows),
];

fn spec(source: &str, sql: &str) -> QuerySpec {
    let limits = PluginLimits {
        deadline: Duration::from_millis(500),
        memory_bytes: 64 << 20,
        result_bytes: 2 << 20,
        ..PluginLimits::default()
    };
    let plugin = PluginSpec {
        name: "wild".into(),
        component: component("hostile_sources").unwrap(),
        limits,
        on_fault: FaultPolicy::Fail,
    };
    let options = Options::new().with("plugin", "wild").with("source", source);
    let source = SourceSpec { name: "s".into(), format: "plugin".into(), schema: None, options };
    let streams = vec![StreamSpec { source, event_time: None, drop_duplicates: None }];
    let sink = SinkSpec { format: "recorder".into(), options: Options::new() };
    QuerySpec { plugins: vec![plugin], checkpoint: Some("checkpoint".into()), ..QuerySpec::new(sql, streams, sink) }
}

/// Runs a query until nothing is new or a batch fails; the rows of its batches, and the failure with its batch.
fn run(world: &World, spec: &QuerySpec) -> (Vec<Vec<String>>, Option<String>) {
    let mut run = QueryRun::open(&world.session, spec.clone(), StopSignal::new()).unwrap();
    loop {
        match run.run_next() {
            Ok(Some(_)) => {}
            ended => {
                let batches = world.recorder.batches().into_values().collect();
                return (batches, ended.err().map(|error| describe_chain(&error)));
            }
        }
    }
}

/// The honest source, in batches of ten.
fn expect_honest(batches: &[Vec<String>]) {
    assert_eq!(batches.len(), 10);
    for (batch, first) in batches.iter().zip((0..100).step_by(10)) {
        let expected: Vec<String> = (first..first + 10).map(|n| n.to_string()).collect();
        assert_eq!(*batch, expected);
    }
}

const SQL: &str = "SELECT n FROM s";
const TWICE: &str = "SELECT n FROM s UNION ALL SELECT n FROM s";

#[test]
fn every_source_of_the_component_has_an_end_here() {
    let component = PluginHost::new().unwrap().load("wild", &component("hostile_sources").unwrap()).unwrap();
    let there: BTreeSet<&str> = component.sources().iter().map(|source| source.name.as_str()).collect();
    assert_eq!(there, ENDS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn each_is_contained_and_an_honest_one_beside_it_is_read_right() {
    // Compiled before anything is timed.
    component("hostile_sources").unwrap();
    for (name, end) in &ENDS {
        let begin = Instant::now();
        let world = World::new().unwrap();
        let sql = if matches!(end, OtherRows) { TWICE } else { SQL };
        let (batches, failure) = run(&world, &spec(name, sql));
        match (end, failure) {
            (Harmless, None) => expect_honest(&batches),
            (Fails(text), Some(failure)) => {
                assert!(failure.contains(text), "{name}: {failure}");
                assert!(failure.contains("source `s`"), "{name}: {failure}");
                assert!(batches.is_empty(), "{name}: {batches:?}");
            }
            (FailsLater(text), Some(failure)) => {
                assert!(failure.contains(text), "{name}: {failure}");
                assert!(!batches.is_empty(), "{name}");
            }
            (OtherRows, Some(failure)) => {
                assert!(failure.contains("has other rows when it is read again"), "{name}: {failure}");
                assert!(batches.is_empty(), "{name}: {batches:?}");
            }
            (_, failure) => panic!("{name}: {failure:?}, {batches:?}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{name}: {:?}", begin.elapsed());
    }
    let world = World::new().unwrap();
    expect_honest(&run(&world, &spec("honest", SQL)).0);
}

#[test]
fn a_replay_tells_that_a_range_has_other_rows_than_the_first_time() {
    let world = World::new().unwrap();
    let query = spec("remembers", SQL);
    assert_eq!(run(&world, &query).0.len(), 10);
    let first = replay(&world.session, &query, 0, None).unwrap();
    assert!(first.is_same, "{first:?}");
    let later = replay(&world.session, &query, 5, None).unwrap();
    let input = &later.inputs["s"];
    assert!(!later.is_same && input.was.as_ref().is_some_and(|was| *was != input.digest), "{later:?}");
}
