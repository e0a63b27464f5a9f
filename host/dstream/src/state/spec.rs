//! What `map_with_state` is told, and the state of a key as its function sees it.

use crate::{Data, Item, Time};
use std::sync::Arc;
use std::time::Duration;

/// The state of a key during a call.
#[derive(Debug)]
pub struct State<S> {
    value: Option<S>,
    timing_out: bool,
    pub(crate) changed: bool,
    pub(crate) removed: bool,
    pub(crate) misuse: Option<&'static str>,
}

impl<S> State<S> {
    pub(crate) fn new(value: Option<S>, timing_out: bool) -> Self {
        Self { value, timing_out, changed: false, removed: false, misuse: None }
    }

    /// The state; `None` for a key that has none.
    pub fn get(&self) -> Option<&S> {
        self.value.as_ref()
    }

    /// Whether there is one.
    pub fn exists(&self) -> bool {
        self.value.is_some()
    }

    /// Whether the key has had no values for as long as the timeout, and its state goes after this call. It cannot be
    /// updated or removed then: a call that does fails the batch.
    pub fn is_timing_out(&self) -> bool {
        self.timing_out
    }

    /// Gives the key this state. A call that removed it, or whose state is timing out, fails the batch.
    pub fn update(&mut self, state: S) {
        if self.timing_out || self.removed {
            self.misuse = Some("a state that is removed or timing out cannot be updated");
            return;
        }
        (self.value, self.changed) = (Some(state), true);
    }

    /// Takes the state of the key away. A call that does so twice, or whose state is timing out, fails the batch.
    pub fn remove(&mut self) {
        if self.timing_out || self.removed {
            self.misuse = Some("a state that is removed or timing out cannot be removed");
            return;
        }
        (self.value, self.removed) = (None, true);
    }

    pub(crate) fn into_value(self) -> Option<S> {
        self.value
    }
}

type Function<K, V, S, E> = dyn Fn(Time, &K, Option<V>, &mut State<S>) -> Option<E> + Send + Sync;

/// How `map_with_state` goes.
pub struct StateSpec<K, V, S, E> {
    pub(crate) function: Arc<Function<K, V, S, E>>,
    pub(crate) initial: Vec<(K, S)>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) partitions: Option<usize>,
}

impl<K, V, S, E> std::fmt::Debug for StateSpec<K, V, S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateSpec").field("timeout_ms", &self.timeout_ms).finish_non_exhaustive()
    }
}

impl<K: Item, V: Data, S: Item, E: Data> StateSpec<K, V, S, E> {
    /// By a function of the time of the batch, the key, a value, and the state of the key. It is called for each value, and
    /// without one for a key that times out; what it gives is a row.
    pub fn function(
        function: impl Fn(Time, &K, Option<V>, &mut State<S>) -> Option<E> + Send + Sync + 'static,
    ) -> Self {
        Self { function: Arc::new(function), initial: Vec::new(), timeout_ms: None, partitions: None }
    }

    /// The states that there are before the first batch.
    #[must_use]
    pub fn initial_state(mut self, states: Vec<(K, S)>) -> Self {
        self.initial = states;
        self
    }

    /// For how long a key may be without values before its state goes.
    #[must_use]
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.timeout_ms = Some(crate::time::millis(idle));
        self
    }

    /// The number of partitions of the state.
    #[must_use]
    pub fn num_partitions(mut self, partitions: usize) -> Self {
        self.partitions = Some(partitions);
        self
    }
}
