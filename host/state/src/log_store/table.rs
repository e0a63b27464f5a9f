//! One hash table of keys and values: the smallest piece of hot state.
//!
//! Below the families; above it only bytes and hashes. An entry is one allocation that holds key and value, so
//! that overwriting a value of the same length allocates nothing.
//!
//! Rule of its life: a key stands in at most one entry. The caller hashes, once per operation.
//!
//! It knows nothing of batches, logs or files; the stamp it carries is the open batch's.

use hashbrown::hash_table::Entry as Slot;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};

/// What the allocator takes beside the bytes of one entry, about.
const ALLOCATION_OVERHEAD: u64 = 16;

/// A key with its value in one allocation.
#[derive(Debug)]
pub(super) struct Entry {
    data: Box<[u8]>,
    key_len: u32,
    /// Which record of the open batch wrote the value; older or 0 when none did.
    pub(super) stamp: u32,
}

impl Entry {
    /// # Panics
    /// When a key is longer than 4 GiB, which no Arrow row is.
    pub(super) fn new(key: &[u8], value: &[u8], stamp: u32) -> Self {
        let mut data = Vec::with_capacity(key.len() + value.len());
        data.extend_from_slice(key);
        data.extend_from_slice(value);
        let key_len = u32::try_from(key.len()).expect("rows of a batch are shorter than 4 GiB");
        Self { data: data.into_boxed_slice(), key_len, stamp }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.data[..self.key_len as usize]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.data[self.key_len as usize..]
    }

    /// The value, to be overwritten in place by one of the same length.
    pub(super) fn value_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.key_len as usize..]
    }

    pub(super) fn bytes(&self) -> u64 {
        self.data.len() as u64 + ALLOCATION_OVERHEAD
    }
}

/// Hashes a key.
pub(super) fn hash_of(hasher: &DefaultHashBuilder, key: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(key);
    state.finish()
}

/// Keys and values.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashTable<Entry>,
    bytes: u64,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries and table in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.entries.allocation_size() as u64
    }

    pub(super) fn reserve(&mut self, hasher: &DefaultHashBuilder, more: usize) {
        self.entries.reserve(more, |entry| hash_of(hasher, entry.key()));
    }

    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        self.entries.find(hash, |entry| entry.key() == key)
    }

    pub(super) fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        self.entries.find_mut(hash, |entry| entry.key() == key)
    }

    /// Adds an entry whose key is not there.
    pub(super) fn insert_new(&mut self, hasher: &DefaultHashBuilder, hash: u64, entry: Entry) {
        self.bytes += entry.bytes();
        self.entries.insert_unique(hash, entry, |entry| hash_of(hasher, entry.key()));
    }

    /// Puts an entry in the place of the one with its key, or adds it; answers the one before.
    pub(super) fn replace(&mut self, hasher: &DefaultHashBuilder, hash: u64, entry: Entry) -> Option<Entry> {
        self.bytes += entry.bytes();
        let slot =
            self.entries.entry(hash, |present| present.key() == entry.key(), |present| hash_of(hasher, present.key()));
        match slot {
            Slot::Occupied(mut occupied) => {
                let before = std::mem::replace(occupied.get_mut(), entry);
                self.bytes -= before.bytes();
                Some(before)
            }
            Slot::Vacant(vacant) => {
                vacant.insert(entry);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let occupied = self.entries.find_entry(hash, |entry| entry.key() == key).ok()?;
        let (entry, _) = occupied.remove();
        self.bytes -= entry.bytes();
        Some(entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// Takes all entries out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry> {
        self.bytes = 0;
        self.entries.drain()
    }
}
