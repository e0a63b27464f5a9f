//! The two threads of a context that runs, and how they end.
//!
//! The timer cuts, the runner runs. A graceful stop lets the timer cut what was received and the runner run what was cut; a
//! stop that is not leaves both after the batch that runs; a batch that is still being read is left to the next run. Whichever ends it, the runner closes the engine and says how it
//! ended.

use super::Engine;
use crate::DStreamError;
use crate::lock::locked;
use millstream_common::guarded;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The longest that the timer waits before it looks at the clock again: it may be one that a test moves.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// What the two threads are for.
const TIMER: &str = "the timer";
const BATCHES: &str = "the batches";

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Run,
    Graceful,
    Now,
}

struct State {
    wish: Wish,
    /// Nothing will be cut any more.
    is_cut_out: bool,
    failure: Option<DStreamError>,
    /// How it ended.
    ended: Option<Result<(), Arc<DStreamError>>>,
    own_threads: Vec<ThreadId>,
}

/// The wish of the program, and the end of the run.
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

impl Control {
    pub(crate) fn new() -> Self {
        let state = State { wish: Wish::Run, is_cut_out: false, failure: None, ended: None, own_threads: Vec::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Starts the threads. `at_end` is called when all is over.
    pub(crate) fn start(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        at_end: impl Fn() + Send + 'static,
    ) -> Result<(), DStreamError> {
        let (control, theirs) = (Arc::clone(self), Arc::clone(engine));
        let runner = move || {
            control.run(&theirs);
            control.or_fail(BATCHES, || theirs.close());
            control.or_fail(BATCHES, at_end);
            control.end();
        };
        let (control, theirs) = (Arc::clone(self), Arc::clone(engine));
        let timer = move || {
            control.or_fail(TIMER, || control.cut(&theirs));
            control.lock().is_cut_out = true;
            control.changed.notify_all();
        };
        let spawn = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let failed = |what| move |source| DStreamError::Thread { what, source };
        let timer = spawn("dstream-timer").spawn(timer).map_err(failed(TIMER))?;
        let runner = match spawn("dstream-runner").spawn(runner) {
            Ok(runner) => runner,
            Err(error) => {
                self.wish(Wish::Now);
                return Err(failed(BATCHES)(error));
            }
        };
        self.lock().own_threads = vec![timer.thread().id(), runner.thread().id()];
        Ok(())
    }

    fn wish(&self, wish: Wish) {
        let mut state = self.lock();
        state.wish = state.wish.max(wish);
        drop(state);
        self.changed.notify_all();
    }

    /// The timer: cuts until it need not.
    fn cut(&self, engine: &Engine) {
        let mut is_receiving = true;
        loop {
            let wish = self.lock().wish;
            let now = engine.frame.clock.now_ms();
            let cut = match wish {
                Wish::Now => break,
                Wish::Run => engine.cut_due(now),
                Wish::Graceful => {
                    if std::mem::replace(&mut is_receiving, false) {
                        engine.stop_receiving();
                    }
                    if !engine.has_pending() {
                        break;
                    }
                    engine.cut_next().map(|()| 1)
                }
            };
            match cut {
                Ok(0) => {}
                Ok(_) => {
                    // The runner looks at the queue with this lock held, so it hears of what was cut.
                    drop(self.lock());
                    self.changed.notify_all();
                }
                Err(error) if engine.is_interruption(&error) => break,
                Err(error) => {
                    self.lock().failure = Some(error);
                    break;
                }
            }
            let ahead = engine.next_cut().0.saturating_sub(now).max(1).unsigned_abs();
            let wait = Duration::from_millis(ahead).min(LONGEST_WAIT);
            let state = self.lock();
            if state.wish == Wish::Run {
                drop(self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// The runner: runs what is cut until nothing more comes, and waits for the timer.
    fn run(&self, engine: &Engine) {
        self.or_fail(BATCHES, || self.run_all(engine));
        self.wish(Wish::Now);
        let mut state = self.lock();
        while !state.is_cut_out {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Does the work of a thread; a panic ends the run, and must not leave anybody waiting.
    fn or_fail(&self, what: &'static str, work: impl FnOnce()) {
        if let Err(source) = guarded(work) {
            self.lock().failure.get_or_insert(DStreamError::Panicked { what, source });
            self.wish(Wish::Now);
        }
    }

    fn run_all(&self, engine: &Engine) {
        loop {
            if self.lock().wish == Wish::Now {
                break;
            }
            match engine.run_next() {
                Ok(true) => self.changed.notify_all(),
                Ok(false) => {
                    let state = self.lock();
                    if engine.queued() > 0 {
                        continue;
                    }
                    if state.is_cut_out {
                        break;
                    }
                    drop(self.changed.wait_timeout(state, LONGEST_WAIT * 4).unwrap_or_else(PoisonError::into_inner));
                }
                Err(error) if engine.is_interruption(&error) => break,
                Err(error) => {
                    self.lock().failure.get_or_insert(error);
                    break;
                }
            }
        }
    }

    fn end(&self) {
        let mut state = self.lock();
        let result = state.failure.take().map_or(Ok(()), |error| Err(Arc::new(error)));
        state.ended.get_or_insert(result);
        drop(state);
        self.changed.notify_all();
    }

    /// Says that it ended, where there are no threads.
    pub(crate) fn end_with(&self, failure: Option<DStreamError>) {
        self.lock().failure = failure;
        self.end();
    }

    /// Asks for the end and waits for it, unless it is asked from within. `interrupt` ends what inputs wait for, when the end
    /// is not to be graceful, or takes too long.
    pub(crate) fn stop(&self, graceful: bool, timeout: Duration, interrupt: impl Fn()) {
        self.wish(if graceful { Wish::Graceful } else { Wish::Now });
        if !graceful {
            interrupt();
        }
        if self.lock().own_threads.contains(&std::thread::current().id()) {
            return;
        }
        if graceful && self.wait(Some(timeout)).is_none() {
            tracing::warn!("a graceful stop took too long: what is left is run after the next start");
            self.wish(Wish::Now);
            interrupt();
        }
        drop(self.wait(None));
    }

    /// Waits for the end; `None` when the time was over before.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<Result<(), Arc<DStreamError>>> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        loop {
            if let Some(ended) = &state.ended {
                return Some(ended.clone());
            }
            state = match until {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
