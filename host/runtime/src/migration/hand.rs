//! Keys of one family on their way to their new form, some thousands at a time.

use super::{Fault, Migration, invalid, unknown};
use crate::RuntimeError;
use arrow::array::{ArrayRef, RecordBatch, StructArray};
use millstream_operators::{ColumnsChange, FamilyMigrator, FamilyReader, OperatorError, StateFamily};
use millstream_state::{ByteRows, FamilySpec, LogStore, StateStore};

/// Keys that are migrated at a time.
const KEYS_AT_A_TIME: usize = 16_384;

/// Takes the keys of one family to a store that keeps the new form.
pub(super) struct Hand<'a> {
    migration: &'a Migration,
    uid: &'a str,
    migrator: FamilyMigrator,
    reader: FamilyReader,
    spec: FamilySpec,
    keys: ByteRows,
    values: ByteRows,
    taken: u64,
}

impl<'a> Hand<'a> {
    /// From the family as it was, which lies as `spec` says, to what it is to be.
    pub(super) fn try_new(
        migration: &'a Migration,
        uid: &'a str,
        (was, is): (&StateFamily, &StateFamily),
        spec: &FamilySpec,
    ) -> Result<Self, RuntimeError> {
        let misfit = |error: OperatorError| unknown(uid, millstream_common::describe_chain(&error));
        Ok(Self {
            migration,
            uid,
            migrator: FamilyMigrator::try_new(was, is).map_err(misfit)?,
            reader: FamilyReader::try_new(was).map_err(misfit)?,
            spec: FamilySpec { schema_id: is.schema_id.clone(), ..spec.clone() },
            keys: ByteRows::new(),
            values: ByteRows::new(),
            taken: 0,
        })
    }

    /// Keys whose value was made anew.
    pub(super) fn migrated(&self) -> u64 {
        if self.migrator.changes().is_empty() { 0 } else { self.taken }
    }

    /// Takes a key.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8], target: &mut LogStore) -> Result<(), RuntimeError> {
        self.keys.push(key);
        self.values.push(value);
        self.taken += 1;
        if self.keys.len() < KEYS_AT_A_TIME { Ok(()) } else { self.put_down(target) }
    }

    /// Puts what was taken into the store.
    pub(super) fn put_down(&mut self, target: &mut LogStore) -> Result<(), RuntimeError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let (migration, uid) = (self.migration, self.uid);
        let mut convert = |change: &ColumnsChange, keys: &[ArrayRef], columns: Vec<ArrayRef>| {
            migration.convert(uid, change, keys, columns)
        };
        let values = match self.migrator.migrate(&self.keys, &self.values, &mut convert) {
            Ok(values) => values,
            Err(Fault::Other(error)) => return Err(error),
            Err(Fault::Keys { what, faults }) => return Err(self.name(&what, &faults)),
        };
        let family = target.family(&self.spec)?;
        target.put_many(family, &self.keys, &values)?;
        self.keys.clear();
        self.values.clear();
        Ok(())
    }

    /// Removes keys, after what was taken before.
    pub(super) fn delete(&mut self, keys: &ByteRows, target: &mut LogStore) -> Result<(), RuntimeError> {
        self.put_down(target)?;
        let family = target.family(&self.spec)?;
        Ok(target.delete_many(family, keys)?)
    }

    /// Removes all keys with a prefix up to this one, after what was taken before.
    pub(super) fn delete_through(&mut self, through: u64, target: &mut LogStore) -> Result<(), RuntimeError> {
        self.put_down(target)?;
        let family = target.family(&self.spec)?;
        target.delete_through(family, through)?;
        Ok(())
    }

    /// The keys at fault, in words.
    fn name(&self, what: &str, faults: &[(usize, String)]) -> RuntimeError {
        let mut keys = ByteRows::new();
        faults.iter().filter(|(row, _)| *row < self.keys.len()).for_each(|(row, _)| keys.push(self.keys.row(*row)));
        let shown = match self.reader.read(&keys, &ByteRows::new()) {
            Ok((columns, _)) => shown(&columns),
            Err(_) => Vec::new(),
        };
        let named = faults.iter().enumerate().map(|(index, (_, error))| match shown.get(index) {
            Some(key) => format!("key {key}: {error}"),
            None => error.clone(),
        });
        invalid(format!("state {what} cannot be migrated at {}", named.collect::<Vec<_>>().join("; ")))
    }
}

/// Rows as JSON, one by one.
fn shown(columns: &StructArray) -> Vec<String> {
    let rows = RecordBatch::from(columns.clone());
    let bytes = millstream_sink::Export::Json.bytes(&rows.schema(), std::slice::from_ref(&rows));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()).unwrap_or_default()
}
