//! A value per key.

use super::columns::{Columns, RowsBuilder, decoded};
use super::tester::{Stored, StoredVariable};
use super::variable::Variable;
use super::wire::{ByKey, Entries, VariableChanges};
use std::cell::RefCell;
use std::rc::Rc;

/// One value per key, or none (Spark's `ValueState`).
#[derive(Debug)]
pub struct ValueState<T: Columns> {
    cell: Rc<ValueCell<T>>,
}

impl<T: Columns> ValueState<T> {
    pub(super) fn new(cell: Rc<ValueCell<T>>) -> Self {
        Self { cell }
    }

    /// Whether there is a value.
    pub fn exists(&self) -> bool {
        self.cell.0.borrow().current.is_some()
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<T> {
        self.cell.0.borrow().current.clone()
    }

    /// Sets the value.
    pub fn update(&self, value: T) {
        let mut value_of = self.cell.0.borrow_mut();
        value_of.current = Some(value);
        value_of.is_changed = true;
    }

    /// Removes the value.
    pub fn clear(&self) {
        let mut value_of = self.cell.0.borrow_mut();
        value_of.current = None;
        value_of.is_changed = true;
    }
}

pub(super) struct ValueCell<T: Columns>(RefCell<Values<T>>);

impl<T: Columns> std::fmt::Debug for ValueCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ValueState")
    }
}

struct Values<T: Columns> {
    before: ByKey<Option<T>>,
    current: Option<T>,
    is_changed: bool,
    cleared: Vec<u8>,
    keys: Vec<u8>,
    put: RowsBuilder<T>,
}

impl<T: Columns> Default for ValueCell<T> {
    fn default() -> Self {
        Self(RefCell::new(Values {
            before: ByKey::default(),
            current: None,
            is_changed: false,
            cleared: Vec::new(),
            keys: Vec::new(),
            put: RowsBuilder::default(),
        }))
    }
}

impl<T: Columns> Variable for ValueCell<T> {
    fn load(&self, entries: &Entries) {
        self.0.borrow_mut().before = ByKey::new(&entries.key_of_entry, decoded::<T>(&entries.columns));
    }

    fn enter(&self, key: u32) {
        let values = &mut *self.0.borrow_mut();
        values.current = values.before.take(key).into_iter().flatten().next();
        values.is_changed = false;
    }

    fn leave(&self, key: u32, counts: bool) {
        let values = &mut *self.0.borrow_mut();
        let current = values.current.take();
        if !(counts && values.is_changed) {
            return;
        }
        match current {
            Some(value) => {
                values.keys.extend(key.to_le_bytes());
                values.put.push(value);
            }
            None => values.cleared.extend(key.to_le_bytes()),
        }
    }

    fn finish(&self) -> VariableChanges {
        let values = &mut *self.0.borrow_mut();
        let put = Entries {
            key_of_entry: std::mem::take(&mut values.keys),
            columns: std::mem::take(&mut values.put).finish(),
            ..Entries::default()
        };
        VariableChanges { cleared: std::mem::take(&mut values.cleared), put, ..VariableChanges::default() }
    }

    fn stored(&self) -> Box<dyn StoredVariable> {
        Box::new(Stored::<u8, T>::value())
    }
}
