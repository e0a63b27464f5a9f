//! The streams with state by key, as operations.

use crate::item::type_name;
use crate::state::mapping::Mapping;
use crate::state::{Identity, StateSpec, Stateful, Update, UpdateFn};
use crate::stream::{DStream, NewStream, Role};
use crate::{Data, Item, Key};
use std::ops::Deref;
use std::sync::Arc;

/// What `map_with_state` gives: a stream of the function's rows, and beside it all states.
pub struct MapWithStateStream<K, S, E> {
    rows: DStream<E>,
    states: DStream<(K, S)>,
}

impl<K, S, E> std::fmt::Debug for MapWithStateStream<K, S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapWithStateStream").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<K: Data, S: Data, E: Data> MapWithStateStream<K, S, E> {
    /// All keys with their states after each batch.
    pub fn state_snapshots(&self) -> DStream<(K, S)> {
        self.states.clone()
    }
}

impl<K, S, E> Deref for MapWithStateStream<K, S, E> {
    type Target = DStream<E>;
    fn deref(&self) -> &DStream<E> {
        &self.rows
    }
}

impl<K: Key + Item, V: Data> DStream<(K, V)> {
    /// A state per key, brought on in every batch: the function gets the new values of the key, which may be none, and its
    /// state, if it has one, and gives its next state; `None` removes it. The rows are all keys with their states. Needs a
    /// checkpoint.
    pub fn update_state_by_key<S: Item>(
        &self,
        f: impl Fn(Vec<V>, Option<S>) -> Option<S> + Send + Sync + 'static,
    ) -> DStream<(K, S)> {
        self.updated(Arc::new(move |_, values, state| f(values, state)), Vec::new(), None)
    }

    /// As `update_state_by_key`, with the states that there are before the first batch, and the number of partitions.
    pub fn update_state_by_key_from<S: Item>(
        &self,
        f: impl Fn(&K, Vec<V>, Option<S>) -> Option<S> + Send + Sync + 'static,
        initial: Vec<(K, S)>,
        partitions: usize,
    ) -> DStream<(K, S)> {
        self.updated(Arc::new(f), initial, Some(partitions))
    }

    fn updated<S: Item>(
        &self,
        f: Arc<UpdateFn<K, V, S>>,
        initial: Vec<(K, S)>,
        partitions: Option<usize>,
    ) -> DStream<(K, S)> {
        let schema = format!("update_state_by_key: key {}, state {}", type_name::<K>(), type_name::<S>());
        let identity = Identity::new("update_state_by_key", schema, true, partitions);
        let update = Arc::new(Update::new(identity, Arc::clone(&self.core), f, initial));
        let stateful: Arc<dyn Stateful> = Arc::clone(&update) as Arc<dyn Stateful>;
        let new = NewStream {
            operation: "update_state_by_key",
            slide_ms: self.slide(),
            parents: vec![self.any()],
            role: Role::Stateful(stateful),
            refusal: None,
            compute: Box::new(move |time| Ok(update.rows(time))),
        };
        DStream::new(&self.core.frame, &self.outputs, new)
    }

    /// A state per key that is touched when the key has values: the function is called for each of them, and once without
    /// one when the key times out. Needs a checkpoint.
    pub fn map_with_state<S: Item, E: Data>(&self, spec: StateSpec<K, V, S, E>) -> MapWithStateStream<K, S, E> {
        let schema = format!("map_with_state: key {}, state {}", type_name::<K>(), type_name::<S>());
        let identity = Identity::new("map_with_state", schema, true, spec.partitions);
        let mapping = Arc::new(Mapping::new(identity, Arc::clone(&self.core), spec));
        let (rows, states) = (Arc::clone(&mapping), Arc::clone(&mapping));
        let new = NewStream {
            operation: "map_with_state",
            slide_ms: self.slide(),
            parents: vec![self.any()],
            role: Role::Stateful(mapping as Arc<dyn Stateful>),
            refusal: None,
            compute: Box::new(move |time| Ok(rows.rows(time))),
        };
        let rows: DStream<E> = DStream::new(&self.core.frame, &self.outputs, new);
        let new = NewStream {
            operation: "state_snapshots",
            slide_ms: self.slide(),
            parents: vec![rows.any()],
            role: Role::Plain,
            refusal: None,
            compute: Box::new(move |time| Ok(states.snapshot(time))),
        };
        let states = DStream::new(&self.core.frame, &self.outputs, new);
        MapWithStateStream { rows, states }
    }
}
