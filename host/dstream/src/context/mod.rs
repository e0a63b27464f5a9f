//! The streaming context: where a program of streams is made, started and stopped.
//!
//! ```text
//!   new ──► inputs, operations, outputs ──start──► batches ──stop──► over
//!            nothing runs yet            nothing may be added      it cannot be started again
//! ```
//!
//! Rule of its life: one context of a process runs at a time.

mod active;
pub(crate) mod frame;
mod inputs;
pub(crate) mod settings;

use crate::listener::{Listeners, StreamingListener};
use crate::lock::locked;
use crate::output::Outputs;
use crate::rdd::Rdd;
use crate::schedule::{Control, Engine, Opened, Plan, Stepper};
use crate::stream::DStream;
use crate::time::millis;
use crate::{DStreamError, Data, Refusal, Time};
use frame::{Frame, Phase};
use millstream_checkpoint::open_files;
use millstream_common::{Clock, DurableFiles, SystemClock};
use millstream_source::{SourceFactory, SourceRegistry};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// In which phase of its life a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextState {
    /// It can be added to and started.
    Initialized,
    /// It runs.
    Active,
    /// It is over.
    Stopped,
}

/// What is said before the start.
struct Build {
    checkpoint: Option<Arc<dyn DurableFiles>>,
    may_resume: bool,
    /// How many inputs of a kind there are.
    names: BTreeMap<String, usize>,
    registry: SourceRegistry,
}

/// A context that runs.
struct Run {
    engine: Arc<Engine>,
    /// The program says when, on its own thread.
    is_stepwise: bool,
}

struct Inner {
    frame: Arc<Frame>,
    outputs: Arc<Outputs>,
    listeners: Arc<Listeners>,
    build: Mutex<Build>,
    run: Mutex<Option<Run>>,
    control: Arc<Control>,
}

/// The entry to streams: makes inputs, and runs what output operations need of them, batch by batch.
///
/// Clones are the same context.
#[derive(Clone)]
pub struct StreamingContext {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for StreamingContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingContext").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl StreamingContext {
    /// A context whose batches are `batch_interval` long.
    ///
    /// # Errors
    /// [`Refusal::Interval`] when that is less than a millisecond.
    pub fn new(batch_interval: Duration) -> Result<Self, DStreamError> {
        Self::with_clock(batch_interval, Arc::new(SystemClock::default()))
    }

