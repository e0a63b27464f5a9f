//! A family: its hot rows in one table, or one per eight-byte prefix, and its cold rows in the spill.
//!
//! ```text
//!   key ──► tables ──miss──► gone? ──no──► spill          gone: deleted, and the spill has it still
//! ```
//!
//! Between the store, which numbers families, and the tables. It finds the table of a key.
//!
//! Rule of its life: a windowed family holds no empty table. The layout is memory's affair alone: a family of
//! either layout answers every question, only slower when the layout does not fit it. A key stands in a table or among
//! the gone ones or in neither, never in both. An entry whose key the spill has carries a mark; so the number of keys
//! is known without reading: those in tables, and those of the spill that neither a table nor a deletion hides.

use super::eviction::{Evicted, Eviction};
use super::spill::{Hidden, Place, Spill, Wanted};
use super::table::{Entry, Table, Weight, hash_of};
use crate::{ByteRows, Layout};
use hashbrown::DefaultHashBuilder;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

/// What the tree of windows takes for one, about.
const WINDOW_OVERHEAD: u64 = 80;

/// The first eight bytes as a number; a shorter key counts as if zeros followed.
pub(super) fn prefix_of(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

#[derive(Debug)]
enum Tables {
    Hash(Table),
    Windowed(BTreeMap<u64, Table>),
}

impl Tables {
    fn new(layout: Layout) -> Self {
        match layout {
            Layout::Hash => Self::Hash(Table::default()),
            Layout::Windowed => Self::Windowed(BTreeMap::new()),
        }
    }

    fn of(&self, key: &[u8]) -> Option<&Table> {
        match self {
            Self::Hash(table) => Some(table),
            Self::Windowed(tables) => tables.get(&prefix_of(key)),
        }
    }

    fn of_mut(&mut self, key: &[u8]) -> Option<&mut Table> {
        match self {
            Self::Hash(table) => Some(table),
            Self::Windowed(tables) => tables.get_mut(&prefix_of(key)),
        }
    }

    /// The table of a key, made when it is missing: the caller must put an entry in.
    fn for_key(&mut self, key: &[u8]) -> &mut Table {
        match self {
            Self::Hash(table) => table,
            Self::Windowed(tables) => tables.entry(prefix_of(key)).or_default(),
        }
    }

    fn all(&self) -> Box<dyn Iterator<Item = &Table> + '_> {
        match self {
            Self::Hash(table) => Box::new(std::iter::once(table)),
            Self::Windowed(tables) => Box::new(tables.values()),
        }
    }

    fn all_mut(&mut self) -> Box<dyn Iterator<Item = &mut Table> + '_> {
        match self {
            Self::Hash(table) => Box::new(std::iter::once(table)),
            Self::Windowed(tables) => Box::new(tables.values_mut()),
        }
    }

    /// Entries with a prefix of `through` or below, prefix by prefix, ascending.
    fn through(&self, through: u64) -> Box<dyn Iterator<Item = (u64, &Entry)> + '_> {
        match self {
            Self::Windowed(tables) => Box::new(
                tables.range(..=through).flat_map(|(prefix, table)| table.iter().map(|entry| (*prefix, entry))),
            ),
            Self::Hash(table) => {
                let mut found: Vec<(u64, &Entry)> = table
                    .iter()
                    .map(|entry| (prefix_of(entry.key()), entry))
                    .filter(|(prefix, _)| *prefix <= through)
                    .collect();
                found.sort_unstable_by_key(|(prefix, _)| *prefix);
                Box::new(found.into_iter())
            }
        }
    }
}

/// A key space with its schema.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) schema_id: String,
    tables: Tables,
    /// Of the tables.
    weight: Weight,
    /// Keys that were deleted and that the spill has still.
    gone: Table,
    spill: Spill,
}

impl Family {
    pub(super) fn new(name: &str, schema_id: &str, layout: Layout) -> Self {
        Self {
            name: name.to_owned(),
            schema_id: schema_id.to_owned(),
            tables: Tables::new(layout),
            weight: Weight::default(),
            gone: Table::default(),
            spill: Spill::default(),
        }
    }

