//! State by key.

use crate::harness::{World, alone, counts, locked, over_lines, pair, seconds, sorted};
use millstream_dstream::{JobError, State, StateSpec, Time};
use std::sync::{Arc, Mutex};

#[test]
fn every_known_key_is_asked_in_every_batch() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&asked);
    let seen = over_lines(&[&["a", "b", "a"], &["b"], &[]], move |lines| {
        let theirs = Arc::clone(&theirs);
        lines.map(pair).update_state_by_key_from(
            move |key, new, state: Option<i64>| {
                locked(&theirs).push((key.clone(), new.len(), state));
                Some(new.iter().sum::<i64>() + state.unwrap_or(0))
            },
            Vec::new(),
            1,
        )
    });
    assert_eq!(seen[0], (1, counts(&[("a", 2), ("b", 1)])));
    assert_eq!(seen[1], (2, counts(&[("a", 2), ("b", 2)])));
    assert_eq!(seen[2], (3, counts(&[("a", 2), ("b", 2)])));
    let (a, b) = ("a".to_owned(), "b".to_owned());
    let wanted = vec![
        (a.clone(), 2, None),
        (b.clone(), 1, None),
        (a.clone(), 0, Some(2)),
        (b.clone(), 1, Some(1)),
        (a, 0, Some(2)),
        (b, 0, Some(2)),
    ];
    assert_eq!(*locked(&asked), wanted);
}

#[test]
fn a_key_without_a_state_is_gone() {
    let seen = over_lines(&[&["a", "b"], &["a"], &["b"]], |lines| {
        lines.map(pair).update_state_by_key(|new, state: Option<i64>| match (new.is_empty(), state) {
            (true, _) => None,
            (false, state) => Some(state.unwrap_or(0) + 1),
        })
    });
    assert_eq!(seen[1], (2, counts(&[("a", 2)])));
    assert_eq!(seen[2], (3, counts(&[("b", 1)])));
}

#[test]
fn states_may_be_there_before_the_first_batch() {
    let seen = over_lines(&[&["a"]], |lines| {
        let initial = vec![("a".to_owned(), 10), ("z".to_owned(), 26)];
        lines.map(pair).update_state_by_key_from(
            |_, new, state: Option<i64>| Some(new.iter().sum::<i64>() + state.unwrap_or(0)),
            initial,
            3,
        )
    });
    assert_eq!(seen[0], (1, counts(&[("a", 11), ("z", 26)])));
}

fn counting(_: Time, key: &String, value: Option<i64>, state: &mut State<i64>) -> Option<(String, i64)> {
    if state.is_timing_out() {
        return Some((format!("{key} times out"), *state.get().unwrap_or(&0)));
    }
    let sum = state.get().unwrap_or(&0) + value.unwrap_or(0);
    if sum >= 3 {
        state.remove();
    } else {
        state.update(sum);
    }
    Some((key.clone(), sum))
}

#[test]
fn a_function_of_the_state_is_called_for_each_value() {
    let seen = over_lines(&[&["a", "a", "b"], &[], &["a"], &["a"]], |lines| {
        let mapped = lines.map(pair).map_with_state(StateSpec::function(counting));
        mapped.clone()
    });
    assert_eq!(seen[0], (1, counts(&[("a", 1), ("a", 2), ("b", 1)])));
    assert_eq!(seen[1], (2, vec![]));
    assert_eq!(seen[2], (3, counts(&[("a", 3)])));
    assert_eq!(seen[3], (4, counts(&[("a", 1)])));
}

#[test]
fn a_key_without_values_times_out() {
    let words: Vec<&[&str]> = vec![&["a", "b"], &["b"], &[], &[], &["a"]];
    let seen = over_lines(&words, |lines| {
        lines.map(pair).map_with_state(StateSpec::function(counting).timeout(seconds(2))).clone()
    });
    assert_eq!(seen[2], (3, vec![]), "two seconds are not more than two");
    assert_eq!(seen[3], (4, counts(&[("a times out", 1)])));
    assert_eq!(seen[4], (5, counts(&[("a", 1), ("b times out", 2)])));
    let snapshots = over_lines(&words, |lines| {
        let spec = StateSpec::function(counting).timeout(seconds(2)).initial_state(vec![("c".into(), 2)]);
        lines.map(pair).map_with_state(spec.num_partitions(3)).state_snapshots()
    });
    assert_eq!(snapshots[0], (1, counts(&[("a", 1), ("b", 1), ("c", 2)])));
    assert_eq!(snapshots[2], (3, counts(&[("a", 1), ("b", 2)])));
    assert_eq!(snapshots[4], (5, counts(&[("a", 1)])));
}

#[test]
fn a_state_that_times_out_cannot_be_updated() {
    let _alone = alone();
    let world = World::new();
    let (context, lines) = world.context();
    let spec = StateSpec::function(|_, _: &String, value: Option<i64>, state: &mut State<i64>| {
        state.update(value.unwrap_or(0));
        None::<i64>
    });
    let _seen = sorted(&lines.map(pair).map_with_state(spec.timeout(seconds(1))));
    let stepper = context.start_stepwise().unwrap();
    world.say(&["a"]);
    world.tick();
    stepper.run_due().unwrap();
    world.tick();
    world.tick();
    let error = stepper.run_due().unwrap_err();
    let text = millstream_common::describe_chain(&*error);
    assert!(text.contains("batch 3000 ms failed in `map_with_state`, named `map-with-state`"), "{text}");
    assert!(text.contains("cannot be updated"), "{text}");
    assert!(matches!(&*error, millstream_dstream::DStreamError::Job { source: JobError::Failed { .. }, .. }));
}
