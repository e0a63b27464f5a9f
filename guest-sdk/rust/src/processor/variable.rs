//! State variables: how they are declared, and what the loop over the keys does with them.

use super::Columns;
use super::list::{ListCell, ListState};
use super::map::{MapCell, MapState};
use super::tester::StoredVariable;
use super::value::{ValueCell, ValueState};
use super::wire::{Entries, VariableChanges};
use crate::schema::Field;
use std::rc::Rc;
use std::time::Duration;

/// What a variable holds for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// One row or none.
    Value,
    /// Rows in order.
    List,
    /// Rows under map keys.
    Map,
}

/// A variable as it is described to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableType {
    /// The name.
    pub name: String,
    /// What it holds.
    pub kind: VariableKind,
    /// The columns of a map's keys.
    pub map_key: Vec<Field>,
    /// The columns of its rows.
    pub columns: Vec<Field>,
    /// What the columns mean.
    pub state_id: String,
    /// How long entries live.
    pub ttl_ms: Option<u64>,
}

/// How a variable is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableOptions {
    state_id: String,
    ttl_ms: Option<u64>,
}

impl Default for VariableOptions {
    fn default() -> Self {
        Self { state_id: "1".into(), ttl_ms: None }
    }
}

impl VariableOptions {
    /// The name for what the columns mean: another one when they mean something else, also where their types are the same.
    /// The default is `1`.
    pub fn state_id(self, state_id: &str) -> Self {
        Self { state_id: state_id.to_owned(), ..self }
    }

    /// How long an entry lives after it was last written, in processing time.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl_ms: Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)), ..self }
    }
}

/// Where a processor declares its state.
#[derive(Default)]
pub struct Handle {
    pub(super) variables: Vec<(VariableType, Rc<dyn Variable>)>,
}

impl Handle {
    /// A variable that holds one value or none.
    pub fn value<T: Columns>(&mut self, name: &str) -> ValueState<T> {
        self.value_with(name, VariableOptions::default())
    }

    /// As [`value`](Self::value), kept as the options say.
    pub fn value_with<T: Columns>(&mut self, name: &str, options: VariableOptions) -> ValueState<T> {
        let cell = Rc::new(ValueCell::<T>::default());
        self.add((name, VariableKind::Value), (Vec::new(), columns::<T>()), options, Rc::<ValueCell<T>>::clone(&cell));
        ValueState::new(cell)
    }

    /// A variable that holds values in the order in which they were appended.
    pub fn list<T: Columns>(&mut self, name: &str) -> ListState<T> {
        self.list_with(name, VariableOptions::default())
    }

    /// As [`list`](Self::list), kept as the options say.
    pub fn list_with<T: Columns>(&mut self, name: &str, options: VariableOptions) -> ListState<T> {
        let cell = Rc::new(ListCell::<T>::default());
        self.add((name, VariableKind::List), (Vec::new(), columns::<T>()), options, Rc::<ListCell<T>>::clone(&cell));
        ListState::new(cell)
    }

    /// A variable that holds values under keys of their own.
    pub fn map<K: Columns + Ord, V: Columns>(&mut self, name: &str) -> MapState<K, V> {
        self.map_with(name, VariableOptions::default())
    }

    /// As [`map`](Self::map), kept as the options say.
    pub fn map_with<K: Columns + Ord, V: Columns>(&mut self, name: &str, options: VariableOptions) -> MapState<K, V> {
        let cell = Rc::new(MapCell::<K, V>::default());
        let described = (super::columns::described::<K>("key"), columns::<V>());
        self.add((name, VariableKind::Map), described, options, Rc::<MapCell<K, V>>::clone(&cell));
        MapState::new(cell)
    }

    fn add(
        &mut self,
        (name, kind): (&str, VariableKind),
        (map_key, columns): (Vec<Field>, Vec<Field>),
        options: VariableOptions,
        cell: Rc<dyn Variable>,
    ) {
        let VariableOptions { state_id, ttl_ms } = options;
        self.variables.push((VariableType { name: name.to_owned(), kind, map_key, columns, state_id, ttl_ms }, cell));
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(described, _)| described)).finish()
    }
}

fn columns<T: Columns>() -> Vec<Field> {
    super::columns::described::<T>("value")
}

/// A variable in the loop over the keys of a call.
pub(super) trait Variable {
    /// The call begins: what its keys hold.
    fn load(&self, entries: &Entries);
    /// A key's turn; keys come in ascending order.
    fn enter(&self, key: u32);
    /// The key's turn ends; its changes count, or not.
    fn leave(&self, key: u32, counts: bool);
    /// The call ends: what changed.
    fn finish(&self) -> VariableChanges;
    /// A place for its rows in tests.
    fn stored(&self) -> Box<dyn StoredVariable>;
}
