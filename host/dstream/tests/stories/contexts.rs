//! What a context may and may not.

use crate::harness::{World, alone, context, locked, pair, seconds, sorted};
use millstream_common::{Clock, describe_chain};
use millstream_dstream::{ContextState, DStreamError, RddQueue, Refusal, StreamingContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn refusal<T: std::fmt::Debug>(result: Result<T, DStreamError>) -> Refusal {
    match result {
        Err(DStreamError::Refused(refusal)) => refusal,
        other => panic!("it is not refused: {other:?}"),
    }
}

#[test]
fn a_context_goes_one_way() {
    let _alone = alone();
    let (context, clock) = context();
    assert_eq!(refusal(context.start()), Refusal::NoOutput);
    let queue = RddQueue::new();
    let numbers = context.queue_stream(&queue).unwrap();
    let seen = sorted(&numbers);
    assert_eq!(context.state(), ContextState::Initialized);
    let stepper = context.start_stepwise().unwrap();
    assert_eq!(context.state(), ContextState::Active);
    assert!(StreamingContext::get_active().is_some());
    assert_eq!(refusal(context.start()), Refusal::Started);
    assert!(matches!(refusal(context.queue_stream(&queue)), Refusal::AfterStart { .. }));
    let later = numbers.map(|n: i32| n + 1);
    assert!(matches!(refusal(later.foreach_rdd(|_, _| Ok(()))), Refusal::AfterStart { what: "map" }));
    let (other, _) = crate::harness::context();
    sorted(&other.queue_stream(&RddQueue::<i32>::new()).unwrap());
    assert_eq!(refusal(other.start()), Refusal::OtherActive);
    queue.push(vec![1]);
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    stepper.stop(false);
    assert_eq!(*locked(&seen), [(1, vec![1])]);
    assert_eq!(context.state(), ContextState::Stopped);
    assert_eq!(refusal(context.start()), Refusal::Restart);
    assert!(StreamingContext::get_active().is_none());
    context.await_termination().unwrap();
    other.start_stepwise().unwrap();
}

#[test]
fn what_cannot_be_is_told_by_its_reason() {
    let _alone = alone();
    assert_eq!(refusal(StreamingContext::new(Duration::from_micros(10))), Refusal::Interval { interval_ms: 0 });
    let (context, _) = context();
    let numbers = context.queue_stream(&RddQueue::<i64>::new()).unwrap();
    let odd = numbers.window(Duration::from_millis(1500), seconds(1)).map(|n| n + 1);
    let error = refusal(odd.print()).to_string();
    assert_eq!(error, "the window length of `window`, 1500 ms, is no multiple of the 1000 ms of the stream");
    assert!(matches!(
        refusal(numbers.window(seconds(2), seconds(0)).print()),
        Refusal::NotMultiple { what: "slide", .. }
    ));
    let slow = numbers.window(seconds(2), seconds(2));
    assert!(matches!(refusal(numbers.union(&slow).print()), Refusal::Slides { operation: "union", .. }));
    assert!(matches!(refusal(numbers.named("x").print()), Refusal::NothingToName { .. }));
    assert!(matches!(refusal(slow.named("no name").print()), Refusal::Name { .. }));
    assert_eq!(
        refusal(context.remember(Duration::from_millis(1))),
        Refusal::Remember { remember_ms: 1, interval_ms: 1000 }
    );
    let counted = numbers.map(|n| (n, 1_i64)).update_state_by_key(|new, _| Some(new.len() as i64));
    counted.print().unwrap();
    assert_eq!(refusal(context.start()), Refusal::NoCheckpoint { operation: "update_state_by_key" });
}

#[test]
fn a_queue_cannot_be_in_a_checkpoint() {
    let _alone = alone();
    let world = World::new();
    let (context, _) = world.context();
    context.queue_stream(&RddQueue::<i64>::new()).unwrap().print().unwrap();
    assert_eq!(refusal(context.start()), Refusal::QueueWithCheckpoint);
}

#[test]
fn two_states_cannot_have_one_name() {
    let _alone = alone();
    let world = World::new();
    let (context, lines) = world.context();
    sorted(&lines.map(pair).update_state_by_key(|new, _| Some(new.len() as i64)).named("window"));
    sorted(&lines.window(seconds(1), seconds(1)));
    assert!(matches!(refusal(context.start()), Refusal::SameName { name, .. } if name == "window"));
}

#[test]
fn a_function_that_panics_ends_the_context_with_its_words() {
    let _alone = alone();
    let (context, clock) = context();
    let queue = RddQueue::new();
    let numbers = context.queue_stream(&queue).unwrap();
    numbers.map(|n: i32| 10 / n).foreach_rdd(|rows, _| rows.foreach(|_| Ok(())).map_err(Into::into)).unwrap();
    let stepper = context.start_stepwise().unwrap();
    queue.push(vec![0]);
    clock.advance(seconds(1));
    let error = stepper.run_due().unwrap_err();
    let text = millstream_common::describe_chain(&*error);
    assert!(text.starts_with("batch 1000 ms failed in output operation 0, `foreach_rdd`"), "{text}");
    assert!(text.contains("divide by zero"), "{text}");
    assert_eq!(context.state(), ContextState::Stopped);
    assert!(context.await_termination_or_timeout(seconds(1)).is_err());
}

#[test]
fn rows_are_remembered_for_a_slice() {
    let _alone = alone();
    let (context, clock) = context();
    context.remember(seconds(3)).unwrap();
    let queue = RddQueue::new();
    let numbers = context.queue_stream(&queue).unwrap();
    let doubled = numbers.map(|n: i64| n * 2);
    doubled.foreach_rdd(|_, _| Ok(())).unwrap();
    let stepper = context.start_stepwise().unwrap();
    for n in 1..=4 {
        queue.push(vec![n]);
        clock.advance(seconds(1));
        stepper.run_due().unwrap();
    }
    let rows = doubled.slice(millstream_dstream::Time(0), millstream_dstream::Time(4000)).unwrap();
    let rows: Vec<i64> = rows.iter().flat_map(|rows| rows.collect().unwrap()).collect();
    assert_eq!(rows, [4, 6, 8]);
}

#[test]
fn threads_run_batches_and_stop_gracefully() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let setup = || StreamingContext::new(Duration::from_millis(100));
    let context = StreamingContext::get_or_create(&place, setup).unwrap();
    let (sender, received) = std::sync::mpsc::channel();
    let options = millstream_common::Options::new().with("rowsPerSecond", "100");
    let rows = context.direct_stream("rate", millstream_dstream::DirectOptions::new(options)).unwrap();
    rows.count().foreach_rdd(move |rows, _| Ok(sender.send(rows.collect()?)?)).unwrap();
    context.start().unwrap();
    for _ in 0..3 {
        received.recv_timeout(seconds(20)).unwrap();
    }
    assert!(!context.await_termination_or_timeout(Duration::from_millis(1)).unwrap());
    context.stop(true);
    context.await_termination().unwrap();
    assert_eq!(context.state(), ContextState::Stopped);
}

/// A clock of the program that stops working.
#[derive(Debug, Default)]
struct BrokenClock {
    is_broken: AtomicBool,
}

impl Clock for BrokenClock {
    fn now_ms(&self) -> i64 {
        assert!(!self.is_broken.load(Ordering::SeqCst), "the spring is broken");
        0
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[test]
fn a_context_whose_thread_panics_ends_and_says_so() {
    let _alone = alone();
    let clock = Arc::new(BrokenClock::default());
    let context = StreamingContext::with_clock(seconds(1), Arc::clone(&clock) as _).unwrap();
    sorted(&context.queue_stream(&RddQueue::<i32>::new()).unwrap());
    context.start().unwrap();
    clock.is_broken.store(true, Ordering::SeqCst);
    let error = context.await_termination().unwrap_err();
    let text = describe_chain(&*error);
    assert!(text.contains("the thread of the timer has failed: it panicked: the spring is broken"), "{text}");
    assert_eq!(context.state(), ContextState::Stopped);
    context.stop(true);
}
