//! Tests of processors without WebAssembly: a host in memory that keeps state and timers as the real one does.

use super::columns::{Columns, RowsBuilder, decoded};
use super::run::run;
use super::variable::{Handle, VariableKind};
use super::wire::{ByKey, Entries, Invocation, Outcome, Step, Timers, VariableChanges, numbers};
use super::{KeyError, Processor, TimeMode};
use crate::call::Batch;
use std::collections::{BTreeMap, BTreeSet};

/// Runs a processor batch by batch (Spark's `TwsTester`).
pub struct ProcessorTester<P: Processor> {
    /// The keys that there were, by the bytes of their columns.
    known: BTreeMap<Vec<Vec<u8>>, usize>,
    keys: Vec<P::Key>,
    variables: Vec<(String, Option<u64>, Box<dyn StoredVariable>)>,
    timers: BTreeMap<usize, BTreeSet<i64>>,
    time_ms: i64,
    watermark_ms: i64,
}

impl<P: Processor> std::fmt::Debug for ProcessorTester<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessorTester").field("processor", &P::NAME).finish_non_exhaustive()
    }
}

impl<P: Processor> Default for ProcessorTester<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Processor> ProcessorTester<P> {
    /// A processor without state, at the time 0 and with the watermark at 0.
    pub fn new() -> Self {
        let mut handle = Handle::default();
        let _ = P::init(&mut handle);
        let variables = handle.variables.into_iter();
        let variables = variables.map(|(described, variable)| (described.name, described.ttl_ms, variable.stored()));
        Self {
            known: BTreeMap::new(),
            keys: Vec::new(),
            variables: variables.collect(),
            timers: BTreeMap::new(),
            time_ms: 0,
            watermark_ms: 0,
        }
    }

    /// A batch with these rows; then the timers that are due. Answers the rows that came out.
    ///
    /// # Errors
    /// When a key fails: the first one.
    pub fn process(&mut self, rows: impl IntoIterator<Item = (P::Key, P::Input)>) -> Result<Vec<P::Output>, KeyError> {
        let mut out = self.take(&Step::Process, rows)?;
        out.extend(self.fire()?);
        Ok(out)
    }

    /// Initial rows.
    ///
    /// # Errors
    /// When a key fails: the first one.
    pub fn initialise(
        &mut self,
        rows: impl IntoIterator<Item = (P::Key, P::Initial)>,
    ) -> Result<Vec<P::Output>, KeyError> {
        self.take(&Step::Initialise, rows)
    }

    /// Moves the time of the batches; a batch without rows fires the timers that are due, and ends what has lived.
    ///
    /// # Errors
    /// When a key fails: the first one.
    pub fn set_processing_time_ms(&mut self, now_ms: i64) -> Result<Vec<P::Output>, KeyError> {
        self.time_ms = now_ms;
        self.fire()
    }

    /// Moves the watermark; a batch without rows fires the timers that are due.
    ///
    /// # Errors
    /// When a key fails: the first one.
    pub fn set_watermark_ms(&mut self, watermark_ms: i64) -> Result<Vec<P::Output>, KeyError> {
        self.watermark_ms = watermark_ms;
        self.fire()
    }

    /// The timers of a key.
    pub fn timers(&self, key: &P::Key) -> Vec<i64> {
        let number = self.known.get(&bytes_of(key));
        number.and_then(|number| self.timers.get(number)).into_iter().flatten().copied().collect()
    }

    /// How many entries a variable has under a key.
    pub fn entries(&self, key: &P::Key, variable: &str) -> usize {
        let Some(number) = self.known.get(&bytes_of(key)) else { return 0 };
        let variable = self.variables.iter().find(|(name, ..)| name == variable);
        variable.map_or(0, |(_, _, stored)| stored.len(*number))
    }

    fn number(&mut self, key: P::Key) -> usize {
        let next = self.keys.len();
        let number = *self.known.entry(bytes_of(&key)).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }

