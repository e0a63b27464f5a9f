//! One program that runs: its queue of cut batches, and the way of a batch.

use super::journal::Journal;
use super::plan::Plan;
use crate::context::frame::Frame;
use crate::input::Opening;
use crate::listener::{BatchInfo, Listeners, OutputOperationInfo};
use crate::lock::locked;
use crate::time::zero_time;
use crate::{DStreamError, Time};
use millstream_checkpoint::OffsetRange;
use millstream_common::{BatchId, DurableFiles, Fault, Hint, MemoryFiles, StopSignal, describe_chain};
use millstream_wasm::BatchStamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// How many batches wait in the queue at most; more are cut when some have run.
const MOST_QUEUED: usize = 256;

/// A batch that is cut.
struct Cut {
    time: Time,
    submitted_ms: i64,
    ranges: BTreeMap<String, OffsetRange>,
    /// Whether it is defined already, by a run that did not finish it.
    again: bool,
}

impl Cut {
    fn info(&self) -> BatchInfo {
        BatchInfo {
            batch_time: self.time,
            submission_time_ms: self.submitted_ms,
            processing_start_ms: None,
            processing_end_ms: None,
            records: BTreeMap::new(),
        }
    }
}

/// What only one thread at a time works with.
struct Work {
    journal: Option<Journal>,
    next_batch: BatchId,
}

/// What an engine is opened with.
pub(crate) struct Opened {
    pub(crate) frame: Arc<Frame>,
    pub(crate) plan: Plan,
    pub(crate) listeners: Arc<Listeners>,
    /// The folder of the checkpoint, and whether the program goes on with what is there.
    pub(crate) checkpoint: Option<(Arc<dyn DurableFiles>, bool)>,
}

/// One program that runs.
pub(crate) struct Engine {
    pub(crate) frame: Arc<Frame>,
    plan: Plan,
    listeners: Arc<Listeners>,
    queue: Mutex<VecDeque<Cut>>,
    next_cut: Mutex<Time>,
    work: Mutex<Work>,
    /// Tells sources to end what takes long.
    stop: StopSignal,
    is_running: AtomicBool,
    /// That it is to end after the batch that runs.
    is_to_end: AtomicBool,
}

impl Engine {
    /// Opens checkpoint, state and inputs.
    pub(crate) fn open(opened: Opened) -> Result<Self, DStreamError> {
        let Opened { frame, plan, listeners, checkpoint } = opened;
        let (mut queue, stop) = (VecDeque::new(), StopSignal::new());
        let now = frame.clock.now_ms();
        let (mut journal, mut next_batch, mut last) = (None, BatchId::FIRST, zero_time(now, frame.interval_ms));
        let mut positions = BTreeMap::new();
        match checkpoint {
            None => {
                plan.resolve(&frame, |_| None);
                frame.begin_at(last);
                for (_, operation) in &plan.stateful {
                    operation.restore(true)?;
                }
            }
            Some((files, may_resume)) => {
                let (open, begin) = Journal::open(files, (&frame, &plan), may_resume)?;
                frame.begin_at(begin.zero);
                (next_batch, last, positions) = (begin.next_batch, begin.last, begin.positions);
                queue.extend(begin.again.map(|entry| Cut {
                    time: Time(entry.batch_time_ms),
                    submitted_ms: now,
                    ranges: entry.sources,
                    again: true,
                }));
                journal = Some(open);
            }
        }
        let next_cut = Mutex::new(last.plus(frame.interval_ms));
        let work = Mutex::new(Work { journal, next_batch });
        let (is_running, is_to_end) = (AtomicBool::new(false), AtomicBool::new(false));
        let queue = Mutex::new(queue);
        let engine = Self { frame, plan, listeners, queue, next_cut, work, stop, is_running, is_to_end };
        if let Err(error) = engine.open_inputs(positions) {
            engine.close();
            return Err(error);
        }
        Ok(engine)
    }

    fn open_inputs(&self, mut positions: BTreeMap<String, Option<serde_json::Value>>) -> Result<(), DStreamError> {
        let work = locked(&self.work);
        for input in &self.plan.inputs {
            let position = positions.remove(input.name());
            let files = work.journal.as_ref().map(|journal| journal.input_files(input.name()));
            input.open(Opening {
                durable: files.is_some(),
                files: files.unwrap_or_else(|| Arc::new(MemoryFiles::default())),
                clock: Arc::clone(&self.frame.clock),
                stop: self.stop.clone(),
                listeners: Arc::clone(&self.listeners),
                resumed: position.is_some(),
                position: position.flatten(),
            })?;
        }
        Ok(())
    }

    /// When the next batch is cut.
    pub(crate) fn next_cut(&self) -> Time {
        *locked(&self.next_cut)
    }

    /// How many batches wait.
    pub(crate) fn queued(&self) -> usize {
        locked(&self.queue).len()
    }

    /// Cuts the batches whose time has come, as long as the queue has room.
    pub(crate) fn cut_due(&self, now_ms: i64) -> Result<usize, DStreamError> {
        let mut cut = 0;
        while self.next_cut().0 <= now_ms && self.queued() < MOST_QUEUED {
            self.cut_next()?;
            cut += 1;
        }
        Ok(cut)
    }