    pub(super) fn layout(&self) -> Layout {
        match self.tables {
            Tables::Hash(_) => Layout::Hash,
            Tables::Windowed(_) => Layout::Windowed,
        }
    }

    /// Moves all entries to another layout; the spill has none.
    pub(super) fn relayout(&mut self, hasher: &DefaultHashBuilder, layout: Layout) {
        if self.layout() == layout {
            return;
        }
        let mut old = std::mem::replace(&mut self.tables, Tables::new(layout));
        self.weight = Weight::default();
        for entry in old.all_mut().flat_map(Table::drain) {
            self.put_back(hasher, entry);
        }
    }

    /// Keys, hot and cold.
    pub(super) fn keys(&self) -> u64 {
        self.weight.keys + self.spilled_keys()
    }

    /// Keys that are only in the spill.
    pub(super) fn spilled_keys(&self) -> u64 {
        self.spill.keys() - self.weight.shadowing - self.gone.len() as u64
    }

    /// Bytes of the spill's files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.spill.bytes()
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> u64 {
        let windows = match &self.tables {
            Tables::Hash(_) => 0,
            Tables::Windowed(tables) => tables.len() as u64 * WINDOW_OVERHEAD,
        };
        self.weight.bytes + windows + self.gone.weight().bytes + self.spill.memory()
    }

    /// What the tables weigh.
    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    /// What the tables will weigh more when `more` keys come.
    pub(super) fn growth(&self, more: usize) -> u64 {
        match &self.tables {
            Tables::Hash(table) => table.growth(more),
            Tables::Windowed(_) => 0,
        }
    }

    /// The table that the key stands in if it is hot.
    pub(super) fn table_of(&self, key: &[u8]) -> Option<&Table> {
        self.tables.of(key)
    }

    /// The first of these rows whose key stands in another table than that of the first row.
    pub(super) fn end_of_run(&self, keys: &ByteRows, rows: Range<usize>) -> usize {
        let end = rows.end;
        match &self.tables {
            Tables::Hash(_) => end,
            Tables::Windowed(_) => {
                let first = prefix_of(keys.row(rows.start));
                rows.skip(1).find(|row| prefix_of(keys.row(*row)) != first).unwrap_or(end)
            }
        }
    }

    /// Whether the spill has keys that were deleted.
    pub(super) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    pub(super) fn find_mut(&mut self, hasher: &DefaultHashBuilder, key: &[u8]) -> Option<&mut Entry> {
        self.tables.of_mut(key)?.find_mut(hash_of(hasher, key), key)
    }

    /// Changes the table of a key, which is made when it is missing: `change` must leave an entry in it.
    pub(super) fn change<T>(&mut self, key: &[u8], change: impl FnOnce(&mut Table) -> T) -> T {
        let table = self.tables.for_key(key);
        let before = table.weight();
        let result = change(table);
        self.weight += table.weight();
        self.weight -= before;
        result
    }

    /// Before a key is put that no table has: whether the spill has it, deleted.
    pub(super) fn revive(&mut self, hash: u64, key: &[u8]) -> bool {
        !self.gone.is_empty() && self.gone.remove(hash, key).is_some()
    }

    /// Sets an entry, whatever was there.
    pub(super) fn put_back(&mut self, hasher: &DefaultHashBuilder, entry: Entry) {
        let hash = hash_of(hasher, entry.key());
        let entry = match self.revive(hash, entry.key()) {
            true => entry.shadowing(true),
            false => entry,
        };
        // Only a borrow of the entry's own key stands in the way of handing it over in one step.
        let table = self.tables.for_key(entry.key());
        let before = table.weight();
        table.replace(hasher, hash, entry);
        self.weight += table.weight();
        self.weight -= before;
    }

