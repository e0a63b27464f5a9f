//! Receivers of the program: code that runs on threads of its own and stores rows.
//!
//! ```text
//!   on_start ──► threads of the receiver ──store──► rows that wait ──cut──► a batch
//!       ▲                    │ restart: on_stop, a pause, on_start
//!       └────────────────────┘
//! ```
//!
//! Rule of its life: `store` answers when the rows wait in memory; they are durable when the batch that they are in is
//! defined. At most a million rows wait; then `store` waits until a batch takes some, or the receiver is stopped.

use super::{Input, Kept, Opening, Pressure, Slot, count, counted, kept};
use crate::context::frame::Frame;
use crate::context::settings::rows_per_batch;
use crate::listener::{Listeners, ReceiverInfo};
use crate::lock::locked;
use crate::rdd::{Rdd, guarded};
use crate::{BatchInfo, DStreamError, Item, Time};
use millstream_checkpoint::{ConnectorPin, OffsetRange};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many rows wait at most.
const MOST_WAITING: usize = 1 << 20;
/// How long a receiver that asked for it is left alone before it starts again.
const RESTART_DELAY: Duration = Duration::from_secs(2);

/// What receives rows.
pub trait Receiver<T>: Send + Sync + 'static {
    /// Begins: starts threads that call [`ReceiverHandle::store`], and returns.
    fn on_start(&self, handle: ReceiverHandle<T>);
    /// Ends what `on_start` began; threads look at [`ReceiverHandle::is_stopped`].
    fn on_stop(&self);
}

struct Shared<T> {
    input: String,
    state: Mutex<Waiting<T>>,
    changed: Condvar,
    restart_delay: Duration,
}

struct Waiting<T> {
    rows: VecDeque<T>,
    /// Handles of other starts than this one are stopped.
    start: u64,
    stopped: bool,
    last_error: String,
    receiver: Arc<dyn Receiver<T>>,
    listeners: Option<Arc<Listeners>>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        locked(&self.state)
    }

    fn tell(&self, active: bool, what: impl Fn(&dyn crate::StreamingListener, &ReceiverInfo)) {
        let (info, listeners) = {
            let waiting = self.lock();
            let info = ReceiverInfo { input: self.input.clone(), active, last_error: waiting.last_error.clone() };
            (info, waiting.listeners.clone())
        };
        if let Some(listeners) = listeners {
            listeners.tell(|listener| what(listener, &info));
        }
    }
}

/// What a receiver stores by. Clones are the same.
pub struct ReceiverHandle<T> {
    shared: Arc<Shared<T>>,
    start: u64,
}

impl<T> Clone for ReceiverHandle<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), start: self.start }
    }
}

impl<T> std::fmt::Debug for ReceiverHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiverHandle").field("input", &self.shared.input).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> ReceiverHandle<T> {
    /// Stores a row; `false` when the receiver has been stopped, and the row is not taken.
    pub fn store(&self, row: T) -> bool {
        self.store_all([row])
    }

    /// Stores rows, which come into one batch as far as its limits allow; `false` when the receiver has been stopped, and
    /// none is taken.
    pub fn store_all(&self, rows: impl IntoIterator<Item = T>) -> bool {
        let mut waiting = self.shared.lock();
        while waiting.rows.len() >= MOST_WAITING && !self.is_over(&waiting) {
            waiting = self.shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_over(&waiting) {
            return false;
        }
        waiting.rows.extend(rows);
        true
    }

    fn is_over(&self, waiting: &Waiting<T>) -> bool {
        waiting.stopped || waiting.start != self.start
    }

    /// Whether this start of the receiver is over.
    pub fn is_stopped(&self) -> bool {
        self.is_over(&self.shared.lock())
    }

    /// Tells the listeners of an error; the receiver goes on.
    pub fn report_error(&self, message: &str) {
        tracing::warn!(input = self.shared.input, message, "a receiver reported an error");
        message.clone_into(&mut self.shared.lock().last_error);
        self.shared.tell(true, |listener, info| listener.on_receiver_error(info));
    }

    /// Ends this start and, after two seconds, begins anew, on a thread of its own.
    pub fn restart(&self, message: &str) {
        let receiver = {
            let mut waiting = self.shared.lock();
            if self.is_over(&waiting) {
                return;
            }
            waiting.start += 1;
            Arc::clone(&waiting.receiver)
        };
        self.shared.changed.notify_all();
        tracing::warn!(input = self.shared.input, message, "a receiver starts again");
        let next = Self { shared: Arc::clone(&self.shared), start: self.start + 1 };
        let work = move || {
            stop_receiver(&*receiver, &next.shared.input);
            let waiting = next.shared.lock();
            let rest =
                next.shared.changed.wait_timeout_while(waiting, next.shared.restart_delay, |waiting| !waiting.stopped);
            let stopped = rest.unwrap_or_else(PoisonError::into_inner).0.stopped;
            if !stopped {
                start_receiver(&*receiver, next);
            }
        };
        let name = format!("receiver-{}", self.shared.input);
        if let Err(error) = std::thread::Builder::new().name(name).spawn(work) {
            tracing::error!(input = self.shared.input, %error, "a receiver cannot start again");
        }
    }

    /// Ends the receiver for good.
    pub fn stop(&self, message: &str) {
        tracing::info!(input = self.shared.input, message, "a receiver ends");
        end(&self.shared);
    }
}

fn start_receiver<T: Send + 'static>(receiver: &dyn Receiver<T>, handle: ReceiverHandle<T>) {
    let shared = Arc::clone(&handle.shared);
    let started = guarded(|| {
        receiver.on_start(handle);
        Ok(())
    });
    match started {
        Ok(()) => shared.tell(true, |listener, info| listener.on_receiver_started(info)),
        Err(error) => {
            shared.lock().last_error = error.to_string();
            shared.tell(false, |listener, info| listener.on_receiver_error(info));
        }
    }
}

