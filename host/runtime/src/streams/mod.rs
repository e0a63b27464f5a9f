//! The queries of a session, and who hears of them.
//!
//! ```text
//!   Session ──streams()──► StreamingQueryManager ──► active queries, waiting for an end, listeners
//! ```
//!
//! Beside the loop: a query is registered when it starts and taken out when its thread ends. Source of the semantics: Spark's
//! `StreamingQueryManager` and `StreamingQueryListener`.
//!
//! It starts and stops no query.

mod bus;
mod listener;

pub use bus::ListenerId;
pub use listener::{
    QueryIdleEvent, QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent, StreamingQueryListener,
};

use crate::query::StreamingQuery;
use crate::{Progress, RuntimeError};
use bus::{Event, ListenerBus};
use millstream_common::{Hint, QueryId, RunId, describe_chain};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The queries of a session (Spark's `StreamingQueryManager`). Cheap to clone; clones share everything.
#[derive(Clone, Default)]
pub struct StreamingQueryManager {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queries: Mutex<Queries>,
    changed: Condvar,
    bus: ListenerBus,
}

#[derive(Default)]
struct Queries {
    active: Vec<StreamingQuery>,
    /// How many runs have ended since the last reset, and why the first that failed did.
    ended: u64,
    failure: Option<Arc<RuntimeError>>,
}

impl StreamingQueryManager {
    fn lock(&self) -> MutexGuard<'_, Queries> {
        self.shared.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queries that run, in the order in which they were started.
    pub fn active(&self) -> Vec<StreamingQuery> {
        self.lock().active.clone()
    }

    /// The running query of that identity.
    pub fn get(&self, id: QueryId) -> Option<StreamingQuery> {
        self.lock().active.iter().find(|query| query.id() == id).cloned()
    }

    /// Waits until any query of the session ends, or has ended since the session began or since
    /// [`reset_terminated`](Self::reset_terminated).
    ///
    /// # Errors
    /// Why one of them failed.
    pub fn await_any_termination(&self) -> Result<(), Arc<RuntimeError>> {
        let mut queries = self.lock();
        while queries.ended == 0 {
            queries = self.shared.changed.wait(queries).unwrap_or_else(PoisonError::into_inner);
        }
        queries.failure.clone().map_or(Ok(()), Err)
    }

    /// As [`await_any_termination`](Self::await_any_termination), at most that long; whether one has ended.
    ///
    /// # Errors
    /// Why one of them failed.
    pub fn await_any_termination_for(&self, timeout: Duration) -> Result<bool, Arc<RuntimeError>> {
        let deadline = Instant::now() + timeout;
        let mut queries = self.lock();
        while queries.ended == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.shared.changed.wait_timeout(queries, left);
            queries = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queries.failure.clone().map_or(Ok(true), Err)
    }

    /// Forgets the queries that have ended, so that the next wait is for another one.
    pub fn reset_terminated(&self) {
        let mut queries = self.lock();
        (queries.ended, queries.failure) = (0, None);
    }

    /// Lets a listener hear of all queries of the session.
    ///
    /// # Errors
    /// When there is no thread to be had for it.
    pub fn add_listener(&self, listener: Arc<dyn StreamingQueryListener>) -> Result<ListenerId, RuntimeError> {
        self.shared.bus.add(listener)
    }

    /// A listener hears no more; whether there was one of that id.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        self.shared.bus.remove(id)
    }

    /// The listeners.
    pub fn list_listeners(&self) -> Vec<ListenerId> {
        self.shared.bus.ids()
    }

    /// Refuses a second query of a name.
    pub(crate) fn check_name(&self, name: Option<&str>) -> Result<(), RuntimeError> {
        let Some(name) = name else { return Ok(()) };
        match self.lock().active.iter().find(|query| query.name() == Some(name)) {
            None => Ok(()),
            Some(other) => Err(RuntimeError::Invalid {
                reason: format!("a query with the name `{name}` is running already, as {}", other.id()),
                hint: Some("stop it first, or give this one another name".into()),
            }),
        }
    }

    /// The query is about to run; its listeners are told before this returns.
    pub(crate) fn started(&self, query: &StreamingQuery, timestamp: String) {
        self.lock().active.push(query.clone());
        let (id, run_id, name) = (query.id(), query.run_id(), query.name().map(str::to_owned));
        self.shared.bus.tell(&Event::Started(QueryStartedEvent { id, run_id, name, timestamp }));
    }

    /// A batch is in the commit log.
    pub(crate) fn progressed(&self, progress: &Progress) {
        if self.shared.bus.is_heard() {
            self.shared.bus.post(Event::Progress(Box::new(QueryProgressEvent { progress: progress.clone() })));
        }
    }

    /// The query waits.
    pub(crate) fn idle(&self, id: QueryId, run_id: RunId, timestamp: String) {
        self.shared.bus.post(Event::Idle(QueryIdleEvent { id, run_id, timestamp }));
    }

    /// The run is over.
    pub(crate) fn terminated(&self, id: QueryId, run_id: RunId, error: Option<Arc<RuntimeError>>) {
        let exception = error.as_ref().map(|error| describe_chain(error.as_ref()));
        let fault = error.as_ref().map(|error| error.fault());
        let mut queries = self.lock();
        queries.active.retain(|query| query.run_id() != run_id);
        queries.ended += 1;
        queries.failure = queries.failure.take().or(error);
        drop(queries);
        self.shared.bus.post(Event::Terminated(QueryTerminatedEvent { id, run_id, exception, fault }));
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
