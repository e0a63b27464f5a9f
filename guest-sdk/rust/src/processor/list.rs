//! A list per key.

use super::columns::{Columns, RowsBuilder, decoded};
use super::tester::{Stored, StoredVariable};
use super::variable::Variable;
use super::wire::{ByKey, Entries, VariableChanges};
use std::cell::RefCell;
use std::rc::Rc;

/// Values per key, in the order in which they were appended (Spark's `ListState`).
#[derive(Debug)]
pub struct ListState<T: Columns> {
    cell: Rc<ListCell<T>>,
}

impl<T: Columns> ListState<T> {
    pub(super) fn new(cell: Rc<ListCell<T>>) -> Self {
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

    /// The values.
    pub fn get(&self) -> Vec<T> {
        self.cell.0.borrow().current.clone()
    }

    /// Appends a value.
    pub fn append(&self, value: T) {
        self.cell.0.borrow_mut().current.push(value);
    }

    /// Appends values.
    pub fn append_all(&self, values: impl IntoIterator<Item = T>) {
        self.cell.0.borrow_mut().current.extend(values);
    }

    /// Puts these values in the place of all others.
    pub fn put(&self, values: impl IntoIterator<Item = T>) {
        self.clear();
        self.append_all(values);
    }

    /// Removes all values.
    pub fn clear(&self) {
        let list = &mut *self.cell.0.borrow_mut();
        list.current.clear();
        list.kept = 0;
        list.is_cleared = true;
    }
}

pub(super) struct ListCell<T: Columns>(RefCell<Lists<T>>);

impl<T: Columns> std::fmt::Debug for ListCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ListState")
    }
}

struct Lists<T: Columns> {
    before: ByKey<Option<T>>,
    current: Vec<T>,
    /// How many of them are stored.
    kept: usize,
    is_cleared: bool,
    cleared: Vec<u8>,
    keys: Vec<u8>,
    put: RowsBuilder<T>,
}

impl<T: Columns> Default for ListCell<T> {
    fn default() -> Self {
        Self(RefCell::new(Lists {
            before: ByKey::default(),
            current: Vec::new(),
            kept: 0,
            is_cleared: false,
            cleared: Vec::new(),
            keys: Vec::new(),
            put: RowsBuilder::default(),
        }))
    }
}

impl<T: Columns> Variable for ListCell<T> {
    fn load(&self, entries: &Entries) {
        self.0.borrow_mut().before = ByKey::new(&entries.key_of_entry, decoded::<T>(&entries.columns));
    }

    fn enter(&self, key: u32) {
        let lists = &mut *self.0.borrow_mut();
        lists.current = lists.before.take(key).into_iter().flatten().collect();
        lists.kept = lists.current.len();
        lists.is_cleared = false;
    }

    fn leave(&self, key: u32, counts: bool) {
        let lists = &mut *self.0.borrow_mut();
        let current = std::mem::take(&mut lists.current);
        if !counts {
            return;
        }
        if lists.is_cleared {
            lists.cleared.extend(key.to_le_bytes());
        }
        for value in current.into_iter().skip(lists.kept) {
            lists.keys.extend(key.to_le_bytes());
            lists.put.push(value);
        }
    }

    fn finish(&self) -> VariableChanges {
        let lists = &mut *self.0.borrow_mut();
        let put = Entries {
            key_of_entry: std::mem::take(&mut lists.keys),
            columns: std::mem::take(&mut lists.put).finish(),
            ..Entries::default()
        };
        VariableChanges { cleared: std::mem::take(&mut lists.cleared), put, ..VariableChanges::default() }
    }

    fn stored(&self) -> Box<dyn StoredVariable> {
        Box::new(Stored::<u8, T>::list())
    }
}
