//! A program that is not the one that wrote the checkpoint.

use crate::harness::{World, alone, pair, seconds, sorted};
use millstream_common::Hint;
use millstream_dstream::{DStream, DStreamError, DirectOptions, StreamingContext};

fn sum(new: Vec<i64>, state: Option<i64>) -> Option<i64> {
    Some(new.iter().sum::<i64>() + state.unwrap_or(0))
}

/// Runs a program with one batch.
fn once(world: &World, program: impl Fn(&StreamingContext, &DStream<String>)) -> Result<(), DStreamError> {
    let (context, lines) = world.context();
    program(&context, &lines);
    let stepper = context.start_stepwise()?;
    world.say(&["a"]);
    world.tick();
    stepper.run_due().unwrap();
    Ok(())
}

#[test]
fn other_operations_may_come_and_go_as_long_as_no_state_is_lost() {
    let _alone = alone();
    let world = World::new();
    once(&world, |_, lines| drop(sorted(&lines.map(pair).update_state_by_key(sum)))).unwrap();
    let (context, lines) = world.context();
    let windowed = sorted(&lines.window(seconds(2), seconds(1)));
    let totals = sorted(&lines.filter(|_| true).map(pair).update_state_by_key(sum));
    let stepper = context.start_stepwise().unwrap();
    world.say(&["a"]);
    world.tick();
    stepper.run_due().unwrap();
    assert_eq!(*crate::harness::locked(&totals), [(2, vec![("a".to_owned(), 2)])]);
    assert_eq!(*crate::harness::locked(&windowed), [(2, vec!["a".to_owned()])]);
}

#[test]
fn state_that_would_be_lost_is_named() {
    let _alone = alone();
    let world = World::new();
    once(&world, |_, lines| drop(sorted(&lines.map(pair).update_state_by_key(sum).named("clicks")))).unwrap();
    let gone = once(&world, |_, lines| drop(sorted(lines))).unwrap_err();
    let text = gone.to_string();
    assert!(text.contains("has state of `clicks` (update_state_by_key: key String, state i64)"), "{text}");
    assert!(gone.hint().unwrap().contains("named"));
    let renamed = once(&world, |_, lines| drop(sorted(&lines.map(pair).update_state_by_key(sum)))).unwrap_err();
    assert!(matches!(renamed, DStreamError::StateWouldBeLost { name, .. } if name == "clicks"));
    let retyped = once(&world, |_, lines| {
        let texts = lines.map(pair).update_state_by_key(|_, _: Option<String>| Some(String::new()));
        drop(sorted(&texts.named("clicks")));
    });
    assert!(retyped.unwrap_err().to_string().contains("the program has update_state_by_key: key String, state String"));
    once(&world, |_, lines| drop(sorted(&lines.map(pair).update_state_by_key(sum).named("clicks")))).unwrap();
}

#[test]
fn an_input_that_is_gone_is_named() {
    let _alone = alone();
    let world = World::new();
    once(&world, |_, lines| drop(sorted(lines))).unwrap();
    let (context, _) = world.context();
    let options = DirectOptions { name: Some("others".into()), ..DirectOptions::default() };
    let others = context.direct_stream("memory", options).unwrap();
    let _seen = sorted(&others.map(|_| 1));
    let error = context.start_stepwise().unwrap_err();
    assert!(matches!(&error, DStreamError::InputWouldBeLost { name, .. } if name == "memory"), "{error}");
}

#[test]
fn another_interval_or_a_program_that_begins_anew_is_refused() {
    let _alone = alone();
    let world = World::new();
    once(&world, |_, lines| drop(sorted(lines))).unwrap();
    let make = |interval: u64| {
        let context =
            StreamingContext::with_clock(seconds(interval), std::sync::Arc::clone(&world.clock) as _).unwrap();
        context.register_source("memory", std::sync::Arc::new(world.lines.clone()));
        context.checkpoint_in(std::sync::Arc::clone(&world.files) as _).unwrap();
        let lines = context.direct_stream("memory", DirectOptions::default()).unwrap();
        let _seen = sorted(&lines.map(|_| 1));
        context
    };
    let anew = make(1).start_stepwise().unwrap_err();
    assert!(matches!(anew, DStreamError::Present { .. }), "{anew}");
    let slower = make(5).resuming().unwrap().start_stepwise().unwrap_err();
    assert!(slower.to_string().contains("a batch interval of 1000 ms, the program has 5000 ms"), "{slower}");
}