    /// Removes a hot entry. What the spill has of the key is gone from now on; `stamp` says since when.
    pub(super) fn remove(&mut self, hasher: &DefaultHashBuilder, key: &[u8], stamp: u32) -> Option<Entry> {
        let hash = hash_of(hasher, key);
        let table = self.tables.of_mut(key)?;
        let before = table.weight();
        let entry = table.remove(hash, key)?;
        let after = table.weight();
        let is_empty = table.is_empty();
        self.weight -= before;
        if let (true, Tables::Windowed(tables)) = (is_empty, &mut self.tables) {
            tables.remove(&prefix_of(key));
        } else {
            self.weight += after;
        }
        if entry.shadows() {
            self.gone.insert_new(hasher, hash, Entry::new(key, &[], stamp));
        }
        Some(entry)
    }

    /// Takes out everything whose prefix is at most `through`: whole tables, or single entries when the layout
    /// knows no prefixes. Rows of the spill are read to be counted.
    pub(super) fn take_through(&mut self, hasher: &DefaultHashBuilder, through: u64) -> io::Result<Taken> {
        let mut in_spill = 0;
        self.spill.each(through, &mut |_, _, _| in_spill += 1)?;
        let hot_before = self.weight;
        let hot = match &mut self.tables {
            Tables::Windowed(tables) => {
                let kept = match through.checked_add(1) {
                    Some(first) => tables.split_off(&first),
                    None => BTreeMap::new(),
                };
                let taken = std::mem::replace(tables, kept);
                taken.values().for_each(|table| self.weight -= table.weight());
                Hot::Tables(taken)
            }
            Tables::Hash(table) => {
                let before = table.weight();
                let mut entries = Vec::new();
                table.extract(hasher, |entry| prefix_of(entry.key()) <= through, |entry| entries.push(entry));
                self.weight += table.weight();
                self.weight -= before;
                Hot::Entries(entries)
            }
        };
        let mut gone = Vec::new();
        if in_spill > 0 {
            self.gone.extract(hasher, |entry| prefix_of(entry.key()) <= through, |entry| gone.push(entry));
        }
        let shadowing = hot_before.shadowing - self.weight.shadowing;
        let count = hot_before.keys - self.weight.keys + in_spill - shadowing - gone.len() as u64;
        let cold = (in_spill > 0).then(|| Cold { hidden: self.spill.hide_through(through, in_spill), in_spill, gone });
        Ok(Taken { hot, cold, count })
    }

    /// Puts a whole table back that `take_through` took.
    pub(super) fn put_table_back(&mut self, hasher: &DefaultHashBuilder, prefix: u64, mut table: Table) {
        match &mut self.tables {
            Tables::Windowed(tables) => {
                self.weight += table.weight();
                tables.insert(prefix, table);
            }
            Tables::Hash(_) => table.drain().for_each(|entry| self.put_back(hasher, entry)),
        }
    }

    /// Shows what `take_through` hid.
    pub(super) fn put_cold_back(&mut self, hasher: &DefaultHashBuilder, cold: Cold) {
        self.spill.show(&cold.hidden, cold.in_spill);
        for entry in cold.gone {
            let hash = hash_of(hasher, entry.key());
            self.gone.replace(hasher, hash, entry);
        }
    }

    /// Calls `visit` with every row, in no order.
    pub(super) fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<()> {
        self.tables.all().flat_map(Table::iter).for_each(|entry| visit(entry.key(), entry.value()));
        self.spill.each(u64::MAX, &mut |place, key, value| {
            if !self.hides(place, key) {
                visit(key, value);
            }
        })
    }

    /// Prefix by prefix, ascending.
    pub(super) fn scan_through(&self, through: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<()> {
        let mut hot = self.tables.through(through).peekable();
        self.spill.each(through, &mut |place, key, value| {
            while let Some((_, entry)) = hot.next_if(|(prefix, _)| *prefix <= place.prefix) {
                visit(entry.key(), entry.value());
            }
            if !self.hides(place, key) {
                visit(key, value);
            }
        })?;
        hot.for_each(|(_, entry)| visit(entry.key(), entry.value()));
        Ok(())
    }

    /// Whether memory knows better than the spill.
    fn hides(&self, place: Place, key: &[u8]) -> bool {
        self.tables.of(key).is_some_and(|table| table.find(place.hash, key).is_some())
            || self.gone.find(place.hash, key).is_some()
    }

    pub(super) fn hot(&self) -> impl Iterator<Item = &Entry> {
        self.tables.all().flat_map(Table::iter)
    }

    /// All entries, those of deleted keys among them.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.tables.all_mut().chain(std::iter::once(&mut self.gone)).flat_map(Table::iter_mut)
    }

