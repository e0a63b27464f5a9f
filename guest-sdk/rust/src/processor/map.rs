//! A map per key.

use super::columns::{Columns, RowsBuilder, decoded};
use super::tester::{Stored, StoredVariable};
use super::variable::Variable;
use super::wire::{ByKey, Entries, VariableChanges};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Values per key, each under a map key of its own (Spark's `MapState`).
#[derive(Debug)]
pub struct MapState<K: Columns + Ord, V: Columns> {
    cell: Rc<MapCell<K, V>>,
}

impl<K: Columns + Ord, V: Columns> MapState<K, V> {
    pub(super) fn new(cell: Rc<MapCell<K, V>>) -> Self {
        Self { cell }
    }

    /// Whether there is any value.
    pub fn exists(&self) -> bool {
        !self.is_empty()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.cell.0.borrow().current.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value under a map key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.cell.0.borrow().current.get(key).cloned()
    }

    /// Whether there is a value under a map key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.cell.0.borrow().current.contains_key(key)
    }

    /// Sets the value under a map key.
    pub fn update(&self, key: K, value: V) {
        let map = &mut *self.cell.0.borrow_mut();
        map.written.insert(key.clone());
        map.current.insert(key, value);
    }

    /// Removes the value under a map key.
    pub fn remove(&self, key: &K) {
        let map = &mut *self.cell.0.borrow_mut();
        map.current.remove(key);
        map.written.insert(key.clone());
    }

    /// All of it, in the order of the map keys.
    pub fn entries(&self) -> Vec<(K, V)> {
        self.cell.0.borrow().current.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The map keys, in order.
    pub fn keys(&self) -> Vec<K> {
        self.cell.0.borrow().current.keys().cloned().collect()
    }

    /// The values, in the order of their map keys.
    pub fn values(&self) -> Vec<V> {
        self.cell.0.borrow().current.values().cloned().collect()
    }

    /// Removes all values.
    pub fn clear(&self) {
        let map = &mut *self.cell.0.borrow_mut();
        map.current.clear();
        map.written.clear();
        map.is_cleared = true;
    }
}

pub(super) struct MapCell<K: Columns + Ord, V: Columns>(RefCell<Maps<K, V>>);

impl<K: Columns + Ord, V: Columns> std::fmt::Debug for MapCell<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MapState")
    }
}

struct Maps<K: Columns + Ord, V: Columns> {
    before: ByKey<(Option<K>, Option<V>)>,
    current: BTreeMap<K, V>,
    /// Map keys that were set or removed.
    written: BTreeSet<K>,
    is_cleared: bool,
    cleared: Vec<u8>,
    key_of_removed: Vec<u8>,
    removed: RowsBuilder<K>,
    keys: Vec<u8>,
    map_keys: RowsBuilder<K>,
    put: RowsBuilder<V>,
}

impl<K: Columns + Ord, V: Columns> Default for MapCell<K, V> {
    fn default() -> Self {
        Self(RefCell::new(Maps {
            before: ByKey::default(),
            current: BTreeMap::new(),
            written: BTreeSet::new(),
            is_cleared: false,
            cleared: Vec::new(),
            key_of_removed: Vec::new(),
            removed: RowsBuilder::default(),
            keys: Vec::new(),
            map_keys: RowsBuilder::default(),
            put: RowsBuilder::default(),
        }))
    }
}

impl<K: Columns + Ord, V: Columns> Variable for MapCell<K, V> {
    fn load(&self, entries: &Entries) {
        let pairs = decoded::<K>(&entries.map_keys).into_iter().zip(decoded::<V>(&entries.columns));
        self.0.borrow_mut().before = ByKey::new(&entries.key_of_entry, pairs.collect());
    }

    fn enter(&self, key: u32) {
        let maps = &mut *self.0.borrow_mut();
        maps.current = maps.before.take(key).into_iter().filter_map(|(key, value)| Some((key?, value?))).collect();
        maps.written.clear();
        maps.is_cleared = false;
    }

    fn leave(&self, key: u32, counts: bool) {
        let maps = &mut *self.0.borrow_mut();
        let (mut current, written) = (std::mem::take(&mut maps.current), std::mem::take(&mut maps.written));
        if !counts {
            return;
        }
        if maps.is_cleared {
            maps.cleared.extend(key.to_le_bytes());
        }
        for map_key in written {
            match current.remove(&map_key) {
                Some(value) => {
                    maps.keys.extend(key.to_le_bytes());
                    maps.map_keys.push(map_key);
                    maps.put.push(value);
                }
                None => {
                    maps.key_of_removed.extend(key.to_le_bytes());
                    maps.removed.push(map_key);
                }
            }
        }
    }

    fn finish(&self) -> VariableChanges {
        let maps = &mut *self.0.borrow_mut();
        VariableChanges {
            cleared: std::mem::take(&mut maps.cleared),
            key_of_removed: std::mem::take(&mut maps.key_of_removed),
            removed: std::mem::take(&mut maps.removed).finish(),
            put: Entries {
                key_of_entry: std::mem::take(&mut maps.keys),
                map_keys: std::mem::take(&mut maps.map_keys).finish(),
                columns: std::mem::take(&mut maps.put).finish(),
            },
        }
    }

    fn stored(&self) -> Box<dyn StoredVariable> {
        Box::new(Stored::<K, V>::map())
    }
}
