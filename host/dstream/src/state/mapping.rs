//! `map_with_state`: the function is called for each value of the batch, and for keys that time out.

use crate::item::{decode, encode};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::state::spec::{State, StateSpec};
use crate::state::{Changes, Identity, KeyedRows, Stateful, StoreSet, each, spread, spread_once};
use crate::stream::{AnyStream, StreamCore};
use crate::{DStreamError, Data, Item, JobError, Time};
use millstream_state::Layout;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

const FAMILY: &str = "states";

/// A state, and the time of the last batch that had values of its key.
type Timed<S> = (S, i64);
/// The states of one partition, by the bytes of their keys.
type States<K, S> = BTreeMap<Vec<u8>, (K, Timed<S>)>;

/// The operation.
pub(crate) struct Mapping<K, V, S, E> {
    identity: Identity,
    stores: StoreSet,
    parent: Arc<StreamCore<(K, V)>>,
    spec: StateSpec<K, V, S, E>,
    states: Mutex<Vec<States<K, S>>>,
    latest: Mutex<Option<(Time, Rdd<E>)>>,
}

impl<K: Item, V: Data, S: Item, E: Data> Mapping<K, V, S, E> {
    pub(crate) fn new(identity: Identity, parent: Arc<StreamCore<(K, V)>>, spec: StateSpec<K, V, S, E>) -> Self {
        let (states, latest) = (Mutex::default(), Mutex::default());
        Self { identity, stores: StoreSet::default(), parent, spec, states, latest }
    }

    fn states(&self) -> MutexGuard<'_, Vec<States<K, S>>> {
        locked(&self.states)
    }

    fn latest(&self) -> MutexGuard<'_, Option<(Time, Rdd<E>)>> {
        locked(&self.latest)
    }

    fn workers(&self) -> usize {
        self.parent.frame.parallelism()
    }

    /// What the function gave in the batch of `time`.
    pub(crate) fn rows(&self, time: Time) -> Option<Rdd<E>> {
        self.latest().as_ref().filter(|(at, _)| *at == time).map(|(_, rows)| rows.clone())
    }

    /// All keys and states after the batch of `time`.
    pub(crate) fn snapshot(&self, time: Time) -> Option<Rdd<(K, S)>> {
        self.latest().as_ref().filter(|(at, _)| *at == time)?;
        let row = |(key, (state, _)): &(K, Timed<S>)| (key.clone(), state.clone());
        let parts = self.states().iter().map(|states| states.values().map(row).collect()).collect();
        Some(Rdd::of_input(parts, self.workers(), Vec::new()))
    }

    fn call(&self, time: Time, key: &K, value: Option<V>, state: &mut State<S>) -> Result<Option<E>, JobError> {
        let given = (self.spec.function)(time, key, value, state);
        state.misuse.map_or(Ok(given), |misuse| Err(JobError::failed(misuse)))
    }

    /// One partition: brings its states on, answers the rows and what changes in the store.
    fn next(&self, time: Time, states: &mut States<K, S>, new: KeyedRows<K, V>) -> Result<(Vec<E>, Changes), JobError> {
        let (mut rows, mut touched) = (Vec::new(), Vec::new());
        for (bytes, (key, values)) in new {
            for value in values {
                let before = states.get(&bytes).map(|(_, (state, _))| state.clone());
                let existed = before.is_some();
                let mut state = State::new(before, false);
                rows.extend(self.call(time, &key, Some(value), &mut state)?);
                if state.removed {
                    states.remove(&bytes);
                } else if (state.changed || (existed && self.spec.timeout_ms.is_some()))
                    && let Some(state) = state.into_value()
                {
                    states.insert(bytes.clone(), (key.clone(), (state, time.0)));
                }
            }
            touched.push(bytes);
        }
        if let Some(timeout) = self.spec.timeout_ms {
            let idle: Vec<Vec<u8>> = states
                .iter()
                .filter(|(_, (_, (_, last)))| *last < time.0.saturating_sub(timeout))
                .map(|(bytes, _)| bytes.clone())
                .collect();
            for bytes in idle {
                if let Some((key, (state, _))) = states.remove(&bytes) {
                    let mut state = State::new(Some(state), true);
                    rows.extend(self.call(time, &key, None, &mut state)?);
                    touched.push(bytes);
                }
            }
        }
        let mut changes = Changes::default();
        for bytes in touched {
            match states.get(&bytes) {
                Some((_, timed)) if self.stores.are_open() => {
                    changes.keys.push(&bytes);
                    changes.values.push(&encode("a state", timed).map_err(JobError::failed)?);
                }
                Some(_) => {}
                None => changes.gone.push(&bytes),
            }
        }
        Ok((rows, changes))
    }
}

impl<K: Item, V: Data, S: Item, E: Data> Stateful for Mapping<K, V, S, E> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn stores(&self) -> &StoreSet {
        &self.stores
    }

    fn restore(&self, fresh: bool) -> Result<(), DStreamError> {
        let begun = self.parent.frame.zero().map_or(0, |zero| zero.0);
        let initial = fresh.then(|| self.spec.initial.clone()).into_iter().flatten();
        let timed = initial.map(|(key, state)| (key, (state, begun)));
        let mut states: Vec<States<K, S>> = spread_once(timed, self.identity.partitions())?;
        let schema_id = self.identity.schema_id();
        let place = (FAMILY, Layout::Hash, schema_id.as_str());
        for (partition, states) in states.iter_mut().enumerate() {
            let mut changes = Changes::default();
            for (key, (_, timed)) in states.iter() {
                changes.keys.push(key);
                changes.values.push(&encode("a state", timed)?);
            }
            self.stores.change(partition, place, &changes)?;
            for (key, timed) in self.stores.scan(partition, place)? {
                let known = decode("a key", &key)?;
                states.insert(key, (known, decode("a state", &timed)?));
            }
        }
        *self.states() = states;
        Ok(())
    }

    fn advance(&self, time: Time) -> Result<(), DStreamError> {
        if !self.parent.frame.is_valid(self.parent.slide_ms(), time) {
            return Ok(());
        }
        let failed = |error| self.identity.failed(time, error);
        let rows = self.parent.rows(time)?.unwrap_or_else(Rdd::empty);
        let new = spread(&rows, self.identity.partitions(), self.workers()).map_err(failed)?;
        let mut states = self.states();
        let work: Vec<_> = states.iter_mut().zip(new).map(|pair| Mutex::new(Some(pair))).collect();
        let next = each(self.workers(), work.len(), |at| {
            let taken = locked(&work[at]).take();
            taken.map_or_else(|| Ok(Default::default()), |(states, new)| self.next(time, states, new))
        });
        drop(work);
        drop(states);
        let mut parts = Vec::new();
        for (partition, (rows, changes)) in next.map_err(failed)?.into_iter().enumerate() {
            self.stores.change(partition, (FAMILY, Layout::Hash, &self.identity.schema_id()), &changes)?;
            parts.push(rows);
        }
        *self.latest() = Some((time, Rdd::of_input(parts, self.workers(), Vec::new())));
        Ok(())
    }
}
