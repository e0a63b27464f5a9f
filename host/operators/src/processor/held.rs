//! What a variable holds for the keys of a call, as it lies in the store and as the call is told.

use super::fault::{StateFault, damaged};
use super::layout::{VariableFamilies, VariableLayout};
use crate::row_codec::EncodedRows;
use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use millstream_state::{ByteRows, StateStore};
use millstream_wasm::processor::Entries;
use std::ops::Range;

/// The numbers that a key's entries have, or had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) first: u64,
    pub(super) end: u64,
}

impl Numbers {
    /// The numbers in a stored value.
    pub(super) fn read(value: &[u8]) -> Result<Self, StateFault> {
        let numbers = match value.as_chunks::<8>() {
            ([first, end], []) => Self { first: u64::from_be_bytes(*first), end: u64::from_be_bytes(*end) },
            _ => return Err(damaged("the range of a key is no pair of numbers")),
        };
        if numbers.first >= numbers.end { Err(damaged("the range of a key is empty")) } else { Ok(numbers) }
    }

    /// The same as a value.
    pub(super) fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.first.to_be_bytes());
        bytes[8..].copy_from_slice(&self.end.to_be_bytes());
        bytes
    }
}

/// The entries of one variable under some keys, expired ones among them.
pub(super) struct Held {
    /// For each entry its key, ascending.
    pub(super) keys: Vec<u32>,
    /// Its number; 0 for a value.
    pub(super) numbers: Vec<u64>,
    /// Until when it lives, as a prefix; 0 for ever.
    pub(super) expires: Vec<u64>,
    /// As it is stored.
    pub(super) values: ByteRows,
    /// Its map key.
    pub(super) map_keys: EncodedRows,
    /// For each key the numbers of its entries.
    pub(super) ranges: Vec<Numbers>,
    columns: Vec<ArrayRef>,
}

impl VariableLayout {
    /// The name of an entry in the store.
    pub(super) fn entry_name(&self, key: &[u8], number: u64, names: &mut ByteRows) {
        if self.is_numbered() {
            names.push_parts(&[key, &number.to_be_bytes()]);
        } else {
            names.push(key);
        }
    }

    /// Reads what `keys` hold.
    pub(super) fn read(
        &self,
        store: &mut dyn StateStore,
        families: VariableFamilies,
        keys: &ByteRows,
    ) -> Result<Held, StateFault> {
        let mut ranges = vec![Numbers::default(); if self.is_numbered() { keys.len() } else { 0 }];
        if let Some(family) = families.range {
            for (range, value) in ranges.iter_mut().zip(store.get_many(family, keys)?) {
                *range = value.map_or(Ok(Numbers::default()), Numbers::read)?;
            }
        }
        let (mut names, mut owners) = (ByteRows::new(), Vec::new());
        for (key, bytes) in (0_u32..).zip(keys.iter()) {
            let numbers = ranges.get(key as usize).map_or(0..1, |range| range.first..range.end);
            for number in numbers {
                self.entry_name(bytes, number, &mut names);
                owners.push((key, number));
            }
        }
        let (mut found, mut values) = (Vec::new(), ByteRows::new());
        for (owner, value) in owners.into_iter().zip(store.get_many(families.rows, &names)?) {
            if let Some(value) = value {
                found.push(owner);
                values.push(value);
            }
        }
        let mut expires = Vec::with_capacity(found.len());
        let mut rows = Vec::with_capacity(found.len());
        for value in values.iter() {
            let (until, row) = self.open_value(value)?;
            expires.push(until);
            rows.push(row);
        }
        let columns = self.rows.decode(rows.into_iter())?;
        let map_keys = self.map_keys.encode(&columns[..self.map_keys.types().len()])?;
        let (keys, numbers) = found.into_iter().unzip();
        Ok(Held { keys, numbers, expires, values, map_keys, ranges, columns })
    }

    /// Until when a stored value lives, and its row.
    pub(super) fn open_value<'a>(&self, value: &'a [u8]) -> Result<(u64, &'a [u8]), StateFault> {
        match (self.ttl_ms, value.split_first_chunk::<8>()) {
            (None, _) => Ok((0, value)),
            (Some(_), Some((until, row))) => Ok((u64::from_be_bytes(*until), row)),
            (Some(_), None) => Err(damaged("an entry has no time of expiry")),
        }
    }
}

impl Held {
    /// The entries of a key, as places.
    pub(super) fn of_key(&self, key: u32) -> Range<usize> {
        self.keys.partition_point(|of| *of < key)..self.keys.partition_point(|of| *of <= key)
    }

    /// What a call is told: the entries that live after `now`, those of a map in the order of their map keys.
    pub(super) fn told(&self, layout: &VariableLayout, now: u64) -> Result<Entries, StateFault> {
        let map_width = layout.map_keys.types().len();
        let lives = |entry: &usize| layout.ttl_ms.is_none() || self.expires[*entry] > now;
        let mut places: Vec<usize> = (0..self.keys.len()).filter(lives).collect();
        if map_width > 0 {
            // How a map came to be must not show.
            places.sort_by_key(|entry| (self.keys[*entry], self.map_keys.row(*entry)));
        }
        let key_of_entry = places.iter().map(|entry| self.keys[*entry]).collect();
        let is_whole = places.len() == self.keys.len() && map_width == 0;
        let places = UInt32Array::from_iter_values(places.iter().map(|place| *place as u32));
        let taken =
            |column: &ArrayRef| if is_whole { Ok(ArrayRef::clone(column)) } else { take(column, &places, None) };
        let mut columns = self.columns.iter().map(taken).collect::<Result<Vec<_>, _>>()?;
        let rest = columns.split_off(map_width);
        Ok(Entries { key_of_entry, map_keys: columns, columns: rest })
    }
}
