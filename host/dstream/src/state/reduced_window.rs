//! A window that goes on from the one before it: what enters is added, what leaves is taken off.
//!
//! ```text
//!        previous window
//!   ├────────┬───────────────┤
//!            │   current window      │
//!            ├───────────────┼───────┤
//!   └ leaves ┘               └ enters┘          new = old ⊖ leaves ⊕ enters
//! ```
//!
//! A key whose batches have all left stays, with what the inverse function made of it, unless the filter function does not
//! want it.

use crate::item::{decode, encode};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::state::{BatchRows, Changes, Identity, KeyedRows, Latest, Stateful, StoreSet, each, spread};
use crate::stream::StreamCore;
use crate::{DStreamError, Item, JobError, Key, Time};
use millstream_state::Layout;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const FAMILY: &str = "window";

type Reduce<V> = Arc<dyn Fn(V, V) -> V + Send + Sync>;
type Filter<K, V> = Arc<dyn Fn(&K, &V) -> bool + Send + Sync>;
/// The values of a window, by the bytes of their keys, per partition.
type Values<K, V> = Vec<BTreeMap<Vec<u8>, (K, V)>>;

/// How a window becomes the next one.
pub(crate) struct Inverse<K, V> {
    pub(crate) reduce: Reduce<V>,
    pub(crate) inverse: Reduce<V>,
    pub(crate) filter: Option<Filter<K, V>>,
}

/// A window that goes on from the one before it.
pub(crate) struct ReducedWindow<K, V> {
    identity: Identity,
    stores: StoreSet,
    /// The rows of each batch, reduced by key.
    parent: Arc<StreamCore<(K, V)>>,
    functions: Inverse<K, V>,
    length_ms: i64,
    slide_ms: i64,
    batches: BatchRows<(K, V)>,
    values: Mutex<Values<K, V>>,
    latest: Mutex<Latest<(K, V)>>,
}

impl<K: Key + Item, V: Item> ReducedWindow<K, V> {
    pub(crate) fn new(
        identity: Identity,
        parent: Arc<StreamCore<(K, V)>>,
        functions: Inverse<K, V>,
        (length_ms, slide_ms): (i64, i64),
    ) -> Self {
        Self {
            identity,
            stores: StoreSet::default(),
            parent,
            functions,
            length_ms,
            slide_ms,
            batches: BatchRows::new(),
            values: Mutex::default(),
            latest: Mutex::default(),
        }
    }

    /// The rows of the window that ends at `time`.
    pub(crate) fn rows(&self, time: Time) -> Option<Rdd<(K, V)>> {
        let latest = locked(&self.latest);
        latest.as_ref().filter(|(at, _)| *at == time).map(|(_, rows)| rows.clone())
    }

    fn workers(&self) -> usize {
        self.parent.frame.parallelism()
    }

    fn spread(&self, rows: &[Rdd<(K, V)>]) -> Result<Vec<KeyedRows<K, V>>, JobError> {
        spread(&Rdd::union_all(rows), self.identity.partitions(), self.workers())
    }

    /// Makes the window that ends at `time` of the one before it.
    fn slide(&self, time: Time) -> Result<(), DStreamError> {
        // Times of batches: what was in the window before, and is not in this one, and the other way round.
        let before = time.minus(self.slide_ms);
        let border = time.minus(self.length_ms);
        let leaving = self.batches.between(before.minus(self.length_ms).plus(1), border.min(before));
        let entering = self.batches.between(before.max(border).plus(1), time);
        let failed = |error| self.identity.failed(time, error);
        let leaving = self.spread(&leaving).map_err(failed)?;
        let entering = self.spread(&entering).map_err(failed)?;
        let mut values = locked(&self.values);
        let next = each(self.workers(), values.len(), |at| self.next(&values[at], &leaving[at], &entering[at]));
        let (mut next_values, mut rows) = (Values::new(), Vec::new());
        for (partition, (next, changes)) in next.map_err(failed)?.into_iter().enumerate() {
            let place = (FAMILY, Layout::Hash, self.identity.schema_id());
            self.stores.change(partition, (place.0, place.1, &place.2), &changes)?;
            rows.push(next.values().cloned().collect());
            next_values.push(next);
        }
        *values = next_values;
        let rows = Rdd::of_input(rows, self.workers(), Vec::new());
        *locked(&self.latest) = Some((time, rows));
        Ok(())
    }

    /// One partition: its values in the next window, and what that changes in the store.
    #[allow(clippy::type_complexity, reason = "the values of a partition and what changes")]
    fn next(
        &self,
        previous: &BTreeMap<Vec<u8>, (K, V)>,
        leaving: &KeyedRows<K, V>,
        entering: &KeyedRows<K, V>,
    ) -> Result<(BTreeMap<Vec<u8>, (K, V)>, Changes), JobError> {
        let Inverse { reduce, inverse, filter } = &self.functions;
        let reduced = |rows: &KeyedRows<K, V>, key: &[u8]| {
            rows.get(key).and_then(|(_, values)| values.iter().cloned().reduce(|one, other| reduce(one, other)))
        };
        let mut next = previous.clone();
        for key in leaving.keys().chain(entering.keys()).collect::<std::collections::BTreeSet<_>>() {
            let (left, entered) = (reduced(leaving, key), reduced(entering, key));
            let value = match (previous.get(key).map(|(_, value)| value.clone()), left, entered) {
                (Some(value), left, entered) => {
                    let value = left.map_or_else(|| value.clone(), |left| inverse(value.clone(), left));
                    Some(entered.map_or_else(|| value.clone(), |entered| reduce(value.clone(), entered)))
                }
                // A key that the filter took out comes anew; what leaves of it is gone already.
                (None, _, entered) => entered,
            };
            let known = entering.get(key).or_else(|| leaving.get(key)).map(|(known, _)| known.clone());
            if let (Some(value), Some(known)) = (value, known) {
                next.insert(key.clone(), (known, value));
            }
        }
        if let Some(filter) = filter {
            next.retain(|_, (key, value)| filter(key, value));
        }
        let mut changes = Changes::default();
        if self.stores.are_open() {
            for (key, (_, value)) in &next {
                changes.keys.push(key);
                changes.values.push(&encode("a value of a window", value).map_err(JobError::failed)?);
            }
            previous.keys().filter(|key| !next.contains_key(*key)).for_each(|key| changes.gone.push(key));
        }
        Ok((next, changes))
    }
}

impl<K: Key + Item, V: Item> Stateful for ReducedWindow<K, V> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn stores(&self) -> &StoreSet {
        &self.stores
    }

    fn restore(&self, _fresh: bool) -> Result<(), DStreamError> {
        self.batches.restore(&self.identity, &self.stores, self.workers())?;
        let mut all = Values::new();
        for partition in 0..self.identity.partitions() {
            let mut values = BTreeMap::new();
            for (key, value) in self.stores.scan(partition, (FAMILY, Layout::Hash, &self.identity.schema_id()))? {
                let known = decode("a key of a window", &key)?;
                values.insert(key, (known, decode("a value of a window", &value)?));
            }
            all.push(values);
        }
        *locked(&self.values) = all;
        Ok(())
    }

    fn advance(&self, time: Time) -> Result<(), DStreamError> {
        if let Some(rows) = self.parent.rows(time)? {
            self.batches.add((&self.identity, &self.stores), time, rows, self.workers())?;
        }
        if !self.parent.frame.is_valid(self.slide_ms, time) {
            return Ok(());
        }
        self.slide(time)?;
        // The next window takes off what this one has and it has not.
        self.batches.drop_through(&self.identity, &self.stores, time.minus(self.length_ms))
    }
}
