//! The changes of the batch that is open: as records for the changelog and as undo for `abort`.
//!
//! The store writes every change here at the moment it changes a table. At `prepare` the live records become
//! the changelog; at `abort` the undo is played backwards.
//!
//! Rule of its life: one record per key and batch as far as lengths allow. A value that is set again with the
//! same length is overwritten in its record; otherwise the older record is dead and not written. The undo
//! holds, per key, only what stood at version N. Keys are not copied for it: they stand in the records. What the open
//! batch wrote or deleted stays in memory until the batch is over, so going back needs no file.

use super::family::{Cold, Family, Hot, Taken};
use super::lookup::Found;
use super::record::Record;
use super::table::{Entry, MOST_STAMP, Place, Table, hash_of};
use crate::ByteRows;
use hashbrown::DefaultHashBuilder;
use std::io;
use std::ops::Range;

/// Buffers larger than this are given back after the batch.
const KEPT_BUFFER: usize = 4 << 20;

#[derive(Debug)]
struct Written {
    record: Range<usize>,
    value: usize,
    live: bool,
}

/// One step back. Ranges of keys are in `log`, of values in `old_values`.
#[derive(Debug)]
enum Undo {
    Added { family: usize, key: Range<usize> },
    Overwritten { family: usize, key: Range<usize>, old: Range<usize> },
    Gone { family: usize, entry: Entry },
    TableGone { family: usize, prefix: u64, table: Box<Table> },
    ColdGone { family: usize, cold: Box<Cold> },
}

/// The changes of the open batch.
#[derive(Debug)]
pub(super) struct OpenBatch {
    log: Vec<u8>,
    written: Vec<Written>,
    undo: Vec<Undo>,
    old_values: Vec<u8>,
    /// Bytes of entries and tables in the undo.
    held: u64,
    /// Entries with this stamp or a greater one were written in this batch, by record `stamp - first_stamp`.
    first_stamp: u32,
    kept_buffer: usize,
}

impl OpenBatch {
    /// An empty batch, under a limit of memory if there is one.
    pub(super) fn new(limit: Option<u64>) -> Self {
        let kept = limit.map_or(KEPT_BUFFER, |limit| usize::try_from(limit / 64).unwrap_or(usize::MAX));
        Self {
            log: Vec::new(),
            written: Vec::new(),
            undo: Vec::new(),
            old_values: Vec::new(),
            held: 0,
            first_stamp: 1,
            kept_buffer: kept.min(KEPT_BUFFER),
        }
    }

    /// Whether nothing changed.
    pub(super) fn is_empty(&self) -> bool {
        self.undo.is_empty()
    }

    /// The greatest stamp of entries that the open batch did not write; `None` when it wrote more than stamps can tell.
    pub(super) fn stamp_before(&self) -> Option<u32> {
        let stamped = u32::try_from(self.written.len()).ok().and_then(|len| self.first_stamp.checked_add(len));
        stamped.filter(|next| *next <= MOST_STAMP).map(|_| self.first_stamp - 1)
    }

    /// Sets the keys of some rows. Those that the spill has are hot by now.
    pub(super) fn put_many(
        &mut self,
        hasher: &DefaultHashBuilder,
        (index, family): (usize, &mut Family),
        (keys, values): (&ByteRows, &ByteRows),
        (found, mut rows): (&Found, Range<usize>),
    ) {
        self.undo.reserve(rows.len());
        self.written.reserve(rows.len());
        while !rows.is_empty() {
            // Keys that follow each other mostly stand in the same table, which is then weighed once.
            let run = rows.start..family.end_of_run(keys, rows.clone());
            rows.start = run.end;
            if family.has_gone() {
                for row in run {
                    let shadows = family.revive(hash_of(hasher, keys.row(row)), keys.row(row));
                    let place = found.place(index, keys.len(), row);
                    let (key, value) = (keys.row(row), values.row(row));
                    family.change(key, |table| self.put(hasher, (index, table), (key, place, shadows), value));
                }
                continue;
            }
            family.change(keys.row(run.start), |table| {
                for row in run {
                    let place = found.place(index, keys.len(), row);
                    self.put(hasher, (index, &mut *table), (keys.row(row), place, false), values.row(row));
                }
            });
        }
    }