fn stop_receiver<T: 'static>(receiver: &dyn Receiver<T>, input: &str) {
    let stopped = guarded(|| {
        receiver.on_stop();
        Ok(())
    });
    if let Err(error) = stopped {
        tracing::error!(input, %error, "a receiver failed while it was stopped");
    }
}

/// Ends a receiver for good; once.
fn end<T: 'static>(shared: &Shared<T>) {
    let receiver = {
        let mut waiting = shared.lock();
        if std::mem::replace(&mut waiting.stopped, true) {
            return;
        }
        Arc::clone(&waiting.receiver)
    };
    shared.changed.notify_all();
    stop_receiver(&*receiver, &shared.input);
    shared.tell(false, |listener, info| listener.on_receiver_stopped(info));
}

/// The input over a receiver.
pub(crate) struct ReceiverInput<T> {
    shared: Arc<Shared<T>>,
    frame: Arc<Frame>,
    slot: Arc<Slot<T>>,
    kept: Mutex<Option<Kept>>,
    /// How many rows batches took out, and how many were cut.
    taken: Mutex<(u64, u64)>,
    pressure: Pressure,
}

impl<T: Item> ReceiverInput<T> {
    pub(crate) fn new(name: String, frame: Arc<Frame>, receiver: Arc<dyn Receiver<T>>) -> Self {
        let waiting = Waiting {
            rows: VecDeque::new(),
            start: 0,
            stopped: false,
            last_error: String::new(),
            receiver,
            listeners: None,
        };
        let shared =
            Shared { input: name, state: Mutex::new(waiting), changed: Condvar::new(), restart_delay: RESTART_DELAY };
        let (slot, kept, taken, pressure) = (Arc::default(), Mutex::default(), Mutex::default(), Pressure::default());
        Self { shared: Arc::new(shared), frame, slot, kept, taken, pressure }
    }

    pub(crate) fn slot(&self) -> Arc<Slot<T>> {
        Arc::clone(&self.slot)
    }

    fn taken(&self) -> MutexGuard<'_, (u64, u64)> {
        locked(&self.taken)
    }

    fn kept(&self) -> Option<Kept> {
        locked(&self.kept).clone()
    }
}

fn number(value: Option<&serde_json::Value>) -> u64 {
    value.and_then(serde_json::Value::as_u64).unwrap_or(0)
}

impl<T: Item> Input for ReceiverInput<T> {
    fn name(&self) -> &str {
        &self.shared.input
    }

    fn pin(&self) -> Result<ConnectorPin, DStreamError> {
        Ok(ConnectorPin { format: "receiver".into(), place: None })
    }

    fn open(&self, opening: Opening) -> Result<(), DStreamError> {
        self.pressure.begin(&self.frame);
        let position = number(opening.position.as_ref());
        *self.taken() = (position, position);
        if opening.durable && self.frame.settings().keep_received {
            let kept = Kept::new(&self.shared.input, opening.files);
            *locked(&self.kept) = Some(kept);
        }
        let receiver = {
            let mut waiting = self.shared.lock();
            waiting.listeners = Some(opening.listeners);
            Arc::clone(&waiting.receiver)
        };
        start_receiver(&*receiver, ReceiverHandle { shared: Arc::clone(&self.shared), start: 0 });
        Ok(())
    }

    fn cut(&self) -> Result<OffsetRange, DStreamError> {
        let waiting = self.shared.lock().rows.len() as u64;
        let interval_ms = self.frame.interval_ms;
        let most = self.frame.settings().receiver_max_rate.map(|rate| rows_per_batch(rate, interval_ms));
        let most = most.into_iter().chain(self.pressure.rows(interval_ms)).min();
        let mut taken = self.taken();
        let (out, cut) = *taken;
        let new = waiting.saturating_sub(cut - out).min(most.unwrap_or(u64::MAX));
        taken.1 = cut + new;
        Ok(counted(cut, cut + new))
    }

    fn load(&self, time: Time, range: &OffsetRange, again: bool) -> Result<u64, DStreamError> {
        let wanted = number(range.end.as_ref()).saturating_sub(number(range.start.as_ref()));
        let rows: Vec<T> = if again {
            // They are kept, or gone with the run that received them.
            Vec::new()
        } else {
            let mut waiting = self.shared.lock();
            let most = usize::try_from(wanted).unwrap_or(usize::MAX).min(waiting.rows.len());
            waiting.rows.drain(..most).collect()
        };
        if !again {
            self.taken().0 = number(range.end.as_ref());
        }
        self.shared.changed.notify_all();
        let share = rows.len().div_ceil(self.frame.parallelism()).max(1);
        let parts = rows.chunks(share).map(<[T]>::to_vec).collect();
        let parts = kept::with_kept(self.kept().as_ref(), time, parts)?;
        let found = count(&parts);
        if again && found < wanted {
            tracing::warn!(input = self.name(), %time, "rows that were received before the restart are lost");
        }
        self.slot.put(time, Rdd::of_input(parts, self.frame.parallelism(), Vec::new()));
        Ok(found)
    }

    fn committed(&self, time: Time) {
        if let Some(kept) = self.kept() {
            kept.delete(time);
        }
    }

    fn worked(&self, batch: &BatchInfo) {
        self.pressure.learn(self.name(), batch);
    }

    fn has_pending(&self) -> bool {
        let (out, cut) = *self.taken();
        self.shared.lock().rows.len() as u64 > cut - out
    }

    fn stop_receiving(&self) {
        end(&self.shared);
    }

    fn stop(&self) {
        end(&self.shared);
    }
}
