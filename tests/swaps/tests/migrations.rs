//! Swaps that make the state anew, with a crash before and after every durable write.
//!
//! The query sums numbers per window of three seconds, of which each batch of the source gives one; so every border cuts
//! through a window whose state must get over it. All editions of the plugin give the same sums.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_checkpoint::faulty::Moment;
use millstream_common::{Digest, Options, StopSignal};
use millstream_plan::EventTime;
use millstream_runtime::inspect::{CheckpointPlace, history};
use millstream_runtime::replay::replay;
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, Remake, Settings, StreamSpec, SwapGrounds};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::collections::BTreeMap;
use streaming_stories::{World, component};

const ROWS: i64 = 10;
const BATCHES: u64 = 16;

fn spec() -> QuerySpec {
    let options = Options::new().with("rowsPerBatch", ROWS.to_string()).with("numPartitions", "1");
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let event_time = Some(EventTime { column: "timestamp".into(), delay_us: 0 });
    let sink = SinkSpec { format: "json".into(), options: Options::new().with("path", "output") };
    let sql = "SELECT unix_seconds(w.start) AS second, total FROM (
                 SELECT window(timestamp, '3 seconds') AS w, tally(value) AS total
                 FROM numbers GROUP BY window(timestamp, '3 seconds')) t";
    QuerySpec {
        plugins: vec![PluginSpec {
            name: "tally".into(),
            component: component("tally_one").unwrap(),
            limits: PluginLimits::default(),
            on_fault: FaultPolicy::Fail,
        }],
        checkpoint: Some("checkpoint".into()),
        settings: Settings {
            partitions: 2,
            // The thread that writes snapshots would make the order of writes vary.
            changelogs_before_snapshot: usize::MAX,
            ..Settings::default()
        },
        ..QuerySpec::new(sql, vec![StreamSpec { source, event_time, drop_duplicates: None }], sink)
    }
}

/// What is to happen: from which batch on, from which edition to which, and how.
const PLAN: [(u64, &str, &str, Option<Remake>); 4] = [
    (3, "tally_one", "tally_two", Some(Remake::Migrate)),
    (6, "tally_two", "tally_three", Some(Remake::Migrate)),
    (9, "tally_three", "tally_two", Some(Remake::Restore)),
    (12, "tally_two", "tally_one", Some(Remake::Migrate)),
];

/// Drives the query to its end through whatever the world does to it.
fn drive(world: &World) {
    let mut done = 0;
    for _ in 0..100 {
        match life(world, &mut done) {
            Ok(()) => return,
            Err(error) if !world.crashed() => panic!("{error}"),
            Err(_) => world.revive(),
        }
    }
    panic!("it dies again and again");
}

/// One life of the query.
fn life(world: &World, done: &mut usize) -> Result<(), String> {
    let text = |error: millstream_runtime::RuntimeError| millstream_common::describe_chain(&error);
    let mut run = QueryRun::open(&world.session, spec(), StopSignal::new()).map_err(text)?;
    while run.next_batch().0 < BATCHES {
        world.clock.advance(std::time::Duration::from_secs(1));
        let mut answer = None;
        if let Some((from_batch, from, to, remake)) = PLAN.get(*done) {
            let digest = |name: &str| Digest::of(&component(name).unwrap());
            let runs = run.digest("tally");
            if runs == Some(digest(to)) {
                // The crash came when it was logged.
                *done += 1;
                continue;
            }
            assert_eq!(runs, Some(digest(from)), "after {done} swaps");
            if run.next_batch().0 >= *from_batch && !run.has_unfinished() {
                let grounds = SwapGrounds::unasked("swap");
                answer = Some(run.swap("tally", component(to).unwrap(), grounds, remake.clone()).map_err(text)?);
            }
        }
        run.run_next().map_err(text)?;
        if let Some(answer) = answer {
            answer.try_recv().unwrap().map_err(|reason| if world.crashed() { reason } else { panic!("{reason}") })?;
            *done += 1;
        }
    }
    run.close();
    Ok(())
}

/// Every window that was closed went out once, with the sum of its numbers.
fn check(world: &World) {
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    for line in world.output().unwrap().into_values().flatten() {
        let row: serde_json::Value = serde_json::from_str(&line).unwrap();
        let (second, total) = (row["second"].as_i64().unwrap(), row["total"].as_i64().unwrap());
        assert!(sums.insert(second, total).is_none(), "the window of second {second} went out twice");
    }
    // Batches that only made state anew read nothing, so there are fewer seconds than batches.
    let seconds = BATCHES - PLAN.len() as u64;
    let mut wanted: BTreeMap<i64, i64> = BTreeMap::new();
    for value in 0..seconds as i64 * ROWS {
        *wanted.entry(value / ROWS / 3 * 3).or_default() += value;
    }
    assert!(sums.len() >= 3, "{sums:?}");
    for (second, total) in &sums {
        assert_eq!(wanted.get(second), Some(total), "second {second}: {sums:?}");
    }
}

#[test]
fn state_gets_over_migrations_and_a_restoring_rollback_and_every_batch_can_be_replayed() {
    let world = World::new().unwrap();
    drive(&world);
    check(&world);
    let histories = history(&world.session, &CheckpointPlace::of_query(spec()).unwrap()).unwrap();
    let states: Vec<_> = histories[0].components.iter().map(|span| span.state.as_deref().unwrap_or("-")).collect();
    assert_eq!(states, ["-", "migrated", "migrated", "restored", "migrated"]);
    let checkpoint = world.checkpoint().unwrap().unwrap();
    let mut replayed = 0;
    for batch in checkpoint.offset_log().batches().unwrap() {
        let entry = checkpoint.offset_log().get(batch).unwrap().unwrap();
        if entry.is_of_state_only() {
            continue;
        }
        let again = replay(&world.session, &spec(), batch.0, None).unwrap();
        assert!(again.is_same && again.output.was.is_some(), "{again:?}");
        replayed += 1;
    }
    assert_eq!(replayed, BATCHES - PLAN.len() as u64);
}

#[test]
fn a_crash_at_any_durable_write_of_a_swap_that_makes_state_anew_loses_and_doubles_nothing() {
    let world = World::new().unwrap();
    drive(&world);
    let writes = world.history().len();
    assert!(writes > 50, "{writes}");
    for write in 1..=writes {
        for moment in [Moment::Before, Moment::After] {
            let world = World::new().unwrap();
            world.crash_at(write, moment);
            drive(&world);
            check(&world);
        }
    }
}