    /// Sets a key of a table of family `index`, which may stand at `place`; whether the spill has it, deleted.
    fn put(
        &mut self,
        hasher: &DefaultHashBuilder,
        (index, table): (usize, &mut Table),
        (key, place, shadows): (&[u8], Place, bool),
        value: &[u8],
    ) {
        if let Some(entry) = table.at_mut(place)
            && entry.key() == key
            && entry.value().len() == value.len()
        {
            return self.overwrite(index, entry, value);
        }
        let hash = hash_of(hasher, key);
        let Some(entry) = table.find_mut(hash, key) else {
            let (stamp, key_range) = self.log_put(index, key, value);
            self.undo.push(Undo::Added { family: index, key: key_range });
            table.insert_new(hasher, hash, Entry::new(key, value, stamp).shadowing(shadows));
            return;
        };
        if entry.value().len() == value.len() {
            return self.overwrite(index, entry, value);
        }
        let ours = self.record_of(entry.stamp());
        if let Some(record) = ours {
            self.written[record].live = false;
        }
        let (stamp, _) = self.log_put(index, key, value);
        if let Some(before) = table.replace(hasher, hash, Entry::new(key, value, stamp))
            && ours.is_none()
        {
            self.held += before.bytes();
            self.undo.push(Undo::Gone { family: index, entry: before });
        }
    }

    /// Sets the value of an entry of family `index` to another one of the same length.
    fn overwrite(&mut self, index: usize, entry: &mut Entry, value: &[u8]) {
        if entry.value() == value {
            return;
        }
        if let Some(record) = self.record_of(entry.stamp()) {
            let start = self.written[record].value;
            self.log[start..start + value.len()].copy_from_slice(value);
        } else {
            let start = self.old_values.len();
            self.old_values.extend_from_slice(entry.value());
            let old = start..self.old_values.len();
            let (stamp, key) = self.log_put(index, entry.key(), value);
            self.undo.push(Undo::Overwritten { family: index, key, old });
            entry.set_stamp(stamp);
        }
        entry.value_mut().copy_from_slice(value);
    }

    /// Removes a key. When the spill has it, it is hot by now.
    pub(super) fn delete(&mut self, hasher: &DefaultHashBuilder, (index, family): (usize, &mut Family), key: &[u8]) {
        let Some(entry) = family.remove(hasher, key, self.stamp_of(self.written.len())) else {
            return;
        };
        if let Some(record) = self.record_of(entry.stamp()) {
            self.written[record].live = false;
        }
        self.log(Record::Delete { family: index, key }, 0);
        self.held += entry.bytes();
        self.undo.push(Undo::Gone { family: index, entry });
    }

    pub(super) fn delete_through(
        &mut self,
        hasher: &DefaultHashBuilder,
        (index, family): (usize, &mut Family),
        through: u64,
    ) -> io::Result<u64> {
        let before = self.undo.len();
        let Taken { hot, cold, count } = family.take_through(hasher, through)?;
        match hot {
            Hot::Tables(tables) => self.undo.extend(tables.into_iter().map(|(prefix, table)| {
                self.held += table.weight().bytes;
                Undo::TableGone { family: index, prefix, table: Box::new(table) }
            })),
            Hot::Entries(entries) => self.undo.extend(entries.into_iter().map(|entry| {
                self.held += entry.bytes();
                Undo::Gone { family: index, entry }
            })),
        }
        self.undo.extend(cold.map(|cold| Undo::ColdGone { family: index, cold: Box::new(cold) }));
        if self.undo.len() > before {
            self.log(Record::DeleteThrough { family: index, through }, 0);
        }
        Ok(count)
    }

