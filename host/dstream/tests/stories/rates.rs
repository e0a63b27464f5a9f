//! How much a batch takes at most.

use crate::harness::{World, alone, locked, seconds, sorted};
use millstream_dstream::{Receiver, ReceiverHandle, StreamingContext};
use std::sync::Arc;

struct Burst;

impl Receiver<i64> for Burst {
    fn on_start(&self, handle: ReceiverHandle<i64>) {
        handle.store_all(1..=5);
    }
    fn on_stop(&self) {}
}

#[test]
fn a_receiver_gives_a_batch_no_more_than_its_rate() {
    let _alone = alone();
    let world = World::new();
    let context = StreamingContext::with_clock(seconds(1), Arc::clone(&world.clock) as _).unwrap();
    context.set("spark.streaming.receiver.maxRate", "2").unwrap();
    let seen = sorted(&context.receiver_stream(Burst).unwrap());
    let stepper = context.start_stepwise().unwrap();
    world.tick();
    stepper.run_due().unwrap();
    stepper.stop(true);
    assert_eq!(*locked(&seen), [(1, vec![1, 2]), (2, vec![3, 4]), (3, vec![5])]);
}

#[test]
fn a_direct_stream_gives_a_batch_no_more_than_its_rate() {
    let _alone = alone();
    let world = World::new();
    let (context, lines) = world.context();
    context.set("spark.streaming.kafka.maxRatePerPartition", "1").unwrap();
    let seen = sorted(&lines.count());
    let stepper = context.start_stepwise().unwrap();
    world.say(&["a"]);
    world.say(&["b"]);
    world.clock.advance(seconds(3));
    stepper.run_due().unwrap();
    assert_eq!(*locked(&seen), [(1, vec![1]), (2, vec![1]), (3, vec![0])]);
}
