//! Finds many keys at once, and remembers where they stand.
//!
//! ```text
//!   keys ──► slots ──► rows ──► compare        a piece of keys takes each step together
//! ```
//!
//! Of a large table no cache holds much: each key waits for the memory of its slot, and then for that of its row. Keys
//! that are looked up one after the other add those waits up; a piece of keys that takes each step together has its waits
//! at the same time.
//!
//! Rule of its life: what is remembered is a guess. Who uses it compares the key, and looks it up again when another
//! one stands there.

use super::family::Family;
use super::table::{Entry, NOWHERE, Place, Table, hash_of};
use crate::ByteRows;
use hashbrown::DefaultHashBuilder;
use std::hint::black_box;

/// So many keys take a step together: few enough that what they bring stays in the nearest cache.
const AT_ONCE: usize = 64;

/// Where the keys of the last reading stood.
#[derive(Debug, Default)]
pub(super) struct Found {
    family: usize,
    places: Vec<Place>,
}

impl Found {
    /// Forgets everything; keeps memory for at most `kept` keys.
    pub(super) fn forget(&mut self, kept: usize) {
        self.places.clear();
        self.places.shrink_to(kept);
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<Place>()) as u64
    }

    /// Where the key with this number stood, if it was the same reading: `len` keys of that family.
    pub(super) fn place(&self, family: usize, len: usize, key: usize) -> Place {
        let is_same = self.family == family && self.places.len() == len;
        if is_same { self.places[key] } else { NOWHERE }
    }

    /// The values of keys, which stand in the tables or nowhere.
    pub(super) fn look_up<'t>(
        &mut self,
        hasher: &DefaultHashBuilder,
        (index, family): (usize, &'t Family),
        keys: &ByteRows,
    ) -> Vec<Option<&'t [u8]>> {
        self.family = index;
        self.places.clear();
        self.places.reserve(keys.len());
        let mut values = Vec::with_capacity(keys.len());
        let mut probes: Vec<Probe<'t>> = Vec::with_capacity(AT_ONCE.min(keys.len()));
        for start in (0..keys.len()).step_by(AT_ONCE) {
            let piece = start..(start + AT_ONCE).min(keys.len());
            probes.clear();
            probes.extend(piece.clone().map(|key| Probe::new(hasher, family, keys.row(key))));
            if probes.len() > 1 {
                // Nobody needs the sum; reading brings the rows near.
                black_box(probes.iter().fold(0, |sum, probe| sum ^ probe.touch()));
            }
            for (probe, key) in probes.iter().zip(piece) {
                let (place, entry) = probe.find(keys.row(key));
                self.places.push(place);
                values.push(entry.map(Entry::value));
            }
        }
        values
    }
}

/// A key on its way.
struct Probe<'t> {
    table: Option<&'t Table>,
    hash: u64,
    /// Where it stands, unless another key has nearly the same hash.
    place: Place,
}

impl<'t> Probe<'t> {
    fn new(hasher: &DefaultHashBuilder, family: &'t Family, key: &[u8]) -> Self {
        let (table, hash) = (family.table_of(key), hash_of(hasher, key));
        Self { table, hash, place: table.map_or(NOWHERE, |table| table.likely_place(hash)) }
    }

    fn touch(&self) -> u8 {
        self.table.and_then(|table| table.at(self.place)).map_or(0, Entry::touch)
    }

    fn find(&self, key: &[u8]) -> (Place, Option<&'t Entry>) {
        let Some(table) = self.table else { return (NOWHERE, None) };
        match table.at(self.place) {
            None => (NOWHERE, None),
            Some(entry) if entry.key() == key => (self.place, Some(entry)),
            Some(_) => {
                let place = table.place(self.hash, key);
                (place, table.at(place))
            }
        }
    }
}