    /// Cuts the next batch, whether its time has come or not.
    pub(crate) fn cut_next(&self) -> Result<(), DStreamError> {
        let mut next = locked(&self.next_cut);
        let mut ranges = BTreeMap::new();
        for input in &self.plan.inputs {
            ranges.insert(input.name().to_owned(), input.cut()?);
        }
        let cut = Cut { time: *next, submitted_ms: self.frame.clock.now_ms(), ranges, again: false };
        *next = next.plus(self.frame.interval_ms);
        drop(next);
        let info = cut.info();
        locked(&self.queue).push_back(cut);
        self.listeners.tell(|listener| listener.on_batch_submitted(&info));
        Ok(())
    }

    /// Whether rows were received that no batch has been cut of.
    pub(crate) fn has_pending(&self) -> bool {
        self.plan.inputs.iter().any(|input| input.has_pending())
    }

    /// Receives no more.
    pub(crate) fn stop_receiving(&self) {
        self.plan.inputs.iter().for_each(|input| input.stop_receiving());
    }

    /// Runs the first batch in the queue; `false` when there is none.
    pub(crate) fn run_next(&self) -> Result<bool, DStreamError> {
        let Some(cut) = locked(&self.queue).pop_front() else { return Ok(false) };
        let mut work = locked(&self.work);
        self.is_running.store(true, Ordering::SeqCst);
        let result = self.run(&mut work, &cut);
        self.is_running.store(false, Ordering::SeqCst);
        result.map(|()| true)
    }

    /// Asks for the end after the batch that runs; `false` when none runs.
    pub(crate) fn end_after_batch(&self) -> bool {
        self.is_to_end.store(true, Ordering::SeqCst);
        self.is_running.load(Ordering::SeqCst)
    }

    /// Whether the end was asked for while a batch ran.
    pub(crate) fn is_to_end(&self) -> bool {
        self.is_to_end.load(Ordering::SeqCst)
    }

    fn run(&self, work: &mut Work, cut: &Cut) -> Result<(), DStreamError> {
        let (batch, time, clock) = (work.next_batch, cut.time, &self.frame.clock);
        let mut info = BatchInfo { processing_start_ms: Some(clock.now_ms()), ..cut.info() };
        for input in &self.plan.inputs {
            let range = cut.ranges.get(input.name()).cloned().unwrap_or_default();
            info.records.insert(input.name().to_owned(), input.load(time, &range, cut.again)?);
        }
        if let Some(journal) = work.journal.as_mut().filter(|_| !cut.again) {
            journal.define(batch, time, clock.now_ms(), &cut.ranges)?;
        }
        for input in &self.plan.inputs {
            if let Some(range) = cut.ranges.get(input.name()) {
                input.defined(range)?;
            }
        }
        self.listeners.tell(|listener| listener.on_batch_started(&info));
        let query = work.journal.as_ref().map(Journal::query);
        let stamp = BatchStamp { query, batch: Some(batch), time_ms: time.0 };
        self.plan.plugins.iter().for_each(|slot| slot.begin_batch(stamp));
        self.execute(time)?;
        if let Some(journal) = &mut work.journal {
            journal.commit(batch, clock.now_ms(), &self.plan)?;
        }
        self.plan.inputs.iter().for_each(|input| input.committed(time));
        let remembered = i64::try_from(self.frame.remember_ms.load(Ordering::SeqCst)).unwrap_or(i64::MAX);
        self.plan.nodes.values().for_each(|node| node.forget(time.minus(remembered).plus(1)));
        work.next_batch = batch.next();
        info.processing_end_ms = Some(clock.now_ms());
        self.plan.inputs.iter().for_each(|input| input.worked(&info));
        self.listeners.tell(|listener| listener.on_batch_completed(&info));
        Ok(())
    }

    /// Brings state on, and does the jobs of the output operations.
    fn execute(&self, time: Time) -> Result<(), DStreamError> {
        for (_, operation) in &self.plan.stateful {
            operation.advance(time)?;
        }
        if self.frame.remember_ms.load(Ordering::SeqCst) > 0 {
            // What is remembered must have been there: an input cannot be asked later.
            self.plan.nodes.values().try_for_each(|node| node.touch(time))?;
        }
        for (id, output) in self.plan.outputs.iter().enumerate() {
            if !self.frame.is_valid(output.stream.slide_ms(), time) {
                continue;
            }
            let mut info = OutputOperationInfo {
                batch_time: time,
                id,
                description: output.description.clone(),
                start_ms: self.frame.clock.now_ms(),
                end_ms: None,
                failure: None,
            };
            self.listeners.tell(|listener| listener.on_output_operation_started(&info));
            let done = (output.run)(time);
            info.end_ms = Some(self.frame.clock.now_ms());
            info.failure = done.as_ref().err().map(|error| describe_chain(error));
            self.listeners.tell(|listener| listener.on_output_operation_completed(&info));
            done?;
        }
        Ok(())
    }

    /// Ends what inputs wait for: a batch that is being cut or read is left to the next run.
    pub(crate) fn interrupt(&self) {
        self.stop.set();
    }

    /// Whether an error only says that an input was interrupted.
    pub(crate) fn is_interruption(&self, error: &DStreamError) -> bool {
        self.stop.is_set() && matches!(error, DStreamError::Source(error) if error.fault() == Fault::Outside)
    }

    /// Ends inputs and gives the checkpoint back. What is in the queue is left for the next run.
    pub(crate) fn close(&self) {
        self.stop.set();
        self.plan.inputs.iter().for_each(|input| input.stop());
        if let Some(journal) = locked(&self.work).journal.take() {
            journal.release();
        }
    }
}
