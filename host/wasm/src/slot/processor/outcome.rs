//! A guest's answer, checked, and the answers of the pieces of a call as one.

use crate::layout::encode::nulls;
use crate::processor::{Entries, KeyFault, Outcome, ProcessorSignature, Timers, VariableChanges, VariableSignature};
use crate::slot::columns::{decoded, joined as joined_column, row_errors};
use crate::wire::{self, processor as told};
use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;

/// The answer to a call with that many keys.
pub(super) fn checked(signature: &ProcessorSignature, answer: told::Outcome, keys: usize) -> Result<Outcome, String> {
    if answer.changes.len() != signature.variables.len() {
        let (has, wants) = (answer.changes.len(), signature.variables.len());
        return Err(format!("it changes {has} variables, and there are {wants}"));
    }
    let key_of_row = key_numbers("output rows", &answer.key_of_row)?;
    let mut changes = Vec::with_capacity(answer.changes.len());
    for (variable, answer) in signature.variables.iter().zip(answer.changes) {
        changes.push(changed(variable, answer).map_err(|reason| format!("variable `{}`: {reason}", variable.name))?);
    }
    let faults = row_errors(answer.key_errors, keys)?;
    let outcome = Outcome {
        rows: rows("output rows", &signature.output, answer.rows, key_of_row.len())?,
        key_of_row,
        changes,
        deleted: timers("deleted timers", &answer.deleted_timers)?,
        registered: timers("registered timers", &answer.registered_timers)?,
        faults: faults.into_iter().map(|(key, error)| KeyFault { key, error }).collect(),
    };
    outcome.check(signature, keys)?;
    Ok(outcome)
}

fn changed(variable: &VariableSignature, answer: told::VariableChanges) -> Result<VariableChanges, String> {
    let key_of_removed = key_numbers("removed entries", &answer.key_of_removed)?;
    let key_of_entry = key_numbers("entries", &answer.put.key_of_entry)?;
    let (removed, put) = (key_of_removed.len(), key_of_entry.len());
    Ok(VariableChanges {
        cleared: key_numbers("cleared keys", &answer.cleared)?,
        key_of_removed,
        removed: rows("removed map keys", &variable.map_key, answer.removed, removed)?,
        put: Entries {
            key_of_entry,
            map_keys: rows("map keys", &variable.map_key, answer.put.map_keys, put)?,
            columns: rows("entries", &variable.columns, answer.put.columns, put)?,
        },
    })
}

/// The columns of an answer; where none are described there are no rows.
fn rows(what: &str, fields: &[FieldRef], answer: wire::Batch, rows: usize) -> Result<Vec<ArrayRef>, String> {
    let wanted = if fields.is_empty() { 0 } else { rows };
    if answer.rows as usize != wanted {
        return Err(format!("{what}: {} rows instead of {wanted}", answer.rows));
    }
    decoded(fields, answer, wanted).map_err(|reason| format!("{what}: {reason}"))
}

fn key_numbers(what: &str, bytes: &[u8]) -> Result<Vec<u32>, String> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{what}: {} bytes are no numbers of keys", bytes.len()));
    }
    Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

fn timers(what: &str, timers: &told::Timers) -> Result<Timers, String> {
    let (due, rest) = timers.due_ms.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(format!("{what}: {} bytes are no times", timers.due_ms.len()));
    }
    let due_ms = due.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    Ok(Timers { key_of_timer: key_numbers(what, &timers.key_of_timer)?, due_ms })
}

/// An outcome in which nothing happens.
pub(super) fn nothing(signature: &ProcessorSignature) -> Outcome {
    let none = |fields: &[FieldRef]| fields.iter().map(|field| nulls(field.data_type(), 0)).collect::<Vec<_>>();
    let unchanged = |variable: &VariableSignature| VariableChanges {
        removed: none(&variable.map_key),
        put: Entries { key_of_entry: Vec::new(), map_keys: none(&variable.map_key), columns: none(&variable.columns) },
        ..VariableChanges::default()
    };
    let changes = signature.variables.iter().map(unchanged).collect();
    Outcome { rows: none(&signature.output), changes, ..Outcome::default() }
}

/// The outcomes of pieces, each with the number of its first key.
pub(super) fn joined(signature: &ProcessorSignature, mut pieces: Vec<(usize, Outcome)>) -> Result<Outcome, String> {
    match pieces.len() {
        0 => return Ok(nothing(signature)),
        1 => return Ok(pieces.swap_remove(0).1),
        _ => {}
    }
    let all = |of: &dyn Fn(&Outcome) -> &Vec<ArrayRef>, fields: &[FieldRef]| {
        let column = |(index, field): (usize, &FieldRef)| {
            let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|(_, piece)| of(piece).get(index)).collect();
            joined_column(field, &parts)
        };
        fields.iter().enumerate().map(column).collect::<Result<Vec<_>, String>>()
    };
    let mut joined = Outcome { rows: all(&|piece| &piece.rows, &signature.output)?, ..Outcome::default() };
    for (number, variable) in signature.variables.iter().enumerate() {
        joined.changes.push(VariableChanges {
            removed: all(&|piece| &piece.changes[number].removed, &variable.map_key)?,
            put: Entries {
                key_of_entry: Vec::new(),
                map_keys: all(&|piece| &piece.changes[number].put.map_keys, &variable.map_key)?,
                columns: all(&|piece| &piece.changes[number].put.columns, &variable.columns)?,
            },
            ..VariableChanges::default()
        });
    }
    for (first, piece) in pieces {
        let first = u32::try_from(first).map_err(|_| format!("{first} keys in one batch"))?;
        let shift = |keys: Vec<u32>| keys.into_iter().map(move |key| key + first);
        joined.key_of_row.extend(shift(piece.key_of_row));
        joined.deleted.append(piece.deleted, first);
        joined.registered.append(piece.registered, first);
        let faults = piece.faults.into_iter();
        joined.faults.extend(faults.map(|fault| KeyFault { key: fault.key + first, ..fault }));
        for (into, changes) in joined.changes.iter_mut().zip(piece.changes) {
            into.cleared.extend(shift(changes.cleared));
            into.key_of_removed.extend(shift(changes.key_of_removed));
            into.put.key_of_entry.extend(shift(changes.put.key_of_entry));
        }
    }
    Ok(joined)
}