    /// Makes room for keys that are about to be loaded.
    pub(super) fn reserve(&mut self, hasher: &DefaultHashBuilder, more: usize) {
        if let Tables::Hash(table) = &mut self.tables {
            let before = table.weight();
            table.reserve(hasher, more);
            self.weight += table.weight();
            self.weight -= before;
        }
    }

    /// Brings the rows of keys into memory, and marks all of them with `stamp` as used.
    pub(super) fn recall<'k>(
        &mut self,
        hasher: &DefaultHashBuilder,
        keys: impl Iterator<Item = &'k [u8]>,
        stamp: u32,
    ) -> io::Result<()> {
        if self.spill.is_empty() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for key in keys {
            let hash = hash_of(hasher, key);
            if let Some(entry) = self.tables.of_mut(key).and_then(|table| table.find_mut(hash, key)) {
                entry.set_stamp(entry.stamp().max(stamp));
            } else if self.spill.may_hold(hash) && self.gone.find(hash, key).is_none() {
                wanted.push(Wanted { place: Place::of(key, hash), key });
            }
        }
        wanted.sort_unstable_by_key(|wanted| wanted.place);
        let Self { spill, tables, weight, .. } = self;
        spill.find(&wanted, &mut |wanted, value| {
            let table = tables.for_key(wanted.key);
            let before = table.weight();
            table.replace(hasher, wanted.place.hash, Entry::clean(wanted.key, value, stamp));
            *weight += table.weight();
            *weight -= before;
        })
    }

    /// Moves entries with a stamp of `through` or older into the spill, `most` at a time. When that fails the rest stays.
    pub(super) fn evict(
        &mut self,
        hasher: &DefaultHashBuilder,
        (folder, most): (&Path, usize),
        through: u32,
    ) -> io::Result<()> {
        let is_failed = Cell::new(false);
        let is_due = |entry: &Entry| entry.stamp() <= through && !is_failed.get();
        let mut eviction = Eviction::new(&mut self.spill, (folder, most), &is_failed);
        let place = |entry: &Entry| Place::of(entry.key(), hash_of(hasher, entry.key()));
        for table in self.tables.all_mut() {
            let before = table.weight();
            table.extract(hasher, is_due, |entry| eviction.take(place(&entry), entry));
            self.weight += table.weight();
            self.weight -= before;
            if table.is_empty() {
                self.weight -= table.weight();
            }
        }
        match &mut self.tables {
            Tables::Windowed(tables) => tables.retain(|_, table| !table.is_empty()),
            Tables::Hash(table) if table.is_empty() => *table = Table::default(),
            Tables::Hash(_) => {}
        }
        self.gone.extract(hasher, is_due, |entry| eviction.take_gone(place(&entry), entry));
        let (left, result) = eviction.end();
        for Evicted { place, entry, is_gone } in left {
            match is_gone {
                true => self.gone.insert_new(hasher, place.hash, entry),
                false => self.put_back(hasher, entry),
            }
        }
        result
    }

    /// Merges files of the spill where that is due; never while a batch is open.
    pub(super) fn tidy(&mut self, folder: &Path) -> io::Result<()> {
        self.spill.tidy(folder)
    }
}

/// What `take_through` took.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) hot: Hot,
    /// If there was anything in the spill.
    pub(super) cold: Option<Cold>,
    /// How many keys.
    pub(super) count: u64,
}

/// What `take_through` took of the tables.
#[derive(Debug)]
pub(super) enum Hot {
    Tables(BTreeMap<u64, Table>),
    Entries(Vec<Entry>),
}

/// What `take_through` hid in the spill.
#[derive(Debug)]
pub(super) struct Cold {
    hidden: Hidden,
    in_spill: u64,
    gone: Vec<Entry>,
}
