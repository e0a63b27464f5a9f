//! Makes the values of one form of a family values of another, where only columns differ whose meaning is a plugin's.
//!
//! ```text
//!   stored   [fixed] row: a b | state of f, id 1: x y  | c [fixed]
//!   wanted   [fixed] row: a b | state of f, id 2: x y z| c [fixed]
//!                         └─ as they are ─┘   └─ by the plugin's own steps
//! ```
//! It calls no plugin: whoever asks hands over what turns the old columns into the new ones.

use super::reader::{FamilyReader, Parts, operator};
use super::{PluginColumns, RowPart, StateFamily, StatePart};
use crate::OperatorError;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use millstream_state::ByteRows;
use std::sync::Arc;

/// Columns whose meaning changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnsChange {
    /// As they are stored.
    pub was: PluginColumns,
    /// Their fields.
    pub was_fields: Vec<FieldRef>,
    /// As they are wanted.
    pub is: PluginColumns,
    /// Their fields.
    pub is_fields: Vec<FieldRef>,
}

/// Where the columns of a wanted row come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A stored column, as it is.
    Stored(usize),
    /// All columns of a change.
    Change(usize),
}

/// Migrates the values of one family.
pub struct FamilyMigrator {
    name: String,
    reader: FamilyReader,
    stored: Parts,
    wanted: Parts,
    changes: Vec<ColumnsChange>,
    origins: Vec<Origin>,
}

/// Makes new columns of stored ones: what changes, the columns of the keys, the stored columns.
pub type Convert<'a, E> = dyn FnMut(&ColumnsChange, &[ArrayRef], Vec<ArrayRef>) -> Result<Vec<ArrayRef>, E> + 'a;

impl FamilyMigrator {
    /// From what is stored to what is wanted.
    ///
    /// # Errors
    /// When something else differs than columns of plugins, or a form or type is not known.
    pub fn try_new(stored: &StateFamily, wanted: &StateFamily) -> Result<Self, OperatorError> {
        let misfit = |reason: String| OperatorError::Misfit { operator: operator(&stored.name), reason };
        if stored.key != wanted.key || stored.value.len() != wanted.value.len() {
            return Err(misfit("its keys or parts are others".into()));
        }
        let (mut changes, mut origins) = (Vec::new(), Vec::new());
        for (was, is) in stored.value.iter().zip(&wanted.value) {
            match (was, is) {
                (StatePart::Row(was), StatePart::Row(is)) => {
                    (changes, origins) = compare(was, is).map_err(misfit)?;
                }
                _ if was == is => {}
                _ => return Err(misfit("its parts are others".into())),
            }
        }
        let parts = |family: &StateFamily| Parts::try_new(&family.value).map_err(misfit);
        Ok(Self {
            name: stored.name.clone(),
            reader: FamilyReader::try_new(stored)?,
            stored: parts(stored)?,
            wanted: parts(wanted)?,
            changes,
            origins,
        })
    }

    /// What changes; nothing when values stay as they are.
    pub fn changes(&self) -> &[ColumnsChange] {
        &self.changes
    }

    /// The values in their wanted form. `convert` makes the new columns of a change from its old ones; it gets the columns
    /// of the keys, too.
    ///
    /// # Errors
    /// When bytes are not of the stored form, what `convert` gives does not fit, or it fails.
    pub fn migrate<E: From<OperatorError>>(
        &self,
        keys: &ByteRows,
        values: &ByteRows,
        convert: &mut Convert<'_, E>,
    ) -> Result<ByteRows, E> {
        if self.changes.is_empty() {
            return Ok(values.clone());
        }
        let unreadable = |source: ArrowError| OperatorError::StateRow { operator: operator(&self.name), source };
        let (key_columns, _) = self.reader.read(keys, &ByteRows::new())?;
        let key_columns: Vec<ArrayRef> = key_columns.columns().to_vec();
        let (stored, wanted) = (self.stored.row(), self.wanted.row());
        let (Some((stored, old_codec)), Some((_, new_codec))) = (stored, wanted) else {
            return Err(OperatorError::Misfit {
                operator: operator(&self.name),
                reason: "it has no row whose columns could change".into(),
            }
            .into());
        };
        self.stored.check(values).map_err(unreadable)?;
        let columns = old_codec.decode(values.iter().map(|value| stored.cut(value))).map_err(unreadable)?;
        let mut all = Vec::new();
        for origin in &self.origins {
            match origin {
                Origin::Stored(index) => all.push(Arc::clone(&columns[*index])),
                Origin::Change(index) => {
                    let change = &self.changes[*index];
                    let of_change = columns[change.was.first..change.was.first + change.was.count].to_vec();
                    all.extend(convert(change, &key_columns, of_change)?);
                }
            }
        }
        if let Some(column) = all.iter().find(|column| column.len() != values.len()) {
            let reason = format!("a migrated column has {} rows instead of {}", column.len(), values.len());
            return Err(OperatorError::Misfit { operator: operator(&self.name), reason }.into());
        }
        let encoded = new_codec.conform(all).and_then(|columns| new_codec.encode(&columns)).map_err(unreadable)?;
        let mut migrated = ByteRows::with_capacity(values.len(), values.len() * 32);
        for (row, value) in values.iter().enumerate() {
            let (before, after) = stored.around(value);
            migrated.push_parts(&[before, encoded.row(row), after]);
        }
        Ok(migrated)
    }
}

