//! What listeners are told.

use crate::harness::{alone, context, locked, seconds};
use millstream_dstream::{BatchInfo, OutputOperationInfo, RddQueue, StreamingListener};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn note(&self, what: String) {
        locked(&self.0).push(what);
    }
}

impl StreamingListener for Diary {
    fn on_streaming_started(&self, time_ms: i64) {
        self.note(format!("started at {time_ms}"));
    }
    fn on_batch_submitted(&self, batch: &BatchInfo) {
        self.note(format!("submitted {}", batch.batch_time));
    }
    fn on_batch_started(&self, batch: &BatchInfo) {
        self.note(format!(
            "begun {} with {} after {:?}",
            batch.batch_time,
            batch.num_records(),
            batch.scheduling_delay()
        ));
    }
    fn on_batch_completed(&self, batch: &BatchInfo) {
        let delays = (batch.scheduling_delay(), batch.processing_delay(), batch.total_delay());
        self.note(format!("done {} {delays:?}", batch.batch_time));
    }
    fn on_output_operation_started(&self, operation: &OutputOperationInfo) {
        self.note(format!("{} begins", operation.description));
    }
    fn on_output_operation_completed(&self, operation: &OutputOperationInfo) {
        self.note(format!("{} ends, failed: {}", operation.description, operation.failure.is_some()));
    }
}

#[test]
fn a_batch_is_told_from_its_cut_to_its_end() {
    let _alone = alone();
    let (context, clock) = context();
    let queue = RddQueue::new();
    let diary = Arc::new(Diary::default());
    context.add_streaming_listener(Arc::clone(&diary) as _);
    let moving = Arc::clone(&clock);
    let seeing = context.queue_stream(&queue).unwrap().foreach_rdd(move |rows, _| {
        moving.advance(std::time::Duration::from_millis(30));
        if rows.is_empty()? { Err("nothing there".into()) } else { Ok(()) }
    });
    seeing.unwrap();
    let stepper = context.start_stepwise().unwrap();
    queue.push(vec![1, 2]);
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    clock.advance(seconds(1));
    stepper.run_due().unwrap_err();
    let wanted = [
        "started at 0",
        "submitted 1000 ms",
        "begun 1000 ms with 2 after Some(0)",
        "foreach_rdd 0 begins",
        "foreach_rdd 0 ends, failed: false",
        "done 1000 ms (Some(0), Some(30), Some(30))",
        "submitted 2000 ms",
        "begun 2000 ms with 0 after Some(0)",
        "foreach_rdd 0 begins",
        "foreach_rdd 0 ends, failed: true",
    ];
    assert_eq!(*locked(&diary.0), wanted);
}
