//! What an outcome does to a variable: cleared, then removed, then put.
//!
//! Entries of lists and maps are numbered. What is removed leaves a hole; the range of a key begins at its first entry, and
//! when most numbers of a key are holes its entries are numbered anew.

use super::fault::StateFault;
use super::held::{Held, Numbers};
use super::layout::{VariableFamilies, VariableLayout, prefix_of_ms, second_of};
use super::timers::empty_rows;
use crate::float_identity::unify_floats;
use crate::row_codec::EncodedRows;
use arrow::array::ArrayRef;
use hashbrown::HashMap;
use millstream_state::{ByteRows, StateStore};
use millstream_wasm::processor::{VariableChanges, VariableKind};
use std::collections::BTreeSet;

/// Holes that a key may have for each entry, and as many more.
const HOLES: u64 = 32;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Entries written.
    pub(super) written: u64,
    /// Entries removed.
    pub(super) removed: u64,
    /// Entries more than before, or less.
    pub(super) change: i64,
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.written += other.written;
        self.removed += other.removed;
        self.change += other.change;
    }
}

/// An entry as it is to be.
struct Slot {
    number: u64,
    /// The entry that is stored.
    was: Option<usize>,
    /// The entry that is put.
    put: Option<usize>,
}

/// Changes of one variable, family by family.
#[derive(Default)]
struct Writes {
    gone: ByteRows,
    names: ByteRows,
    values: ByteRows,
    emptied: ByteRows,
    ranged: ByteRows,
    ranges: ByteRows,
    expired: ByteRows,
    expiries: ByteRows,
}

/// What is put, with its bytes.
struct Put<'a> {
    changes: &'a VariableChanges,
    rows: EncodedRows,
    map_keys: EncodedRows,
    removed: EncodedRows,
    /// Until when it lives, as a prefix.
    until: Option<u64>,
}

impl VariableLayout {
    /// Does what `changes` says to the entries that `held` has of `keys`.
    pub(super) fn apply(
        &self,
        store: &mut dyn StateStore,
        families: VariableFamilies,
        (keys, held): (&ByteRows, &Held),
        changes: &VariableChanges,
        batch_time_ms: i64,
    ) -> Result<Done, StateFault> {
        let unified = |keys: &[ArrayRef]| keys.iter().map(unify_floats).collect::<Result<Vec<_>, _>>();
        let mut columns = unified(&changes.put.map_keys)?;
        columns.extend(changes.put.columns.iter().map(ArrayRef::clone));
        let conformed = self.rows.conform(columns)?;
        let put = Put {
            changes,
            rows: self.rows.encode(&conformed)?,
            map_keys: self.map_keys.encode(&conformed[..self.map_keys.types().len()])?,
            removed: self.map_keys.encode(&self.map_keys.conform(unified(&changes.removed)?)?)?,
            until: self.ttl_ms.map(|ttl| prefix_of_ms(batch_time_ms.saturating_add(ttl))),
        };
        let touched = changes.cleared.iter().chain(&changes.key_of_removed).chain(&changes.put.key_of_entry);
        let touched: BTreeSet<u32> = touched.copied().collect();
        let (mut writes, mut done) = (Writes::default(), Done::default());
        for key in touched {
            done += self.apply_to(key, keys.row(key as usize), held, &put, &mut writes);
        }
        writes.write(store, families)?;
        Ok(done)
    }

    fn apply_to(&self, key: u32, bytes: &[u8], held: &Held, put: &Put<'_>, writes: &mut Writes) -> Done {
        let of_key = held.of_key(key);
        let before = of_key.len();
        let mut range = held.ranges.get(key as usize).copied().unwrap_or_default();
        let mut gone: Vec<usize> = Vec::new();
        let mut slots: Vec<Slot> = Vec::new();
        if put.changes.cleared.binary_search(&key).is_ok() {
            gone.extend(of_key);
            range = Numbers::default();
        } else {
            slots.extend(of_key.map(|entry| Slot { number: held.numbers[entry], was: Some(entry), put: None }));
        }
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        if self.kind == VariableKind::Map {
            let was = |(place, slot): (usize, &Slot)| Some((held.map_keys.row(slot.was?).to_vec(), place));
            places.extend(slots.iter().enumerate().filter_map(was));
            let mut removed = BTreeSet::new();
            for index in span(&put.changes.key_of_removed, key) {
                removed.extend(places.remove(put.removed.row(index)));
            }
            gone.extend(removed.iter().filter_map(|place| slots[*place].was));
        }
        let removed = gone.len() as u64;
        let is_gone: BTreeSet<usize> = gone.iter().copied().collect();
        let mut written = 0;
        for index in span(&put.changes.put.key_of_entry, key) {
            let map_key = put.map_keys.row(index);
            let place = match self.kind {
                VariableKind::Value => (!slots.is_empty()).then_some(0),
                VariableKind::List => None,
                VariableKind::Map => places.get(map_key).copied(),
            };
            written += 1;
            if let Some(place) = place {
                slots[place].put = Some(index);
                continue;
            }
            if self.kind == VariableKind::Map {
                places.insert(map_key.to_vec(), slots.len());
            }
            slots.push(Slot { number: range.end, was: None, put: Some(index) });
            range.end += 1;
        }
        slots.retain(|slot| slot.was.is_none_or(|entry| !is_gone.contains(&entry)));
        let after = slots.len();
        if self.is_numbered() {
            self.renumber(&mut slots, &mut gone, &mut range);
            writes.range(bytes, range, held.ranges.get(key as usize).copied().unwrap_or_default());
        }
        gone.iter().for_each(|entry| self.remove(bytes, held, *entry, writes));
        slots.iter().for_each(|slot| self.write(bytes, held, slot, put, writes));
        Done { written, removed, change: after as i64 - before as i64 }
    }