/// The changes between two rows, and where each wanted column comes from.
fn compare(was: &RowPart, is: &RowPart) -> Result<(Vec<ColumnsChange>, Vec<Origin>), String> {
    let other = || "other columns than those of the plugin differ".to_owned();
    if was.plugins.len() != is.plugins.len() {
        return Err(other());
    }
    let (mut changes, mut origins) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (0, 0);
    let types = |row: &RowPart, first: usize, count: usize| -> Vec<DataType> {
        row.columns.iter().skip(first).take(count).map(|field| field.data_type().clone()).collect()
    };
    for (before, after) in was.plugins.iter().zip(&is.plugins) {
        let (rest, other_rest) = (before.first.checked_sub(old), after.first.checked_sub(new));
        let rest = rest.filter(|rest| Some(*rest) == other_rest).ok_or_else(other)?;
        if types(was, old, rest) != types(is, new, rest) || before.plugin != after.plugin || before.state != after.state
        {
            return Err(other());
        }
        if before.first + before.count > was.columns.len() || after.first + after.count > is.columns.len() {
            return Err("columns of a plugin lie outside of the row".to_owned());
        }
        origins.extend((old..old + rest).map(Origin::Stored));
        let is_same = before.state_id == after.state_id
            && types(was, before.first, before.count) == types(is, after.first, after.count);
        if is_same {
            origins.extend((before.first..before.first + before.count).map(Origin::Stored));
        } else {
            let fields = |row: &RowPart, columns: &PluginColumns| -> Vec<FieldRef> {
                row.columns.iter().skip(columns.first).take(columns.count).cloned().collect()
            };
            origins.push(Origin::Change(changes.len()));
            changes.push(ColumnsChange {
                was: before.clone(),
                was_fields: fields(was, before),
                is: after.clone(),
                is_fields: fields(is, after),
            });
        }
        (old, new) = (before.first + before.count, after.first + after.count);
    }
    if types(was, old, usize::MAX) != types(is, new, usize::MAX) {
        return Err(other());
    }
    origins.extend((old..was.columns.len()).map(Origin::Stored));
    Ok((changes, origins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_codec::RowCodec;
    use arrow::array::{Float64Array, Int64Array};
    use arrow::compute::cast;
    use arrow::datatypes::Field;

    fn family(id: &str, state: &[DataType]) -> StateFamily {
        let field = |name: &str, kind: &DataType| Arc::new(Field::new(name, kind.clone(), true));
        let mut columns = vec![field("n", &DataType::Int64)];
        columns.extend(state.iter().map(|kind| field("s", kind)));
        columns.push(field("m", &DataType::Int64));
        let plugin =
            PluginColumns { plugin: "p".into(), state: "f".into(), state_id: id.into(), first: 1, count: state.len() };
        StateFamily {
            name: "groups".into(),
            schema_id: id.into(),
            key: vec![StatePart::row(vec![field("k", &DataType::Int64)])],
            value: vec![StatePart::U64("before".into()), StatePart::row_of_plugins(columns, vec![plugin])],
        }
    }

    fn encoded(columns: &[ArrayRef], prefix: &[u8]) -> ByteRows {
        let types = columns.iter().map(|column| column.data_type().clone()).collect();
        let rows = RowCodec::try_new(types).unwrap().encode(columns).unwrap();
        let mut bytes = ByteRows::new();
        (0..columns[0].len()).for_each(|row| bytes.push_parts(&[prefix, rows.row(row)]));
        bytes
    }

    fn numbers(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn only_the_columns_of_the_plugin_are_made_anew() {
        let (old, new) = (family("1", &[DataType::Int64]), family("2", &[DataType::Float64, DataType::Int64]));
        let migrator = FamilyMigrator::try_new(&old, &new).unwrap();
        assert_eq!(migrator.changes().len(), 1);
        let keys = encoded(&[numbers(&[7, 8])], &[]);
        let values = encoded(&[numbers(&[1, 2]), numbers(&[10, 20]), numbers(&[5, 6])], &[9; 8]);
        let mut convert = |change: &ColumnsChange, keys: &[ArrayRef], columns: Vec<ArrayRef>| {
            assert_eq!((change.was.state_id.as_str(), change.is.state_id.as_str()), ("1", "2"));
            Ok::<_, OperatorError>(vec![cast(&columns[0], &DataType::Float64).unwrap(), Arc::clone(&keys[0])])
        };
        let migrated = migrator.migrate(&keys, &values, &mut convert).unwrap();
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![10.0, 20.0]));
        let wanted = encoded(&[numbers(&[1, 2]), floats, numbers(&[7, 8]), numbers(&[5, 6])], &[9; 8]);
        assert_eq!(migrated.iter().collect::<Vec<_>>(), wanted.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_the_plugins_must_stay() {
        let old = family("1", &[DataType::Int64]);
        let mut new = family("2", &[DataType::Int64]);
        new.key = vec![StatePart::row(vec![Arc::new(Field::new("k", DataType::Utf8, true))])];
        assert!(FamilyMigrator::try_new(&old, &new).is_err());
        let mut new = family("2", &[DataType::Int64]);
        new.value[0] = StatePart::U32("before".into());
        assert!(FamilyMigrator::try_new(&old, &new).is_err());
        assert!(FamilyMigrator::try_new(&old, &family("1", &[DataType::Int64])).unwrap().changes().is_empty());
    }
}
