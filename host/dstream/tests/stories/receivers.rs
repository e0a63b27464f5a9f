//! Receivers of the program.

use crate::harness::{World, alone, context, locked, seconds, sorted};
use millstream_common::DurableFiles;
use millstream_dstream::{Receiver, ReceiverHandle, ReceiverInfo, StreamingContext, StreamingListener};
use std::sync::{Arc, Mutex};

/// A receiver that leaves its handle to the story.
#[derive(Clone, Default)]
struct Pipe {
    handle: Arc<Mutex<Option<ReceiverHandle<String>>>>,
    stops: Arc<Mutex<usize>>,
}

impl Pipe {
    fn handle(&self) -> ReceiverHandle<String> {
        locked(&self.handle).clone().unwrap()
    }
}

impl Receiver<String> for Pipe {
    fn on_start(&self, handle: ReceiverHandle<String>) {
        *locked(&self.handle) = Some(handle);
    }
    fn on_stop(&self) {
        *locked(&self.stops) += 1;
    }
}

#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl StreamingListener for Diary {
    fn on_receiver_started(&self, receiver: &ReceiverInfo) {
        locked(&self.0).push(format!("{} started", receiver.input));
    }
    fn on_receiver_error(&self, receiver: &ReceiverInfo) {
        locked(&self.0).push(format!("{} reports {}", receiver.input, receiver.last_error));
    }
    fn on_receiver_stopped(&self, receiver: &ReceiverInfo) {
        locked(&self.0).push(format!("{} stopped", receiver.input));
    }
}

#[test]
fn what_is_stored_is_in_the_next_batch_and_a_graceful_stop_runs_the_rest() {
    let _alone = alone();
    let (context, clock) = context();
    let (pipe, diary) = (Pipe::default(), Arc::new(Diary::default()));
    context.add_streaming_listener(Arc::clone(&diary) as _);
    let seen = sorted(&context.receiver_stream(pipe.clone()).unwrap());
    let stepper = context.start_stepwise().unwrap();
    assert!(pipe.handle().store("a".into()));
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    assert!(pipe.handle().store_all(["b".to_owned(), "c".to_owned()]));
    pipe.handle().report_error("a hiccup");
    stepper.stop(true);
    assert!(!pipe.handle().store("d".into()));
    assert!(pipe.handle().is_stopped());
    assert_eq!(*locked(&pipe.stops), 1);
    let texts = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(*locked(&seen), [(1, texts(&["a"])), (2, texts(&["b", "c"]))]);
    assert_eq!(*locked(&diary.0), ["receiver started", "receiver reports a hiccup", "receiver stopped"]);
}

#[test]
fn a_stop_that_is_not_graceful_leaves_what_was_received() {
    let _alone = alone();
    let (context, clock) = context();
    let pipe = Pipe::default();
    let seen = sorted(&context.receiver_stream(pipe.clone()).unwrap());
    let stepper = context.start_stepwise().unwrap();
    pipe.handle().store("a".into());
    stepper.stop(false);
    clock.advance(seconds(1));
    assert_eq!(stepper.run_due().unwrap(), 0);
    assert!(locked(&seen).is_empty());
}

#[test]
fn received_rows_of_a_batch_that_a_crash_cut_short_are_there_again() {
    let _alone = alone();
    let world = World::new();
    let start = |fails: bool| {
        let clock = Arc::clone(&world.clock) as _;
        let context = StreamingContext::with_clock(seconds(1), clock).unwrap();
        context.checkpoint_in(Arc::clone(&world.files) as _).unwrap();
        let context = context.resuming().unwrap();
        let pipe = Pipe::default();
        let lines = context.receiver_stream(pipe.clone()).unwrap();
        let seen = sorted(&lines);
        lines.foreach_rdd(move |_, _| if fails { Err("it fails".into()) } else { Ok(()) }).unwrap();
        (context.start_stepwise().unwrap(), pipe, seen)
    };
    let (stepper, pipe, seen) = start(true);
    pipe.handle().store("a".into());
    world.tick();
    stepper.run_due().unwrap_err();
    assert_eq!(*locked(&seen), [(1, vec!["a".to_owned()])]);
    assert_eq!(world.files.list("sources/receiver").unwrap(), ["received-1000"]);
    let (stepper, pipe, seen) = start(false);
    pipe.handle().store("b".into());
    world.tick();
    stepper.run_due().unwrap();
    assert_eq!(*locked(&seen), [(1, vec!["a".to_owned()]), (2, vec!["b".to_owned()])]);
    assert!(world.files.list("sources/receiver").unwrap().is_empty());
}