    /// Lets the range begin at the first entry, and closes holes when they are too many.
    fn renumber(&self, slots: &mut [Slot], gone: &mut Vec<usize>, range: &mut Numbers) {
        let Some(first) = slots.first() else {
            *range = Numbers::default();
            return;
        };
        range.first = first.number;
        if range.end - range.first <= 2 * slots.len() as u64 + HOLES {
            return;
        }
        for (number, slot) in (0..).zip(slots.iter_mut()) {
            if slot.number != number {
                gone.extend(slot.was);
                slot.number = number;
            }
        }
        *range = Numbers { first: 0, end: slots.len() as u64 };
    }

    fn remove(&self, key: &[u8], held: &Held, entry: usize, writes: &mut Writes) {
        self.entry_name(key, held.numbers[entry], &mut writes.gone);
        if self.ttl_ms.is_some() {
            self.expiry_name(key, held.numbers[entry], held.expires[entry], &mut writes.expired);
        }
    }

    fn write(&self, key: &[u8], held: &Held, slot: &Slot, put: &Put<'_>, writes: &mut Writes) {
        let moved = slot.was.filter(|entry| held.numbers[*entry] != slot.number);
        if slot.put.is_none() && moved.is_none() {
            return;
        }
        self.entry_name(key, slot.number, &mut writes.names);
        let until = match (slot.put, moved) {
            (Some(index), _) => {
                let until = put.until.map(u64::to_be_bytes);
                let until: &[u8] = until.as_ref().map_or(&[], |bytes| bytes.as_slice());
                writes.values.push_parts(&[until, put.rows.row(index)]);
                put.until
            }
            (None, moved) => {
                let entry = moved.unwrap_or_default();
                writes.values.push(held.values.row(entry));
                self.ttl_ms.map(|_| held.expires[entry])
            }
        };
        if let Some(until) = until {
            if let Some(entry) = slot.was {
                self.expiry_name(key, held.numbers[entry], held.expires[entry], &mut writes.expired);
            }
            self.expiry_name(key, slot.number, until, &mut writes.expiries);
        }
    }

    fn expiry_name(&self, key: &[u8], number: u64, expires: u64, names: &mut ByteRows) {
        let (second, expires) = (second_of(expires).to_be_bytes(), expires.to_be_bytes());
        if self.is_numbered() {
            names.push_parts(&[&second, key, &number.to_be_bytes(), &expires]);
        } else {
            names.push_parts(&[&second, key, &expires]);
        }
    }
}

impl Writes {
    fn range(&mut self, key: &[u8], range: Numbers, before: Numbers) {
        if range == Numbers::default() {
            if before != range {
                self.emptied.push(key);
            }
        } else if range != before {
            self.ranged.push(key);
            self.ranges.push(&range.bytes());
        }
    }

    /// What goes, goes first: a number may be given again.
    fn write(&self, store: &mut dyn StateStore, families: VariableFamilies) -> Result<(), StateFault> {
        store.delete_many(families.rows, &self.gone)?;
        store.put_many(families.rows, &self.names, &self.values)?;
        if let Some(range) = families.range {
            store.delete_many(range, &self.emptied)?;
            store.put_many(range, &self.ranged, &self.ranges)?;
        }
        if let Some(expiry) = families.expiry {
            store.delete_many(expiry, &self.expired)?;
            store.put_many(expiry, &self.expiries, &empty_rows(self.expiries.len()))?;
        }
        Ok(())
    }
}

/// Where the numbers of `key` stand.
fn span(keys: &[u32], key: u32) -> std::ops::Range<usize> {
    keys.partition_point(|of| *of < key)..keys.partition_point(|of| *of <= key)
}
