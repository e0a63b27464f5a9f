//! What stories are told with.

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use millstream_common::{DurableFiles, ManualClock, MemoryFiles};
use millstream_dstream::{DStream, Data, DirectOptions, RddQueue, Record, StreamingContext};
use millstream_source::connectors::memory::MemoryStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One context runs at a time in a process; so does one story.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// What an output operation saw: the time of each batch in seconds, and its rows.
pub(crate) type Seen<T> = Arc<Mutex<Vec<(i64, Vec<T>)>>>;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees the rows of each batch, sorted.
pub(crate) fn sorted<T: Data + Ord>(stream: &DStream<T>) -> Seen<T> {
    let seen = Seen::<T>::default();
    let theirs = Arc::clone(&seen);
    let seeing = stream.foreach_rdd(move |rows, time| {
        let mut rows = rows.collect()?;
        rows.sort();
        locked(&theirs).push((time.millis() / 1000, rows));
        Ok(())
    });
    seeing.unwrap();
    seen
}

/// A context of one-second batches that begins at 0.
pub(crate) fn context() -> (StreamingContext, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(0));
    let context = StreamingContext::with_clock(seconds(1), Arc::clone(&clock) as _).unwrap();
    context.set("spark.default.parallelism", "2").unwrap();
    (context, clock)
}

/// Runs a program over a queue: an entry per second. What its output saw.
pub(crate) fn over_queue<T: Data, U: Data + Ord>(
    batches: Vec<Vec<T>>,
    program: impl Fn(&StreamingContext, DStream<T>) -> DStream<U>,
) -> Vec<(i64, Vec<U>)> {
    let _alone = alone();
    let (context, clock) = context();
    let queue = RddQueue::new();
    let stream = context.queue_stream(&queue).unwrap();
    let seen = sorted(&program(&context, stream));
    let stepper = context.start_stepwise().unwrap();
    for rows in batches {
        queue.push(rows);
        clock.advance(seconds(1));
        assert_eq!(stepper.run_due().unwrap(), 1);
    }
    drop(stepper);
    std::mem::take(&mut *locked(&seen))
}

/// Lines that can be read again, and a checkpoint in memory.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) lines: MemoryStream,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new() -> Self {
        let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8, true)]));
        Self { lines: MemoryStream::new(schema), files: Arc::default(), clock: Arc::new(ManualClock::at(0)) }
    }

    /// Adds lines.
    pub(crate) fn say(&self, lines: &[&str]) {
        let column = Arc::new(StringArray::from(lines.to_vec()));
        let rows = RecordBatch::try_new(Arc::clone(self.lines.schema()), vec![column]).unwrap();
        self.lines.add_data(rows).unwrap();
    }

    /// A context with the checkpoint, which goes on with what is there, and its lines.
    pub(crate) fn context_in(&self, files: Arc<dyn DurableFiles>) -> (StreamingContext, DStream<String>) {
        let clock = Arc::clone(&self.clock);
        let context = StreamingContext::with_clock(seconds(1), clock as _).unwrap();
        context.set("spark.default.parallelism", "2").unwrap();
        context.register_source("memory", Arc::new(self.lines.clone()));
        context.checkpoint_in(files).unwrap();
        let context = context.resuming().unwrap();
        let records = context.direct_stream("memory", DirectOptions::default()).unwrap();
        let lines = records.map(|record: Record| record.row().get_string("value").unwrap().unwrap_or("").to_owned());
        (context, lines)
    }

    pub(crate) fn context(&self) -> (StreamingContext, DStream<String>) {
        self.context_in(Arc::clone(&self.files) as _)
    }

    /// Moves the clock by a second.
    pub(crate) fn tick(&self) {
        self.clock.advance(seconds(1));
    }
}

/// Runs a program with state: some lines per second. What its output saw.
pub(crate) fn over_lines<U: Data + Ord>(
    batches: &[&[&str]],
    program: impl Fn(DStream<String>) -> DStream<U>,
) -> Vec<(i64, Vec<U>)> {
    let _alone = alone();
    let world = World::new();
    let (context, lines) = world.context();
    let seen = sorted(&program(lines));
    let stepper = context.start_stepwise().unwrap();
    for lines in batches {
        world.say(lines);
        world.tick();
        assert_eq!(stepper.run_due().unwrap(), 1);
    }
    drop(stepper);
    std::mem::take(&mut *locked(&seen))
}

/// `word` once.
pub(crate) fn pair(line: String) -> (String, i64) {
    (line, 1)
}

/// Owned words with numbers, for what is expected.
pub(crate) fn counts(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
}
