//! The stores of one operation: one per partition, or none without a checkpoint.

use crate::DStreamError;
use crate::lock::locked;
use millstream_state::{ByteRows, FamilyId, FamilySpec, Layout, LogStore, StateManifest, StateStore};
use std::sync::{Mutex, OnceLock};

/// A key and its value, as bytes.
pub(crate) type KeyValue = (Vec<u8>, Vec<u8>);

/// The stores of one operation.
#[derive(Debug, Default)]
pub(crate) struct StoreSet(OnceLock<Vec<Mutex<LogStore>>>);

/// What a batch changes in one partition.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Keys that get a value.
    pub(crate) keys: ByteRows,
    /// Their values.
    pub(crate) values: ByteRows,
    /// Keys that go.
    pub(crate) gone: ByteRows,
}

impl StoreSet {
    /// Puts open stores in; once.
    pub(crate) fn put(&self, stores: Vec<LogStore>) {
        self.0.get_or_init(|| stores.into_iter().map(Mutex::new).collect());
    }

    /// Whether there are any.
    pub(crate) fn are_open(&self) -> bool {
        self.0.get().is_some()
    }

    fn all(&self) -> &[Mutex<LogStore>] {
        self.0.get().map_or(&[], Vec::as_slice)
    }

    fn family(store: &mut LogStore, name: &str, layout: Layout, schema_id: &str) -> Result<FamilyId, DStreamError> {
        let spec = FamilySpec { name: name.to_owned(), layout, schema_id: schema_id.to_owned() };
        Ok(StateStore::family(store, &spec)?)
    }

    /// All keys and values of a family in a partition.
    pub(crate) fn scan(
        &self,
        partition: usize,
        (family, layout, schema_id): (&str, Layout, &str),
    ) -> Result<Vec<KeyValue>, DStreamError> {
        let Some(store) = self.all().get(partition) else { return Ok(Vec::new()) };
        let mut store = locked(store);
        let id = Self::family(&mut store, family, layout, schema_id)?;
        let mut rows = Vec::new();
        store.scan(id, &mut |key, value| rows.push((key.to_vec(), value.to_vec())))?;
        Ok(rows)
    }

    /// Makes changes in a partition; a value that is there already is not written again.
    pub(crate) fn change(
        &self,
        partition: usize,
        (family, layout, schema_id): (&str, Layout, &str),
        changes: &Changes,
    ) -> Result<(), DStreamError> {
        let Some(store) = self.all().get(partition) else { return Ok(()) };
        let mut store = locked(store);
        let id = Self::family(&mut store, family, layout, schema_id)?;
        let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
        for (number, before) in store.get_many(id, &changes.keys)?.into_iter().enumerate() {
            if before != Some(changes.values.row(number)) {
                keys.push(changes.keys.row(number));
                values.push(changes.values.row(number));
            }
        }
        store.put_many(id, &keys, &values)?;
        store.delete_many(id, &changes.gone)?;
        Ok(())
    }

    /// Removes what has a prefix up to `through` from a family of partition 0.
    pub(crate) fn drop_through(&self, family: &str, schema_id: &str, through: u64) -> Result<(), DStreamError> {
        let Some(store) = self.all().first() else { return Ok(()) };
        let mut store = locked(store);
        let id = Self::family(&mut store, family, Layout::Windowed, schema_id)?;
        store.delete_through(id, through)?;
        Ok(())
    }

    /// Makes the changes of the batch durable; the files of each partition.
    pub(crate) fn prepare(&self) -> Result<Vec<StateManifest>, DStreamError> {
        self.all().iter().map(|store| Ok(locked(store).prepare()?)).collect()
    }

    /// The commit log names what `prepare` answered.
    pub(crate) fn commit(&self) {
        self.all().iter().for_each(|store| locked(store).commit());
    }

    /// Deletes files that no retained batch names: per batch the manifests of all partitions.
    pub(crate) fn retain(&self, retained: &[&[StateManifest]]) -> Result<(), DStreamError> {
        for (partition, store) in self.all().iter().enumerate() {
            let named: Vec<&StateManifest> = retained.iter().filter_map(|batch| batch.get(partition)).collect();
            locked(store).retain(&named)?;
        }
        Ok(())
    }
}