    /// As `new`, over a clock.
    ///
    /// # Errors
    /// As `new`.
    pub fn with_clock(batch_interval: Duration, clock: Arc<dyn Clock>) -> Result<Self, DStreamError> {
        let interval_ms = millis(batch_interval);
        if interval_ms < 1 {
            return Err(Refusal::Interval { interval_ms }.into());
        }
        let build = Build {
            checkpoint: None,
            may_resume: false,
            names: BTreeMap::new(),
            registry: SourceRegistry::with_builtins(),
        };
        let inner = Inner {
            frame: Arc::new(Frame::new(interval_ms, clock)),
            outputs: Arc::default(),
            listeners: Arc::default(),
            build: Mutex::new(build),
            run: Mutex::default(),
            control: Arc::new(Control::new()),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn before_start(&self, what: &'static str) -> Result<(), DStreamError> {
        self.inner.frame.too_late(what).map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// Sets a setting, with Spark's name; README.md lists them.
    ///
    /// # Errors
    /// When there is no such setting, the value does not fit, or the context has been started.
    pub fn set(&self, name: &str, value: &str) -> Result<(), DStreamError> {
        self.before_start("a setting")?;
        self.inner.frame.settings().set(name, value)
    }

    /// Keeps batches and state in a checkpoint: a folder, or the URL of an object store.
    ///
    /// # Errors
    /// When it is no place for a checkpoint, or the context has been started.
    pub fn checkpoint(&self, place: &str) -> Result<(), DStreamError> {
        self.checkpoint_in(open_files(place, &[])?)
    }

    /// As `checkpoint`, in durable files.
    ///
    /// # Errors
    /// When the context has been started.
    pub fn checkpoint_in(&self, files: Arc<dyn DurableFiles>) -> Result<(), DStreamError> {
        self.before_start("a checkpoint")?;
        locked(&self.inner.build).checkpoint = Some(files);
        Ok(())
    }

    /// Keeps the rows of every stream for that long, for [`slice`](DStream::slice). Windows remember by themselves.
    ///
    /// # Errors
    /// When it is less than a batch interval, or the context has been started.
    pub fn remember(&self, duration: Duration) -> Result<(), DStreamError> {
        self.before_start("a time to remember")?;
        let (remember_ms, interval_ms) = (millis(duration), self.inner.frame.interval_ms);
        if remember_ms < interval_ms {
            return Err(Refusal::Remember { remember_ms, interval_ms }.into());
        }
        self.inner.frame.remember_ms.store(remember_ms.unsigned_abs(), Ordering::SeqCst);
        Ok(())
    }

    /// Adds a kind of source for [`direct_stream`](Self::direct_stream), or replaces one.
    pub fn register_source(&self, format: &str, factory: Arc<dyn SourceFactory>) {
        locked(&self.inner.build).registry.register(format, factory);
    }

    /// Adds a listener, also while the context runs.
    pub fn add_streaming_listener(&self, listener: Arc<dyn StreamingListener>) {
        self.inner.listeners.add(listener);
    }

    /// The rows of all streams, whose slides must be the same.
    ///
    /// # Errors
    /// [`Refusal::NoStreams`] without any.
    pub fn union<T: Data>(&self, streams: &[DStream<T>]) -> Result<DStream<T>, DStreamError> {
        if streams.is_empty() {
            return Err(Refusal::NoStreams { operation: "union" }.into());
        }
        Ok(DStream::union_all("union", streams))
    }

    /// The rows of all streams by a function of them all. The slides must be the same.
    ///
    /// # Errors
    /// [`Refusal::NoStreams`] without any.
    pub fn transform<T: Data, U: Data>(
        &self,
        streams: &[DStream<T>],
        f: impl Fn(&[Rdd<T>], Time) -> Rdd<U> + Send + Sync + 'static,
    ) -> Result<DStream<U>, DStreamError> {
        if streams.is_empty() {
            return Err(Refusal::NoStreams { operation: "transform" }.into());
        }
        Ok(DStream::transform_all(streams, f))
    }

    /// In which phase of its life it is.
    pub fn state(&self) -> ContextState {
        match self.inner.frame.phase() {
            Phase::Built => ContextState::Initialized,
            Phase::Active => ContextState::Active,
            Phase::Stopped => ContextState::Stopped,
        }
    }

    /// Starts it: batches are cut and run on threads of its own.
    ///
    /// # Errors
    /// When the program may not be, another context runs, the checkpoint is another program's, or an input cannot be opened.
    pub fn start(&self) -> Result<(), DStreamError> {
        let engine = self.open(false)?;
        let ending = self.clone();
        if let Err(error) = self.inner.control.start(&engine, move || ending.ended()) {
            engine.close();
            self.ended();
            return Err(error);
        }
        Ok(())
    }

    /// Starts it without threads: batches run when the [`Stepper`] is told to.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_stepwise(&self) -> Result<Stepper, DStreamError> {
        self.open(true)?;
        Ok(Stepper(self.clone()))
    }

    fn open(&self, is_stepwise: bool) -> Result<Arc<Engine>, DStreamError> {
        match self.inner.frame.phase() {
            Phase::Built => {}
            Phase::Active => return Err(Refusal::Started.into()),
            Phase::Stopped => return Err(Refusal::Restart.into()),
        }
        let checkpoint = {
            let build = locked(&self.inner.build);
            build.checkpoint.clone().map(|files| (files, build.may_resume))
        };
        let plan = Plan::new(self.inner.outputs.all().clone(), checkpoint.is_some())?;
        self.claim()?;
        self.inner.frame.enter(Phase::Active);
        let (frame, listeners) = (Arc::clone(&self.inner.frame), Arc::clone(&self.inner.listeners));
        let engine = match Engine::open(Opened { frame, plan, listeners, checkpoint }) {
            Ok(engine) => Arc::new(engine),
            Err(error) => {
                self.ended();
                return Err(error);
            }
        };
        *locked(&self.inner.run) = Some(Run { engine: Arc::clone(&engine), is_stepwise });
        let now = self.inner.frame.clock.now_ms();
        self.inner.listeners.tell(|listener| listener.on_streaming_started(now));
        Ok(engine)
    }

    /// It is over: another one may start.
    fn ended(&self) {
        self.inner.frame.enter(Phase::Stopped);
        self.unclaim();
        locked(&self.inner.run).take();
    }

    /// The engine of a context that is run step by step.
    fn stepwise(&self) -> Option<Arc<Engine>> {
        locked(&self.inner.run).as_ref().filter(|run| run.is_stepwise).map(|run| Arc::clone(&run.engine))
    }

    pub(crate) fn step(&self) -> Result<usize, Arc<DStreamError>> {
        let Some(engine) = self.stepwise() else { return Ok(0) };
        let mut ran = 0;
        let result = loop {
            match engine.cut_due(self.inner.frame.clock.now_ms()).and_then(|_| engine.run_next()) {
                Ok(true) => {
                    ran += 1;
                    if engine.is_to_end() {
                        self.end_stepwise(&engine, None);
                        return Ok(ran);
                    }
                }
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        match result {
            None => Ok(ran),
            Some(error) => {
                self.end_stepwise(&engine, Some(error));
                self.inner.control.wait(None).unwrap_or(Ok(())).map(|()| ran)
            }
        }
    }

    fn end_stepwise(&self, engine: &Engine, failure: Option<DStreamError>) {
        engine.close();
        self.ended();
        self.inner.control.end_with(failure);
    }

    /// Stops it. A graceful stop first ends receivers and runs what they received, within
    /// `spark.streaming.gracefulStopTimeout`; one that is not ends after the batch that runs. With a checkpoint, what was
    /// not run is run after the next start. A context that is not running is only marked as over.
    pub fn stop(&self, graceful: bool) {
        match self.state() {
            ContextState::Initialized => self.inner.frame.enter(Phase::Stopped),
            ContextState::Stopped => {}
            ContextState::Active => match self.stepwise() {
                None => {
                    let engine = locked(&self.inner.run).as_ref().map(|run| Arc::clone(&run.engine));
                    let interrupt = || engine.iter().for_each(|engine| engine.interrupt());
                    self.inner.control.stop(graceful, self.graceful_timeout(), interrupt);
                }
                // An output operation asks for the end: its batch is brought to its end first.
                Some(engine) if engine.end_after_batch() => {}
                Some(engine) => {
                    let drained = if graceful { drain(&engine) } else { Ok(()) };
                    self.end_stepwise(&engine, drained.err());
                }
            },
        }
    }

    fn graceful_timeout(&self) -> Duration {
        let given = self.inner.frame.settings().graceful_stop_ms;
        let ms = given.unwrap_or_else(|| self.inner.frame.interval_ms.saturating_mul(10));
        Duration::from_millis(ms.unsigned_abs())
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// What ended it, if it was a failure.
    pub fn await_termination(&self) -> Result<(), Arc<DStreamError>> {
        self.inner.control.wait(None).unwrap_or(Ok(()))
    }

    /// Waits until it is over, or for `timeout`; whether it is over.
    ///
    /// # Errors
    /// What ended it, if it was a failure.
    pub fn await_termination_or_timeout(&self, timeout: Duration) -> Result<bool, Arc<DStreamError>> {
        self.inner.control.wait(Some(timeout)).map_or(Ok(false), |ended| ended.map(|()| true))
    }
}

/// Runs what was received, without waiting for its time.
fn drain(engine: &Engine) -> Result<(), DStreamError> {
    engine.stop_receiving();
    while engine.run_next()? {}
    while engine.has_pending() {
        engine.cut_next()?;
        engine.run_next()?;
    }
    Ok(())
}
