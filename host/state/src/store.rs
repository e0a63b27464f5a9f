//! The contract of a state store.

use crate::{MemoryBudget, StateError, StateManifest};
use millstream_common::DurableFiles;
use std::sync::Arc;

/// How a family is laid out in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One hash table.
    Hash,
    /// One hash table per distinct eight-byte key prefix (big-endian, so prefixes order like numbers): expired
    /// windows are dropped as whole tables and logged as one range.
    Windowed,
}

/// A family of keys within a store: its own key space with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilySpec {
    /// The name, unique in the store.
    pub name: String,
    /// The layout. It may change between runs: files do not depend on it.
    pub layout: Layout,
    /// What the bytes mean: a digest of the key and value schema. Opening a store whose files say otherwise
    /// fails with [`StateError::Schema`].
    pub schema_id: String,
}

/// Where and how a store lives.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The folder `state/<uid>/<partition>` of the checkpoint.
    pub files: Arc<dyn DurableFiles>,
    /// Makes file names unique among runs: the id of the run. It is part of a file name.
    pub writer: String,
    /// A snapshot is made in the background when the changelogs since the last one weigh more than it
    /// and are at least that many.
    pub changelogs_before_snapshot: usize,
    /// The memory that this store shares with the others of the query; without one memory has no limit.
    pub budget: Option<Arc<MemoryBudget>>,
}

/// What a store weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateMetrics {
    /// Keys, over all families.
    pub keys: u64,
    /// Bytes of keys and values in memory, with the tables' own overhead and the allocator's estimated.
    pub memory_bytes: u64,
    /// Keys of those whose rows are not in memory: the memory budget left no room for them.
    pub spilled_keys: u64,
    /// Bytes of the files that hold them.
    pub spilled_bytes: u64,
}

/// Many byte strings in one buffer: keys or values of a batch.
#[derive(Debug, Clone, Default)]
pub struct ByteRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteRows {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }
    /// Room for `rows` rows of about `bytes` in all.
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(rows) }
    }
    /// Rows of `width` bytes each, one after the other.
    ///
    /// # Panics
    /// When `width` is zero.
    pub fn of_width(bytes: Vec<u8>, width: usize) -> Self {
        let ends = (1..=bytes.len() / width).map(|row| row * width).collect();
        Self { bytes, ends }
    }
    /// Appends a row.
    pub fn push(&mut self, row: &[u8]) {
        self.push_parts(&[row]);
    }
    /// Appends a row made of several parts.
    pub fn push_parts(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.ends.push(self.bytes.len());
    }
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Row `index`.
    pub fn row(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.row(index))
    }
    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A family as its store numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyId(pub usize);

/// Versioned keyed state of one operator and partition.
///
/// One writer, one thread. The life of a batch: any number of reads and changes, then either `prepare` (files
/// of version N+1 are durable) followed by `commit` (the commit log names them), or `abort` at any point
/// before `commit`, after which the store is at version N again as if nothing had happened.
///
/// Reads and changes fail only when memory is limited and the files that hold the rest cannot be written or read. Of a
/// change that failed a part may be done: `abort` must follow, and loses nothing.
pub trait StateStore: Send {
    /// The version that reads see, without the changes of the open batch.
    fn version(&self) -> u64;

    /// Declares a family; the same spec again answers the same id.
    ///
    /// # Errors
    /// [`StateError::Schema`] when the files were written under another schema id.
    fn family(&mut self, spec: &FamilySpec) -> Result<FamilyId, StateError>;

    /// The families that there are, in files or declared since.
    fn families(&self) -> Vec<FamilySpec>;

    /// The values of many keys, in order, as they stand in the open batch. It may move rows between memory and spill, and
    /// changes nothing.
    ///
    /// # Errors
    /// [`StateError::Spill`].
    fn get_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<Vec<Option<&[u8]>>, StateError>;

    /// Sets many keys. Of equal keys the last one counts.
    ///
    /// # Errors
    /// [`StateError::Spill`].
    ///
    /// # Panics
    /// When there are not as many values as keys.
    fn put_many(&mut self, family: FamilyId, keys: &ByteRows, values: &ByteRows) -> Result<(), StateError>;

    /// Removes many keys; missing ones are no error.
    ///
    /// # Errors
    /// [`StateError::Spill`].
    fn delete_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<(), StateError>;

    /// Removes every key whose first eight bytes, read as a big-endian number, are at most `through`; answers how
    /// many there were. One record in the changelog. Only for [`Layout::Windowed`].
    ///
    /// # Errors
    /// [`StateError::Spill`].
    fn delete_through(&mut self, family: FamilyId, through: u64) -> Result<u64, StateError>;

    /// Calls `visit` with every key and value whose prefix is at most `through`, prefix by prefix ascending.
    /// Only for [`Layout::Windowed`].
    ///
    /// # Errors
    /// [`StateError::Spill`]; some rows have been visited then.
    fn scan_through(
        &self,
        family: FamilyId,
        through: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StateError>;

    /// Calls `visit` with every key and value of a family, in no order.
    ///
    /// # Errors
    /// [`StateError::Spill`]; some rows have been visited then.
    fn scan(&self, family: FamilyId, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StateError>;

    /// How many keys a family has.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    fn keys_of(&self, family: FamilyId) -> Result<u64, StateError> {
        let mut count = 0;
        self.scan(family, &mut |_, _| count += 1)?;
        Ok(count)
    }

    /// Makes the changes of the open batch durable as version N+1 and answers its files. A batch without changes
    /// writes nothing. `commit` or `abort` must follow.
    ///
    /// # Errors
    /// When the changelog or the spill cannot be written; the batch is still open.
    fn prepare(&mut self) -> Result<StateManifest, StateError>;

    /// The commit log names what `prepare` answered: version N+1 stands. Also an occasion to begin a snapshot in the
    /// background, which a later `prepare` takes up.
    ///
    /// # Panics
    /// When no `prepare` came before it, or a change came between.
    fn commit(&mut self);

    /// Forgets the changes of the open batch, prepared or not.
    fn abort(&mut self);

    /// Deletes the files of this store that none of `retained` names and that this run did not just write.
    ///
    /// # Errors
    /// When the folder cannot be listed or a file not be deleted; safe to call again.
    fn retain(&mut self, retained: &[&StateManifest]) -> Result<(), StateError>;

    /// What it weighs now.
    fn metrics(&self) -> StateMetrics;
}
