//! A plugin in an endless loop is stopped, and the query goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{DataType, Field, Schema};
use millstream_common::{Options, StopSignal};
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streaming_stories::{Variant, World, component, parse, play, unit};

const DEADLINE: Duration = Duration::from_millis(200);
const GRACE: Duration = Duration::from_millis(100);

const STORY: &str = "# Goal: a row at which a plugin never returns is left out, and the others are counted.
plugin hostile skip deadline-ms 20
source numbers (k string, v bigint)
query SELECT k, count(*) AS n FROM (SELECT k, spins_on(v, 3) AS v FROM numbers) u WHERE v IS NOT NULL GROUP BY k
mode update

add numbers a,1; a,3; b,5; b,3; c,3
batch
----
a | 1
b | 1

faults 3
add numbers a,7
batch
----
a | 2

faults 0
";

#[test]
fn a_row_at_which_a_plugin_loops_is_skipped_and_the_query_goes_on() {
    let story = parse("endless_loop", STORY).unwrap();
    for restart_after_every_batch in [false, true] {
        let variant = Variant { restart_after_every_batch, ..Variant::default() };
        play(&story, variant).unwrap_or_else(|error| panic!("{error:#}"));
    }
}

/// The time from trigger to commit of a batch of one row.
fn batch_of_one(run: &mut QueryRun, stream: &millstream_source::connectors::memory::MemoryStream, v: i64) -> Duration {
    stream.add_data(unit(stream.schema(), &[vec![Some(v.to_string())]]).unwrap()).unwrap();
    let begin = Instant::now();
    run.run_next().unwrap().unwrap();
    begin.elapsed()
}

#[test]
fn an_endless_loop_ends_within_a_tenth_of_a_second_of_its_deadline() {
    let world = World::new().unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    let stream = world.streams.create("numbers", schema);
    let source = SourceSpec { name: "numbers".into(), format: "memory".into(), schema: None, options: Options::new() };
    let limits = PluginLimits { deadline: DEADLINE, ..PluginLimits::default() };
    let plugin = PluginSpec {
        name: "hostile".into(),
        component: component("hostile").unwrap(),
        limits,
        on_fault: FaultPolicy::Skip,
    };
    let spec = QuerySpec {
        name: Some("looping".into()),
        plugins: vec![plugin],
        checkpoint: Some("checkpoint".into()),
        ..QuerySpec::new(
            "SELECT spins_on(v, 3) AS v FROM numbers",
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    };
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap();
    batch_of_one(&mut run, &stream, 1);
    // The machine may be busy with other tests: the best of five shows what the runtime does.
    let best = (0..5).map(|_| batch_of_one(&mut run, &stream, 3)).min().unwrap();
    assert!(best >= DEADLINE && best < DEADLINE + GRACE, "{best:?}");
    batch_of_one(&mut run, &stream, 4);
    let rows: Vec<String> = world.recorder.batches().into_values().flatten().collect();
    assert_eq!(rows, ["1", "4"]);
}
