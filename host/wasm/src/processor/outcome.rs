//! What a call makes of its keys, and what must hold of it.
//!
//! A component's answer becomes an [`Outcome`] in two steps: its buffers are decoded into columns of the described types,
//! then [`Outcome::check`] looks at everything that names keys. Code of the host itself takes the second step too.

use super::invocation::{Entries, Timers};
use super::signature::{ProcessorSignature, VariableKind, VariableSignature, types};
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Fields;
use std::collections::BTreeSet;

/// Times of timers are kept in microseconds: what fits.
const DUE_MS: std::ops::Range<i64> = -(i64::MAX / 1000)..(i64::MAX / 1000);

/// One key that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFault {
    /// The key.
    pub key: u32,
    /// Why.
    pub error: String,
}

/// What becomes of one variable: it is cleared, then entries are removed, then entries are put.
#[derive(Debug, Clone, Default)]
pub struct VariableChanges {
    /// Keys that lose all their entries, ascending.
    pub cleared: Vec<u32>,
    /// For each map key to remove the key it belongs to, ascending.
    pub key_of_removed: Vec<u32>,
    /// The map keys to remove, for a map; no columns otherwise.
    pub removed: Vec<ArrayRef>,
    /// Entries to write: a value is replaced, a list gets them at its end, a map has them under their map keys.
    pub put: Entries,
}

/// What a call makes of its keys.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The columns of the output rows.
    pub rows: Vec<ArrayRef>,
    /// For each output row the key it belongs to, ascending.
    pub key_of_row: Vec<u32>,
    /// For each variable what changes.
    pub changes: Vec<VariableChanges>,
    /// Timers to delete; one that is not there is no error.
    pub deleted: Timers,
    /// Timers to register, after deletion; one that is there already is no error.
    pub registered: Timers,
    /// The keys at fault, ascending. They have no rows and no changes.
    pub faults: Vec<KeyFault>,
}

impl Outcome {
    /// Checks that it is an outcome of a call of that processor with that many keys.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, processor: &ProcessorSignature, keys: usize) -> Result<(), String> {
        ascending("output rows", &self.key_of_row, keys, false)?;
        columns("output rows", &self.rows, &processor.output, self.key_of_row.len())?;
        if self.changes.len() != processor.variables.len() {
            let (has, wants) = (self.changes.len(), processor.variables.len());
            return Err(format!("it changes {has} variables, and there are {wants}"));
        }
        for (variable, changes) in processor.variables.iter().zip(&self.changes) {
            check_changes(variable, changes, keys)
                .map_err(|reason| format!("variable `{}`: {reason}", variable.name))?;
        }
        timers("deleted timers", &self.deleted, keys)?;
        timers("registered timers", &self.registered, keys)?;
        if processor.time_mode == super::TimeMode::None && !self.registered.due_ms.is_empty() {
            return Err("it registers timers, and goes by no time".to_owned());
        }
        let failed: Vec<u32> = self.faults.iter().map(|fault| fault.key).collect();
        ascending("failed keys", &failed, keys, true)?;
        self.check_failed(&failed)
    }

    /// Keys that failed have nothing else.
    fn check_failed(&self, failed: &[u32]) -> Result<(), String> {
        if failed.is_empty() {
            return Ok(());
        }
        let failed: BTreeSet<u32> = failed.iter().copied().collect();
        let named = [&self.key_of_row, &self.deleted.key_of_timer, &self.registered.key_of_timer].into_iter();
        let changed = self
            .changes
            .iter()
            .flat_map(|changes| [&changes.cleared, &changes.key_of_removed, &changes.put.key_of_entry].into_iter());
        match named.chain(changed).flatten().find(|key| failed.contains(key)) {
            Some(key) => Err(format!("key {key} failed, but has rows or changes")),
            None => Ok(()),
        }
    }
}

fn check_changes(variable: &VariableSignature, changes: &VariableChanges, keys: usize) -> Result<(), String> {
    ascending("cleared keys", &changes.cleared, keys, true)?;
    ascending("removed entries", &changes.key_of_removed, keys, false)?;
    ascending("entries", &changes.put.key_of_entry, keys, variable.kind == VariableKind::Value)?;
    if variable.kind != VariableKind::Map && !changes.key_of_removed.is_empty() {
        return Err(format!("map keys are removed from a {}", variable.kind));
    }
    columns("removed map keys", &changes.removed, &variable.map_key, changes.key_of_removed.len())?;
    columns("map keys", &changes.put.map_keys, &variable.map_key, changes.put.key_of_entry.len())?;
    columns("entries", &changes.put.columns, &variable.columns, changes.put.key_of_entry.len())
}

/// Numbers of keys: ascending, of keys that there are, each once if it must be.
fn ascending(what: &str, of: &[u32], keys: usize, once: bool) -> Result<(), String> {
    if let Some(pair) = of.windows(2).find(|pair| pair[0] > pair[1] || (once && pair[0] == pair[1])) {
        return Err(format!("{what}: key {} comes after key {}", pair[1], pair[0]));
    }
    match of.last() {
        Some(last) if *last as usize >= keys => Err(format!("{what}: there is no key {last}, the call has {keys}")),
        _ => Ok(()),
    }
}

fn timers(what: &str, timers: &Timers, keys: usize) -> Result<(), String> {
    ascending(what, &timers.key_of_timer, keys, false)?;
    if timers.due_ms.len() != timers.key_of_timer.len() {
        return Err(format!("{what}: {} times for {} keys", timers.due_ms.len(), timers.key_of_timer.len()));
    }
    match timers.due_ms.iter().find(|due| !DUE_MS.contains(due)) {
        Some(due) => Err(format!("{what}: {due} ms is out of range")),
        None => Ok(()),
    }
}

fn columns(what: &str, columns: &[ArrayRef], fields: &Fields, rows: usize) -> Result<(), String> {
    let has: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
    if has != types(fields) {
        return Err(format!("{what}: the columns are {has:?}, and described are {:?}", types(fields)));
    }
    for (column, field) in columns.iter().zip(fields) {
        if column.len() != rows {
            return Err(format!("{what}: `{}` has {} rows, not {rows}", field.name(), column.len()));
        }
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(format!("{what}: nulls in `{}`, which has none by its description", field.name()));
        }
    }
    Ok(())
}