    fn take<R: Columns>(
        &mut self,
        step: &Step,
        rows: impl IntoIterator<Item = (P::Key, R)>,
    ) -> Result<Vec<P::Output>, KeyError> {
        let mut order: Vec<usize> = Vec::new();
        let mut by_key: BTreeMap<usize, Vec<R>> = BTreeMap::new();
        for (key, row) in rows {
            let number = self.number(key);
            if !by_key.contains_key(&number) {
                order.push(number);
            }
            by_key.entry(number).or_default().push(row);
        }
        let (mut owners, mut builder) = (Vec::new(), RowsBuilder::default());
        for (place, number) in (0_u32..).zip(&order) {
            for row in by_key.remove(number).unwrap_or_default() {
                owners.extend(place.to_le_bytes());
                builder.push(row);
            }
        }
        self.call(step, &order, owners, builder.finish())
    }

    fn fire(&mut self) -> Result<Vec<P::Output>, KeyError> {
        let now = match P::TIME_MODE {
            TimeMode::None => None,
            TimeMode::ProcessingTime => Some(self.time_ms),
            TimeMode::EventTime => Some(self.watermark_ms),
        };
        let (mut order, mut due) = (Vec::new(), Timers::default());
        for (number, timers) in &self.timers {
            let place = order.len() as u32;
            let of_key: Vec<i64> =
                timers.iter().copied().filter(|timer| now.is_some_and(|now| *timer <= now)).collect();
            if !of_key.is_empty() {
                order.push(*number);
                of_key.into_iter().for_each(|timer| due.push(place, timer));
            }
        }
        let mut out = Vec::new();
        if !order.is_empty() {
            let rows = RowsBuilder::<P::Input>::default().finish();
            out = self.call(&Step::Expire(due.clone()), &order, Vec::new(), rows)?;
            for (place, timer) in due.iter() {
                if let Some(timers) = self.timers.get_mut(&order[place as usize]) {
                    timers.remove(&timer);
                }
            }
        }
        let time_ms = self.time_ms;
        self.variables.iter_mut().for_each(|(_, _, stored)| stored.expire(time_ms));
        Ok(out)
    }

    fn call(
        &mut self,
        step: &Step,
        order: &[usize],
        key_of_row: Vec<u8>,
        rows: Batch,
    ) -> Result<Vec<P::Output>, KeyError> {
        let keys: RowsBuilder<P::Key> = order.iter().map(|number| self.keys[*number].clone()).collect();
        let mut timers = Timers::default();
        for (place, number) in (0..).zip(order) {
            self.timers.get(number).into_iter().flatten().for_each(|timer| timers.push(place, *timer));
        }
        let time_ms = self.time_ms;
        let call = Invocation {
            keys: keys.finish(),
            key_of_row,
            rows,
            state: self.variables.iter().map(|(_, _, stored)| stored.read(order, time_ms)).collect(),
            timers,
            batch_time_ms: time_ms,
            watermark_ms: Some(self.watermark_ms),
        };
        let outcome = run::<P>(step, &call);
        if let Some((_, message)) = outcome.key_errors.into_iter().next() {
            return Err(KeyError(message));
        }
        let Outcome { rows, changes, deleted_timers, registered_timers, .. } = outcome;
        for ((_, ttl, stored), changes) in self.variables.iter_mut().zip(&changes) {
            let until = ttl.map(|ttl| time_ms.saturating_add(i64::try_from(ttl).unwrap_or(i64::MAX)));
            stored.apply(order, changes, until);
        }
        for (place, timer) in deleted_timers.iter() {
            if let Some(timers) = self.timers.get_mut(&order[place as usize]) {
                timers.remove(&timer);
            }
        }
        for (place, timer) in registered_timers.iter() {
            self.timers.entry(order[place as usize]).or_default().insert(timer);
        }
        Ok(decoded::<P::Output>(&rows).into_iter().flatten().collect())
    }
}

fn bytes_of<K: Columns>(key: &K) -> Vec<Vec<u8>> {
    std::iter::once(key.clone()).collect::<RowsBuilder<K>>().finish().buffers
}

