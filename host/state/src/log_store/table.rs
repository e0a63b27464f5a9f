//! One hash table of keys and values: the smallest piece of hot state.
//!
//! Below the families; above it only bytes and hashes. An entry is one allocation that holds key and value, so
//! that overwriting a value of the same length allocates nothing.
//!
//! Rule of its life: a key stands in at most one entry. The caller hashes, once per operation.
//!
//! It knows nothing of batches, logs or files; the stamp it carries is the open batch's, and what the marks say is the
//! family's.

use hashbrown::hash_table::Entry as Slot;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};
use std::ops::{AddAssign, Sub, SubAssign};

/// What the allocator takes beside the bytes of one entry, about.
const ALLOCATION_OVERHEAD: u64 = 16;

/// The greatest stamp.
pub(super) const MOST_STAMP: u32 = (1 << 30) - 1;
/// The key also stands in the spill, with this value or an older one.
const SHADOWS: u32 = 1 << 31;
/// The spill has this value.
const CLEAN: u32 = 1 << 30;

/// A key with its value in one allocation.
#[derive(Debug)]
pub(super) struct Entry {
    data: Box<[u8]>,
    key_len: u32,
    /// The stamp, with two marks above it.
    marked: u32,
}

impl Entry {
    /// The stamp says which record of the open batch wrote the value; it is older or 0 when none did.
    ///
    /// # Panics
    /// When a key is longer than 4 GiB, which no Arrow row is.
    pub(super) fn new(key: &[u8], value: &[u8], stamp: u32) -> Self {
        let mut data = Vec::with_capacity(key.len() + value.len());
        data.extend_from_slice(key);
        data.extend_from_slice(value);
        let key_len = u32::try_from(key.len()).expect("rows of a batch are shorter than 4 GiB");
        Self { data: data.into_boxed_slice(), key_len, marked: stamp & MOST_STAMP }
    }

    /// The same with a key that the spill has too, or not.
    pub(super) fn shadowing(mut self, shadows: bool) -> Self {
        if shadows {
            self.marked |= SHADOWS;
        }
        self
    }

    /// A row as the spill has it.
    pub(super) fn clean(key: &[u8], value: &[u8], stamp: u32) -> Self {
        let mut entry = Self::new(key, value, stamp);
        entry.marked |= SHADOWS | CLEAN;
        entry
    }

    pub(super) fn shadows(&self) -> bool {
        self.marked & SHADOWS != 0
    }

    pub(super) fn is_clean(&self) -> bool {
        self.marked & CLEAN != 0
    }

    pub(super) fn stamp(&self) -> u32 {
        self.marked & MOST_STAMP
    }

    pub(super) fn set_stamp(&mut self, stamp: u32) {
        self.marked = (self.marked & !MOST_STAMP) | (stamp & MOST_STAMP);
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.data[..self.key_len as usize]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.data[self.key_len as usize..]
    }

    /// The value, to be overwritten in place by one of the same length.
    pub(super) fn value_mut(&mut self) -> &mut [u8] {
        self.marked &= !CLEAN;
        &mut self.data[self.key_len as usize..]
    }

    pub(super) fn bytes(&self) -> u64 {
        self.data.len() as u64 + ALLOCATION_OVERHEAD
    }

    /// Reads a little of it, so that the rest is near when it is needed.
    pub(super) fn touch(&self) -> u8 {
        self.data.first().unwrap_or(&0) ^ self.data.last().unwrap_or(&0)
    }
}

/// Where an entry stands in its table, until the table changes.
pub(super) type Place = usize;

/// Where no entry stands.
pub(super) const NOWHERE: Place = Place::MAX;

/// Hashes a key.
pub(super) fn hash_of(hasher: &DefaultHashBuilder, key: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(key);
    state.finish()
}

/// What tables weigh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) keys: u64,
    /// Keys that the spill has too.
    pub(super) shadowing: u64,
    pub(super) bytes: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.shadowing += other.shadowing;
        self.bytes += other.bytes;
    }
}

impl SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sub for Weight {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            keys: self.keys - other.keys,
            shadowing: self.shadowing - other.shadowing,
            bytes: self.bytes - other.bytes,
        }
    }
}

