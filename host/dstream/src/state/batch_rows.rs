//! The rows of the last batches of a stream: what a window looks back on.
//!
//! In memory as rows; in the store under the time of the batch and the number of the partition, so that the batches that
//! left the window go as one range.

use crate::item::{decode, encode};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::state::{Changes, Identity, StoreSet, each};
use crate::{DStreamError, Item, JobError, Time};
use millstream_state::Layout;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

const FAMILY: &str = "batches";

/// The rows of the last batches of a stream.
pub(crate) struct BatchRows<T> {
    kept: Mutex<BTreeMap<Time, Rdd<T>>>,
}

/// Times since 1970, as prefixes of keys.
fn prefix(time: Time) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

impl<T: Item> BatchRows<T> {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Time, Rdd<T>>> {
        locked(&self.kept)
    }

    /// Reads what the store has.
    pub(crate) fn restore(&self, identity: &Identity, stores: &StoreSet, workers: usize) -> Result<(), DStreamError> {
        let mut batches: BTreeMap<Time, BTreeMap<u32, Vec<T>>> = BTreeMap::new();
        for (key, value) in stores.scan(0, (FAMILY, Layout::Windowed, &identity.schema_id()))? {
            let what = || format!("a batch of `{}`", identity.operation);
            let place: [u8; 12] = key.as_slice().try_into().map_err(|_| DStreamError::Decode {
                what: what(),
                reason: format!("its key has {} bytes", key.len()),
            })?;
            let (time, partition) = place.split_at(8);
            let time = u64::from_be_bytes(time.try_into().unwrap_or_default());
            let partition = u32::from_be_bytes(partition.try_into().unwrap_or_default());
            let rows = decode(&what(), &value)?;
            batches.entry(Time(i64::try_from(time).unwrap_or(i64::MAX))).or_default().insert(partition, rows);
        }
        *self.kept() = batches
            .into_iter()
            .map(|(time, parts)| (time, Rdd::of_input(parts.into_values().collect(), workers, Vec::new())))
            .collect();
        Ok(())
    }

    /// Adds the rows of a batch.
    pub(crate) fn add(
        &self,
        (identity, stores): (&Identity, &StoreSet),
        time: Time,
        rows: Rdd<T>,
        workers: usize,
    ) -> Result<(), DStreamError> {
        let failed = |error| identity.failed(time, error);
        let parts = rows.partitions().map_err(failed)?;
        if stores.are_open() {
            let what = format!("a batch of `{}`", identity.operation);
            let values = each(workers, parts.len(), |at| encode(&what, &*parts[at]).map_err(JobError::failed))
                .map_err(failed)?;
            let mut changes = Changes::default();
            for (partition, value) in (0_u32..).zip(values) {
                changes.keys.push_parts(&[&prefix(time).to_be_bytes(), &partition.to_be_bytes()]);
                changes.values.push(&value);
            }
            stores.change(0, (FAMILY, Layout::Windowed, &identity.schema_id()), &changes)?;
        }
        self.kept().insert(time, rows);
        Ok(())
    }

    /// Forgets batches up to `through`.
    pub(crate) fn drop_through(
        &self,
        identity: &Identity,
        stores: &StoreSet,
        through: Time,
    ) -> Result<(), DStreamError> {
        let mut kept = self.kept();
        let Some((first, _)) = kept.first_key_value() else { return Ok(()) };
        if *first > through {
            return Ok(());
        }
        *kept = kept.split_off(&through.plus(1));
        stores.drop_through(FAMILY, &identity.schema_id(), prefix(through))
    }

    /// The rows of the batches from one time to another, both included.
    pub(crate) fn between(&self, from: Time, to: Time) -> Vec<Rdd<T>> {
        if from > to {
            return Vec::new();
        }
        self.kept().range(from..=to).map(|(_, rows)| rows.clone()).collect()
    }
}