/// The rows of one variable.
pub(super) trait StoredVariable {
    fn len(&self, key: usize) -> usize;
    fn read(&self, keys: &[usize], now_ms: i64) -> Entries;
    fn apply(&mut self, keys: &[usize], changes: &VariableChanges, until_ms: Option<i64>);
    fn expire(&mut self, now_ms: i64);
}

/// An entry: its map key, its row, and until when it lives.
type Entry<K, V> = (Option<K>, V, Option<i64>);

pub(super) struct Stored<K: Columns, V: Columns> {
    kind: VariableKind,
    entries: BTreeMap<usize, Vec<Entry<K, V>>>,
    is_same: fn(&Option<K>, &Option<K>) -> bool,
}

impl<V: Columns> Stored<u8, V> {
    pub(super) fn value() -> Self {
        Self { kind: VariableKind::Value, entries: BTreeMap::new(), is_same: |_, _| true }
    }

    pub(super) fn list() -> Self {
        Self { kind: VariableKind::List, entries: BTreeMap::new(), is_same: |_, _| false }
    }
}

impl<K: Columns + Ord, V: Columns> Stored<K, V> {
    pub(super) fn map() -> Self {
        Self { kind: VariableKind::Map, entries: BTreeMap::new(), is_same: |one, other| one == other }
    }
}

impl<K: Columns, V: Columns> Stored<K, V> {
    fn map_keys(&self, batch: &Batch, rows: usize) -> Vec<Option<K>> {
        if self.kind == VariableKind::Map { decoded::<K>(batch) } else { vec![None; rows] }
    }
}

impl<K: Columns, V: Columns> StoredVariable for Stored<K, V> {
    fn len(&self, key: usize) -> usize {
        self.entries.get(&key).map_or(0, Vec::len)
    }

    fn read(&self, keys: &[usize], now_ms: i64) -> Entries {
        let (mut owners, mut map_keys, mut rows) = (Vec::new(), RowsBuilder::default(), RowsBuilder::default());
        for (place, key) in (0_u32..).zip(keys) {
            let lives = |entry: &&Entry<K, V>| entry.2.is_none_or(|until| until > now_ms);
            for (map_key, row, _) in self.entries.get(key).into_iter().flatten().filter(lives) {
                owners.extend(place.to_le_bytes());
                map_key.clone().into_iter().for_each(|key| map_keys.push(key));
                rows.push(row.clone());
            }
        }
        let map_keys = if self.kind == VariableKind::Map { map_keys.finish() } else { Batch::default() };
        Entries { key_of_entry: owners, map_keys, columns: rows.finish() }
    }

    fn apply(&mut self, keys: &[usize], changes: &VariableChanges, until_ms: Option<i64>) {
        for place in numbers(&changes.cleared) {
            self.entries.remove(&keys[place as usize]);
        }
        let removed = self.map_keys(&changes.removed, 0);
        for (place, map_key) in numbers(&changes.key_of_removed).zip(removed) {
            let is_same = self.is_same;
            self.entries.entry(keys[place as usize]).or_default().retain(|entry| !is_same(&entry.0, &map_key));
        }
        let rows = decoded::<V>(&changes.put.columns);
        let map_keys = self.map_keys(&changes.put.map_keys, rows.len());
        let pairs = map_keys.into_iter().zip(rows).collect::<Vec<_>>();
        let mut by_key = ByKey::new(&changes.put.key_of_entry, pairs);
        for (place, key) in (0..).zip(keys) {
            for (map_key, row) in by_key.take(place) {
                let Some(row) = row else { continue };
                let entries = self.entries.entry(*key).or_default();
                match entries.iter_mut().find(|entry| (self.is_same)(&entry.0, &map_key)) {
                    Some(entry) => (entry.1, entry.2) = (row, until_ms),
                    None => entries.push((map_key, row, until_ms)),
                }
            }
        }
    }

    fn expire(&mut self, now_ms: i64) {
        for entries in self.entries.values_mut() {
            entries.retain(|entry| entry.2.is_none_or(|until| until > now_ms));
        }
        self.entries.retain(|_, entries| !entries.is_empty());
    }
}