/// Keys and values.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashTable<Entry>,
    bytes: u64,
    shadowing: u64,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries and table in memory.
    pub(super) fn weight(&self) -> Weight {
        let bytes = self.bytes + self.entries.allocation_size() as u64;
        Weight { keys: self.entries.len() as u64, shadowing: self.shadowing, bytes }
    }

    /// What it will weigh more when `more` keys come.
    pub(super) fn growth(&self, more: usize) -> u64 {
        let is_full = self.entries.len() + more > self.entries.capacity();
        if is_full { 2 * self.entries.allocation_size() as u64 } else { 0 }
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

    /// Where the first entry stands whose hash looks like this one: nearly always the one that is looked for. `NOWHERE` when
    /// the key is not there.
    pub(super) fn likely_place(&self, hash: u64) -> Place {
        self.entries.find_bucket_index(hash, |_| true).unwrap_or(NOWHERE)
    }

    /// Where the entry of a key stands.
    pub(super) fn place(&self, hash: u64, key: &[u8]) -> Place {
        self.entries.find_bucket_index(hash, |entry| entry.key() == key).unwrap_or(NOWHERE)
    }

    /// The entry at a place.
    pub(super) fn at(&self, place: Place) -> Option<&Entry> {
        self.entries.get_bucket(place)
    }

    pub(super) fn at_mut(&mut self, place: Place) -> Option<&mut Entry> {
        self.entries.get_bucket_mut(place)
    }

    fn add(&mut self, entry: &Entry) {
        self.bytes += entry.bytes();
        self.shadowing += u64::from(entry.shadows());
    }

    fn subtract(&mut self, entry: &Entry) {
        self.bytes -= entry.bytes();
        self.shadowing -= u64::from(entry.shadows());
    }

    /// Adds an entry whose key is not there.
    pub(super) fn insert_new(&mut self, hasher: &DefaultHashBuilder, hash: u64, entry: Entry) {
        self.add(&entry);
        self.entries.insert_unique(hash, entry, |entry| hash_of(hasher, entry.key()));
    }

    /// Puts an entry in the place of the one with its key, or adds it; answers the one before. What the spill has, it
    /// still has then.
    pub(super) fn replace(&mut self, hasher: &DefaultHashBuilder, hash: u64, entry: Entry) -> Option<Entry> {
        let slot =
            self.entries.entry(hash, |present| present.key() == entry.key(), |present| hash_of(hasher, present.key()));
        match slot {
            Slot::Occupied(mut occupied) => {
                let shadows = occupied.get().shadows();
                let before = std::mem::replace(occupied.get_mut(), entry.shadowing(shadows));
                let bytes = occupied.get().bytes();
                let now_shadows = occupied.get().shadows();
                self.bytes += bytes;
                self.shadowing += u64::from(now_shadows);
                self.subtract(&before);
                Some(before)
            }
            Slot::Vacant(vacant) => {
                self.bytes += entry.bytes();
                self.shadowing += u64::from(entry.shadows());
                vacant.insert(entry);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let occupied = self.entries.find_entry(hash, |entry| entry.key() == key).ok()?;
        let (entry, _) = occupied.remove();
        self.subtract(&entry);
        Some(entry)
    }

    /// Takes out the entries that `wanted` picks, and gives the room back that they leave.
    pub(super) fn extract(
        &mut self,
        hasher: &DefaultHashBuilder,
        mut wanted: impl FnMut(&Entry) -> bool,
        mut taken: impl FnMut(Entry),
    ) {
        let (mut bytes, mut shadowing) = (0, 0);
        for entry in self.entries.extract_if(|entry| wanted(entry)) {
            bytes += entry.bytes();
            shadowing += u64::from(entry.shadows());
            taken(entry);
        }
        self.bytes -= bytes;
        self.shadowing -= shadowing;
        if self.entries.len() < self.entries.capacity() / 2 {
            self.entries.shrink_to(self.entries.len(), |entry| hash_of(hasher, entry.key()));
        }
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
        self.shadowing = 0;
        self.entries.drain()
    }
}