    /// Which record of this batch wrote an entry.
    fn record_of(&self, stamp: u32) -> Option<usize> {
        let record = stamp.checked_sub(self.first_stamp)? as usize;
        (record < self.written.len()).then_some(record)
    }

    fn log(&mut self, record: Record<'_>, value_len: usize) -> usize {
        let start = self.log.len();
        record.write(&mut self.log);
        let end = self.log.len();
        self.written.push(Written { record: start..end, value: end - value_len, live: true });
        self.written.len() - 1
    }

    /// Answers the stamp for the entry and where the key stands. Stamp 0 is always safe: the next change of
    /// the key then has a record and an undo of its own.
    fn log_put(&mut self, family: usize, key: &[u8], value: &[u8]) -> (u32, Range<usize>) {
        let record = self.log(Record::Put { family, key, value }, value.len());
        let start = self.written[record].value - key.len();
        (self.stamp_of(record), start..start + key.len())
    }

    /// The stamp of a record.
    fn stamp_of(&self, record: usize) -> u32 {
        let stamp = u32::try_from(record).ok().and_then(|record| self.first_stamp.checked_add(record));
        stamp.filter(|stamp| *stamp <= MOST_STAMP).unwrap_or(0)
    }

    /// The records to be written, their bytes together, and their number.
    pub(super) fn records(&self) -> (impl Iterator<Item = &[u8]>, usize, u64) {
        let live = || self.written.iter().filter(|written| written.live);
        let bytes = live().map(|written| written.record.len()).sum();
        (live().map(|written| &self.log[written.record.clone()]), bytes, live().count() as u64)
    }

    /// Brings the families back to where the batch began.
    pub(super) fn undo(&mut self, hasher: &DefaultHashBuilder, families: &mut [Family]) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::Added { family, key } => {
                    families[family].remove(hasher, &self.log[key], 0);
                }
                Undo::Overwritten { family, key, old } => {
                    let (key, old) = (&self.log[key], &self.old_values[old]);
                    match families[family].find_mut(hasher, key) {
                        Some(entry) if entry.value().len() == old.len() => entry.value_mut().copy_from_slice(old),
                        // It got a value of another length later in the batch.
                        _ => families[family].put_back(hasher, Entry::new(key, old, 0)),
                    }
                }
                Undo::Gone { family, entry } => families[family].put_back(hasher, entry),
                Undo::TableGone { family, prefix, table } => {
                    families[family].put_table_back(hasher, prefix, *table);
                }
                Undo::ColdGone { family, cold } => families[family].put_cold_back(hasher, *cold),
            }
        }
        self.close(families);
    }

    /// The batch is over, one way or the other: forgets its changes.
    pub(super) fn close(&mut self, families: &mut [Family]) {
        let next = u32::try_from(self.written.len()).ok().and_then(|len| self.first_stamp.checked_add(len));
        match next.filter(|next| *next <= MOST_STAMP / 2) {
            Some(next) => self.first_stamp = next,
            None => {
                families.iter_mut().flat_map(Family::entries_mut).for_each(|entry| entry.set_stamp(0));
                self.first_stamp = 1;
            }
        }
        self.held = 0;
        self.log.clear();
        self.log.shrink_to(self.kept_buffer);
        self.written.clear();
        self.written.shrink_to(self.kept_buffer / size_of::<Written>());
        self.undo.clear();
        self.undo.shrink_to(self.kept_buffer / size_of::<Undo>());
        self.old_values.clear();
        self.old_values.shrink_to(self.kept_buffer);
    }

    /// For how many keys memory may be kept from batch to batch.
    pub(super) fn kept_keys(&self) -> usize {
        self.kept_buffer / size_of::<Place>()
    }

    /// What the buffers take.
    pub(super) fn bytes(&self) -> u64 {
        let buffers = self.log.capacity()
            + self.old_values.capacity()
            + self.written.capacity() * size_of::<Written>()
            + self.undo.capacity() * size_of::<Undo>();
        buffers as u64 + self.held
    }
}
