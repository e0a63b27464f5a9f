//! A family in memory: one table, or one per eight-byte prefix.
//!
//! Between the store, which numbers families, and the tables. It finds the table of a key.
//!
//! Rule of its life: a windowed family holds no empty table. The layout is memory's affair alone: a family of
//! either layout answers every question, only slower when the layout does not fit it.

use super::table::{Entry, Table, hash_of};
use crate::Layout;
use hashbrown::DefaultHashBuilder;
use std::collections::BTreeMap;

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

/// A key space with its schema.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) schema_id: String,
    tables: Tables,
}

impl Family {
    pub(super) fn new(name: &str, schema_id: &str, layout: Layout) -> Self {
        let tables = match layout {
            Layout::Hash => Tables::Hash(Table::default()),
            Layout::Windowed => Tables::Windowed(BTreeMap::new()),
        };
        Self { name: name.to_owned(), schema_id: schema_id.to_owned(), tables }
    }

    pub(super) fn layout(&self) -> Layout {
        match self.tables {
            Tables::Hash(_) => Layout::Hash,
            Tables::Windowed(_) => Layout::Windowed,
        }
    }

    /// Moves all entries to another layout.
    pub(super) fn relayout(&mut self, hasher: &DefaultHashBuilder, layout: Layout) {
        if self.layout() == layout {
            return;
        }
        let mut old = std::mem::replace(self, Self::new(&self.name, &self.schema_id, layout));
        for table in old.tables_mut() {
            for entry in table.drain() {
                self.put_back(hasher, entry);
            }
        }
    }

    /// The table of a key, if there is one.
    fn table(&self, key: &[u8]) -> Option<&Table> {
        match &self.tables {
            Tables::Hash(table) => Some(table),
            Tables::Windowed(tables) => tables.get(&prefix_of(key)),
        }
    }

    /// The table of a key, made when it is missing: the caller must put an entry in.
    pub(super) fn table_for(&mut self, key: &[u8]) -> &mut Table {
        match &mut self.tables {
            Tables::Hash(table) => table,
            Tables::Windowed(tables) => tables.entry(prefix_of(key)).or_default(),
        }
    }

    pub(super) fn find(&self, hasher: &DefaultHashBuilder, key: &[u8]) -> Option<&Entry> {
        self.table(key)?.find(hash_of(hasher, key), key)
    }

    /// Sets an entry, whatever was there.
    pub(super) fn put_back(&mut self, hasher: &DefaultHashBuilder, entry: Entry) {
        let hash = hash_of(hasher, entry.key());
        self.table_for(entry.key()).replace(hasher, hash, entry);
    }

    pub(super) fn find_mut(&mut self, hasher: &DefaultHashBuilder, key: &[u8]) -> Option<&mut Entry> {
        let table = match &mut self.tables {
            Tables::Hash(table) => table,
            Tables::Windowed(tables) => tables.get_mut(&prefix_of(key))?,
        };
        table.find_mut(hash_of(hasher, key), key)
    }

    pub(super) fn remove(&mut self, hasher: &DefaultHashBuilder, key: &[u8]) -> Option<Entry> {
        let hash = hash_of(hasher, key);
        match &mut self.tables {
            Tables::Hash(table) => table.remove(hash, key),
            Tables::Windowed(tables) => {
                let prefix = prefix_of(key);
                let table = tables.get_mut(&prefix)?;
                let entry = table.remove(hash, key);
                if table.is_empty() {
                    tables.remove(&prefix);
                }
                entry
            }
        }
    }

    /// Takes out everything whose prefix is at most `through`: whole tables, or single entries when the layout
    /// knows no prefixes.
    pub(super) fn take_through(&mut self, hasher: &DefaultHashBuilder, through: u64) -> Taken {
        match &mut self.tables {
            Tables::Windowed(tables) => {
                let kept = match through.checked_add(1) {
                    Some(first) => tables.split_off(&first),
                    None => BTreeMap::new(),
                };
                Taken::Tables(std::mem::replace(tables, kept))
            }
            Tables::Hash(table) => {
                let keys: Vec<Vec<u8>> = table
                    .iter()
                    .filter(|entry| prefix_of(entry.key()) <= through)
                    .map(|entry| entry.key().to_vec())
                    .collect();
                Taken::Entries(keys.iter().filter_map(|key| table.remove(hash_of(hasher, key), key)).collect())
            }
        }
    }

    /// Puts a whole table back that `take_through` took.
    pub(super) fn put_table_back(&mut self, hasher: &DefaultHashBuilder, prefix: u64, mut table: Table) {
        match &mut self.tables {
            Tables::Windowed(tables) => {
                tables.insert(prefix, table);
            }
            Tables::Hash(_) => table.drain().for_each(|entry| self.put_back(hasher, entry)),
        }
    }

    /// Prefix by prefix, ascending.
    pub(super) fn scan_through(&self, through: u64, visit: &mut dyn FnMut(&[u8], &[u8])) {
        match &self.tables {
            Tables::Windowed(tables) => {
                for entry in tables.range(..=through).flat_map(|(_, table)| table.iter()) {
                    visit(entry.key(), entry.value());
                }
            }
            Tables::Hash(table) => {
                let mut found: Vec<(u64, &Entry)> = table
                    .iter()
                    .map(|entry| (prefix_of(entry.key()), entry))
                    .filter(|(prefix, _)| *prefix <= through)
                    .collect();
                found.sort_unstable_by_key(|(prefix, _)| *prefix);
                found.iter().for_each(|(_, entry)| visit(entry.key(), entry.value()));
            }
        }
    }

    pub(super) fn tables(&self) -> Box<dyn Iterator<Item = &Table> + '_> {
        match &self.tables {
            Tables::Hash(table) => Box::new(std::iter::once(table)),
            Tables::Windowed(tables) => Box::new(tables.values()),
        }
    }

    pub(super) fn tables_mut(&mut self) -> Box<dyn Iterator<Item = &mut Table> + '_> {
        match &mut self.tables {
            Tables::Hash(table) => Box::new(std::iter::once(table)),
            Tables::Windowed(tables) => Box::new(tables.values_mut()),
        }
    }

    /// Makes room for keys that are about to be loaded.
    pub(super) fn reserve(&mut self, hasher: &DefaultHashBuilder, more: usize) {
        if let Tables::Hash(table) = &mut self.tables {
            table.reserve(hasher, more);
        }
    }
}

/// What `take_through` took.
#[derive(Debug)]
pub(super) enum Taken {
    Tables(BTreeMap<u64, Table>),
    Entries(Vec<Entry>),
}
