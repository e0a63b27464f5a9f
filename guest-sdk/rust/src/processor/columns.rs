//! Types whose values are rows of columns: what keys, rows and state are made of.

use crate::argument::{Argument, Column};
use crate::buffers::Reader;
use crate::call::Batch;
use crate::schema::{Field, Schema};
use crate::value::Value;

/// A type that a key, a row or an entry of state can have: everything that owns what is in it. A struct that derives
/// [`Row`](crate::Row) has its fields as columns, every other type is one column.
pub trait Columns: Value + for<'a> Argument<'a> + Clone + 'static {}

impl<T: Value + for<'a> Argument<'a> + Clone + 'static> Columns for T {}

/// There are no initial rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoInitial;

/// No column.
#[derive(Debug)]
pub struct NoColumn;

impl Column for NoColumn {
    fn is_valid(&self, _row: usize) -> bool {
        true
    }
}

impl Argument<'_> for NoInitial {
    type Column = NoColumn;
    fn describe(_name: &str, _nullable: bool, _schema: &mut Schema) {}
    fn open(_reader: &mut Reader<'_>) -> NoColumn {
        NoColumn
    }
    fn get(_column: &NoColumn, _row: usize) -> Option<Self> {
        Some(Self)
    }
}

impl Value for NoInitial {
    type Builder = ();
    fn describe(_name: &str, _nullable: bool, _schema: &mut Schema) {}
    fn append(self, (): &mut ()) {}
    fn append_null((): &mut ()) {}
    fn finish((): (), _buffers: &mut Vec<Vec<u8>>) {}
}

/// The columns of a type whose single column would have that name.
pub(crate) fn described<T: Columns>(name: &str) -> Vec<Field> {
    let mut schema = Schema::default();
    <T as Value>::describe_columns(name, &mut schema);
    schema.fields
}

/// The rows of a batch, as far as they are what the type takes.
pub(crate) fn decoded<T: Columns>(batch: &Batch) -> Vec<Option<T>> {
    let column = <T as Argument<'_>>::open_columns(&mut batch.reader());
    (0..batch.rows as usize).map(|row| <T as Argument<'_>>::get(&column, row)).collect()
}

/// Rows under construction.
pub(crate) struct RowsBuilder<T: Columns> {
    rows: u32,
    builder: T::Builder,
}

impl<T: Columns> Default for RowsBuilder<T> {
    fn default() -> Self {
        Self { rows: 0, builder: T::Builder::default() }
    }
}

impl<T: Columns> RowsBuilder<T> {
    pub(crate) fn push(&mut self, row: T) {
        row.append(&mut self.builder);
        self.rows += 1;
    }

    pub(crate) fn finish(self) -> Batch {
        let mut buffers = Vec::new();
        T::finish_columns(self.builder, &mut buffers);
        Batch { rows: self.rows, buffers }
    }
}

impl<T: Columns> FromIterator<T> for RowsBuilder<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut builder = Self::default();
        rows.into_iter().for_each(|row| builder.push(row));
        builder
    }
}
