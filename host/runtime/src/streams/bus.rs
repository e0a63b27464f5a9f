//! The way of events to listeners.
//!
//! ```text
//!   query threads ──try_send──► queue, bounded ──► one thread of the session ──► every listener, in order
//! ```
//!
//! The thread begins with the first listener and ends with the session. When listeners are so slow that the queue is full, events
//! are dropped and the log says so: no query waits.

use super::listener::{
    QueryIdleEvent, QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent, StreamingQueryListener,
};
use crate::RuntimeError;
use millstream_common::guarded;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that wait (Spark's `spark.scheduler.listenerbus.eventqueue.capacity`).
const QUEUE: usize = 10_000;

/// Names a listener of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

#[derive(Debug, Clone)]
pub(super) enum Event {
    Started(QueryStartedEvent),
    Progress(Box<QueryProgressEvent>),
    Idle(QueryIdleEvent),
    Terminated(QueryTerminatedEvent),
}

type Listeners = Arc<Mutex<Vec<(ListenerId, Arc<dyn StreamingQueryListener>)>>>;

/// The listeners of a session.
#[derive(Default)]
pub(super) struct ListenerBus {
    listeners: Listeners,
    next: AtomicU64,
    sender: Mutex<Option<SyncSender<Event>>>,
    dropped: AtomicU64,
}

impl ListenerBus {
    pub(super) fn add(&self, listener: Arc<dyn StreamingQueryListener>) -> Result<ListenerId, RuntimeError> {
        let id = ListenerId(self.next.fetch_add(1, Ordering::Relaxed));
        let mut sender = lock(&self.sender);
        if sender.is_none() {
            let (new, receiver) = sync_channel(QUEUE);
            let listeners = Arc::clone(&self.listeners);
            std::thread::Builder::new()
                .name("listeners".into())
                .spawn(move || deliver_all(&receiver, &listeners))
                .map_err(|error| RuntimeError::Thread { reason: error.to_string() })?;
            *sender = Some(new);
        }
        lock(&self.listeners).push((id, listener));
        Ok(id)
    }

    pub(super) fn remove(&self, id: ListenerId) -> bool {
        let mut listeners = lock(&self.listeners);
        let before = listeners.len();
        listeners.retain(|(known, _)| *known != id);
        listeners.len() < before
    }

    pub(super) fn ids(&self) -> Vec<ListenerId> {
        lock(&self.listeners).iter().map(|(id, _)| *id).collect()
    }

    /// Whether anybody listens: events need not be made otherwise.
    pub(super) fn is_heard(&self) -> bool {
        !lock(&self.listeners).is_empty()
    }

    /// Tells every listener now, on this thread.
    pub(super) fn tell(&self, event: &Event) {
        deliver(event, &self.listeners);
    }

    /// Lets the session's thread tell every listener.
    pub(super) fn post(&self, event: Event) {
        let sender = lock(&self.sender).clone();
        let Some(sender) = sender else { return };
        if let Err(TrySendError::Full(_)) = sender.try_send(event) {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!("listeners are too slow: {dropped} events of queries were dropped so far");
            }
        }
    }
}

fn deliver_all(receiver: &Receiver<Event>, listeners: &Listeners) {
    while let Ok(event) = receiver.recv() {
        deliver(&event, listeners);
    }
}

fn deliver(event: &Event, listeners: &Listeners) {
    // A listener may add and remove listeners, so none is called under the lock.
    let listeners = lock(listeners).clone();
    for (_, listener) in listeners {
        let called = guarded(|| match event {
            Event::Started(event) => listener.on_query_started(event),
            Event::Progress(event) => listener.on_query_progress(event),
            Event::Idle(event) => listener.on_query_idle(event),
            Event::Terminated(event) => listener.on_query_terminated(event),
        });
        if called.is_err() {
            tracing::error!("a listener panicked");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
