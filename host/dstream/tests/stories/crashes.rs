//! One program with every kind of state, told three ways: straight, with a restart after each batch, and with a crash at
//! each durable write. What each output operation gives for a time must be the same each time that it gives it.

use crate::harness::{World, alone, locked, pair, seconds};
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_common::{Clock, DurableFiles, ManualClock};
use millstream_dstream::{DStream, Data, Show, State, StateSpec, Stepper, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What outputs gave, by output and time.
type Given = Arc<Mutex<BTreeMap<(&'static str, i64), Vec<String>>>>;

fn give<T: Data + Show>(stream: &DStream<T>, name: &'static str, given: &Given) {
    let given = Arc::clone(given);
    let giving = stream.foreach_rdd(move |rows, time| {
        let rows: Vec<String> = rows.collect()?.iter().map(Show::show).collect();
        let before = locked(&given).insert((name, time.millis()), rows.clone());
        assert!(before.is_none() || before.as_ref() == Some(&rows), "{name} gave {before:?}, then {rows:?} for {time}");
        Ok(())
    });
    giving.unwrap();
}

fn program(lines: &DStream<String>, given: &Given) {
    let pairs = lines.map(pair);
    give(&pairs.reduce_by_key(|a, b| a + b), "reduced", given);
    give(&lines.window(seconds(3), seconds(2)), "window", given);
    let inverse = pairs.reduce_by_key_and_window_inverse(|a, b| a + b, |a, b| a - b, seconds(3), seconds(1));
    give(&inverse, "inverse", given);
    give(&lines.count_by_value_and_window(seconds(2), seconds(2)), "by value", given);
    give(&pairs.group_by_key_and_window(seconds(2), seconds(1)), "grouped", given);
    let update = |new: Vec<i64>, state: Option<i64>| {
        let sum = new.iter().sum::<i64>() + state.unwrap_or(0);
        (sum < 4).then_some(sum)
    };
    give(&pairs.update_state_by_key(update).named("totals"), "updated", given);
    let mapped = |time: Time, key: &String, value: Option<i64>, state: &mut State<i64>| {
        if !state.is_timing_out() {
            state.update(state.get().unwrap_or(&0) + value.unwrap_or(0));
        }
        Some((key.clone(), time.millis(), *state.get().unwrap_or(&-1)))
    };
    let spec = StateSpec::function(mapped).timeout(seconds(1)).initial_state(vec![("z".to_owned(), 26)]);
    let mapped = pairs.map_with_state(spec);
    give(&mapped, "mapped", given);
    give(&mapped.state_snapshots(), "snapshots", given);
}

const LINES: [&[&str]; 7] = [&["a", "b", "a"], &["b"], &[], &["c", "a"], &["a"], &[], &["b", "c"]];

fn sorted(rows: &[String]) -> Vec<String> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

fn start(world: &World, files: Arc<dyn DurableFiles>, given: &Given) -> Option<Stepper> {
    let (context, lines) = world.context_in(files);
    program(&lines, given);
    context.start_stepwise().ok()
}

fn say(world: &World, lines: &[&str]) {
    if !lines.is_empty() {
        world.say(lines);
    }
    world.tick();
}

fn straight() -> BTreeMap<(&'static str, i64), Vec<String>> {
    let (world, given) = (World::new(), Given::default());
    let stepper = start(&world, Arc::clone(&world.files) as _, &given).unwrap();
    for lines in LINES {
        say(&world, lines);
        assert_eq!(stepper.run_due().unwrap(), 1);
    }
    drop(stepper);
    std::mem::take(&mut *locked(&given))
}

/// Starts again after a crash, and runs what is due. The process is gone, so nobody gives the lease back; its time passes.
fn revive(world: &mut World, given: &Given) -> Stepper {
    world.files.delete("lease").unwrap();
    let now = world.clock.now_ms();
    if world.files.list("offsets").unwrap().is_empty() {
        // A program whose first batch was never defined begins when it is started: as the first one did.
        world.clock = Arc::new(ManualClock::at(0));
    }
    let stepper = start(world, Arc::clone(&world.files) as _, given).unwrap();
    world.clock.advance(std::time::Duration::from_millis((now - world.clock.now_ms()).unsigned_abs()));
    stepper.run_due().unwrap();
    stepper
}

#[test]
fn a_restart_after_each_batch_changes_nothing() {
    let _alone = alone();
    let wanted = straight();
    assert_eq!(sorted(&wanted[&("inverse", 7000)]), ["(a,1)", "(b,1)", "(c,1)"]);
    assert_eq!(wanted[&("window", 6000)].len(), 3);
    let (world, given) = (World::new(), Given::default());
    for lines in LINES {
        let stepper = start(&world, Arc::clone(&world.files) as _, &given).unwrap();
        say(&world, lines);
        stepper.run_due().unwrap();
    }
    assert_eq!(*locked(&given), wanted);
}

#[test]
fn a_crash_at_any_durable_write_changes_nothing() {
    let _alone = alone();
    let wanted = straight();
    let mut points = 0;
    for moment in [Moment::Before, Moment::After] {
        for at in 1.. {
            let (mut world, given) = (World::new(), Given::default());
            let faulty = FaultyFiles::new(Arc::clone(&world.files) as _, Counted::ALL).crash_at(at, moment);
            let faulty = Arc::new(faulty);
            let mut stepper = start(&world, Arc::clone(&faulty) as _, &given);
            let mut is_alive = stepper.is_some();
            for lines in LINES {
                if !is_alive {
                    drop(stepper.take());
                    stepper = Some(revive(&mut world, &given));
                }
                say(&world, lines);
                is_alive = stepper.as_ref().unwrap().run_due().is_ok();
            }
            if !is_alive {
                drop(stepper.take());
                stepper = Some(revive(&mut world, &given));
            }
            drop(stepper);
            let has_crashed = faulty.crashed();
            assert_eq!(*locked(&given), wanted, "crash at write {at}, {moment:?}: {:?}", faulty.history().last());
            if !has_crashed {
                break;
            }
            points += 1;
        }
    }
    assert!(points > 80, "only {points} points of a crash");
}

#[test]
fn batches_whose_time_passed_are_all_run_after_a_restart() {
    let _alone = alone();
    let (world, given) = (World::new(), Given::default());
    let stepper = start(&world, Arc::clone(&world.files) as _, &given).unwrap();
    say(&world, &["a"]);
    stepper.run_due().unwrap();
    drop(stepper);
    world.say(&["b"]);
    world.clock.advance(seconds(4));
    let stepper = start(&world, Arc::clone(&world.files) as _, &given).unwrap();
    assert_eq!(stepper.run_due().unwrap(), 4);
    drop(stepper);
    let given = locked(&given);
    assert_eq!(given[&("reduced", 2000)], ["(b,1)"]);
    assert!(given[&("reduced", 5000)].is_empty());
    assert_eq!(sorted(&given[&("updated", 5000)]), ["(a,1)", "(b,1)"]);
}
