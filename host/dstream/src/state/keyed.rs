//! Rows by the bytes of their keys: where each goes, and in which order they are seen.

use crate::item::{encode, partition_of};
use crate::rdd::Rdd;
use crate::state::each;
use crate::{DStreamError, Data, Item, JobError};
use std::collections::BTreeMap;

/// The new values of each key of one partition, ordered by the bytes of the key, values as they came.
pub(crate) type KeyedRows<K, V> = BTreeMap<Vec<u8>, (K, Vec<V>)>;

/// Spreads the rows of a batch over the partitions of their keys.
pub(crate) fn spread<K: Item, V: Data>(
    rows: &Rdd<(K, V)>,
    partitions: usize,
    workers: usize,
) -> Result<Vec<KeyedRows<K, V>>, JobError> {
    let parts = rows.partitions()?;
    type Encoded<K, V> = Vec<(Vec<u8>, K, V)>;
    let encoded: Vec<Vec<Encoded<K, V>>> = each(workers, parts.len(), |from| {
        let mut split: Vec<Encoded<K, V>> = (0..partitions).map(|_| Vec::new()).collect();
        for (key, value) in parts[from].iter().cloned() {
            let bytes = encode("a key", &key).map_err(JobError::failed)?;
            split[partition_of(&bytes, partitions)].push((bytes, key, value));
        }
        Ok(split)
    })?;
    let mut keyed: Vec<KeyedRows<K, V>> = (0..partitions).map(|_| BTreeMap::new()).collect();
    for split in encoded {
        for (rows, keyed) in split.into_iter().zip(&mut keyed) {
            for (bytes, key, value) in rows {
                keyed.entry(bytes).or_insert_with(|| (key, Vec::new())).1.push(value);
            }
        }
    }
    Ok(keyed)
}

/// Keys by their bytes, with one value each.
pub(crate) type Once<K, S> = BTreeMap<Vec<u8>, (K, S)>;

/// Spreads keys with one value each, as a state that is there at the beginning.
pub(crate) fn spread_once<K: Item, S>(
    rows: impl IntoIterator<Item = (K, S)>,
    partitions: usize,
) -> Result<Vec<Once<K, S>>, DStreamError> {
    let mut keyed: Vec<Once<K, S>> = (0..partitions).map(|_| BTreeMap::new()).collect();
    for (key, state) in rows {
        let bytes = encode("a key", &key)?;
        keyed[partition_of(&bytes, partitions)].insert(bytes, (key, state));
    }
    Ok(keyed)
}
