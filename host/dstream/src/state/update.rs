//! `update_state_by_key`: every known key is asked in every batch.

use crate::item::{decode, encode};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::state::{Changes, Identity, KeyedRows, Latest, Stateful, StoreSet, each, spread, spread_once};
use crate::stream::StreamCore;
use crate::{DStreamError, Data, Item, JobError, Time};
use millstream_state::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const FAMILY: &str = "states";

/// The next state of a key, of its new values and the state that it has; `None` removes it.
pub(crate) type UpdateFn<K, V, S> = dyn Fn(&K, Vec<V>, Option<S>) -> Option<S> + Send + Sync;
/// The states of one partition, by the bytes of their keys.
type States<K, S> = BTreeMap<Vec<u8>, (K, S)>;

/// The operation.
pub(crate) struct Update<K, V, S> {
    identity: Identity,
    stores: StoreSet,
    parent: Arc<StreamCore<(K, V)>>,
    update: Arc<UpdateFn<K, V, S>>,
    initial: Vec<(K, S)>,
    states: Mutex<Vec<States<K, S>>>,
    latest: Mutex<Latest<(K, S)>>,
}

impl<K: Item, V: Data, S: Item> Update<K, V, S> {
    pub(crate) fn new(
        identity: Identity,
        parent: Arc<StreamCore<(K, V)>>,
        update: Arc<UpdateFn<K, V, S>>,
        initial: Vec<(K, S)>,
    ) -> Self {
        let (states, latest) = (Mutex::default(), Mutex::default());
        Self { identity, stores: StoreSet::default(), parent, update, initial, states, latest }
    }

    /// All keys and states after the batch of `time`.
    pub(crate) fn rows(&self, time: Time) -> Option<Rdd<(K, S)>> {
        let latest = locked(&self.latest);
        latest.as_ref().filter(|(at, _)| *at == time).map(|(_, rows)| rows.clone())
    }

    fn workers(&self) -> usize {
        self.parent.frame.parallelism()
    }

    fn store(&self, partition: usize, changes: &Changes) -> Result<(), DStreamError> {
        self.stores.change(partition, (FAMILY, Layout::Hash, &self.identity.schema_id()), changes)
    }

    /// One partition: its states after the batch, and what that changes in the store.
    fn next(&self, before: &States<K, S>, new: &KeyedRows<K, V>) -> Result<(States<K, S>, Changes), JobError> {
        let (mut next, mut changes) = (States::new(), Changes::default());
        for bytes in before.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let (known, values) = (before.get(bytes), new.get(bytes));
            let Some(key) = known.map(|(key, _)| key).or(values.map(|(key, _)| key)) else { continue };
            let (values, state) = (values.map(|(_, values)| values.clone()), known.map(|(_, state)| state.clone()));
            match (self.update)(key, values.unwrap_or_default(), state) {
                Some(state) => {
                    if self.stores.are_open() {
                        changes.keys.push(bytes);
                        changes.values.push(&encode("a state", &state).map_err(JobError::failed)?);
                    }
                    next.insert(bytes.clone(), (key.clone(), state));
                }
                None if known.is_some() => changes.gone.push(bytes),
                None => {}
            }
        }
        Ok((next, changes))
    }
}

impl<K: Item, V: Data, S: Item> Stateful for Update<K, V, S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn stores(&self) -> &StoreSet {
        &self.stores
    }

    fn restore(&self, fresh: bool) -> Result<(), DStreamError> {
        let partitions = self.identity.partitions();
        let mut states = spread_once(fresh.then(|| self.initial.clone()).into_iter().flatten(), partitions)?;
        for (partition, states) in states.iter_mut().enumerate() {
            let mut changes = Changes::default();
            for (key, (_, state)) in states.iter() {
                changes.keys.push(key);
                changes.values.push(&encode("a state", state)?);
            }
            self.store(partition, &changes)?;
            for (key, state) in self.stores.scan(partition, (FAMILY, Layout::Hash, &self.identity.schema_id()))? {
                let known = decode("a key", &key)?;
                states.insert(key, (known, decode("a state", &state)?));
            }
        }
        *locked(&self.states) = states;
        Ok(())
    }

    fn advance(&self, time: Time) -> Result<(), DStreamError> {
        if !self.parent.frame.is_valid(crate::stream::AnyStream::slide_ms(&*self.parent), time) {
            return Ok(());
        }
        let failed = |error| self.identity.failed(time, error);
        let rows = self.parent.rows(time)?.unwrap_or_else(Rdd::empty);
        let new = spread(&rows, self.identity.partitions(), self.workers()).map_err(failed)?;
        let mut states = locked(&self.states);
        let next = each(self.workers(), states.len(), |at| self.next(&states[at], &new[at])).map_err(failed)?;
        let mut rows = Vec::new();
        for (partition, (next, changes)) in next.into_iter().enumerate() {
            self.store(partition, &changes)?;
            rows.push(next.values().cloned().collect());
            states[partition] = next;
        }
        let rows = Rdd::of_input(rows, self.workers(), Vec::new());
        *locked(&self.latest) = Some((time, rows));
        Ok(())
    }
}
