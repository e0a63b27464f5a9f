//! What stored state means, and what the candidate says that it means.
//!
//! The families of both sides are compared column by column. Columns whose meaning is a plugin's are also compared by the
//! name that the author gave to it; where they differ, they are left to a migration.

use super::{Check, Verdict, VerdictFinding};
use crate::query::{QueryChange, families_of, state_changes};
use millstream_checkpoint::StatePin;
use millstream_operators::{PluginColumns, RowPart, StateFamily, StatePart};
use std::collections::BTreeMap;

/// A piece of state whose meaning changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeaningChange {
    /// The operator.
    pub(crate) uid: String,
    /// The family.
    pub(crate) family: String,
    /// What is stored.
    pub(crate) was: PluginColumns,
    /// What the candidate wants.
    pub(crate) is: PluginColumns,
}

/// What follows from comparing declarations.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// What cannot go on.
    pub(crate) findings: Vec<VerdictFinding>,
    /// What would have to be migrated.
    pub(crate) changes: Vec<MeaningChange>,
}

/// Compares what is stored with what the query with the candidate would keep. `plugin` is the one that is to be swapped.
pub(crate) fn compare(
    plugin: &str,
    stored: &BTreeMap<String, StatePin>,
    planned: &BTreeMap<String, StatePin>,
) -> Declared {
    let mut declared = Declared::default();
    let mut by_operator: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in state_changes(stored, planned) {
        match &change {
            QueryChange::State { uid, .. } | QueryChange::StateMeaning { uid, .. } => {
                by_operator.entry(uid.clone()).or_default().push(change.to_string());
            }
            _ => declared.findings.push(reject(change.to_string())),
        }
    }
    for (uid, texts) in by_operator {
        let forms = (stored.get(&uid).map(families_of), planned.get(&uid).map(families_of));
        let changes = match forms {
            (Some(Ok(was)), Some(Ok(is))) => {
                // Variables of a processor come and go; the families of everything else are what the operator is.
                let pins = stored.get(&uid).zip(planned.get(&uid));
                let may_come_and_go = pins.is_some_and(|(was, is)| was.schema_id == is.schema_id);
                meanings(plugin, &uid, (&was, &is), may_come_and_go)
            }
            _ => None,
        };
        match changes {
            Some(changes) if !changes.is_empty() => declared.changes.extend(changes),
            _ => declared.findings.extend(texts.into_iter().map(reject)),
        }
    }
    declared
}

/// The changes of meaning, when they are all that changes.
fn meanings(
    plugin: &str,
    uid: &str,
    (stored, planned): (&[StateFamily], &[StateFamily]),
    may_come_and_go: bool,
) -> Option<Vec<MeaningChange>> {
    if !may_come_and_go && stored.len() != planned.len() {
        return None;
    }
    let mut changes = Vec::new();
    for was in stored {
        let Some(is) = planned.iter().find(|is| is.name == was.name) else {
            if may_come_and_go {
                continue;
            }
            return None;
        };
        if was.key != is.key || was.value.len() != is.value.len() {
            return None;
        }
        for (old, new) in was.value.iter().zip(&is.value) {
            if old == new {
                continue;
            }
            let (StatePart::Row(old), StatePart::Row(new)) = (old, new) else { return None };
            if !same_rest(plugin, old, new) {
                return None;
            }
            let of_plugin = |columns: &&PluginColumns| columns.plugin == plugin;
            for (was_columns, is_columns) in
                old.plugins().iter().filter(of_plugin).zip(new.plugins().iter().filter(of_plugin))
            {
                if !same_columns(old, was_columns, new, is_columns) {
                    changes.push(MeaningChange {
                        uid: uid.to_owned(),
                        family: was.name.clone(),
                        was: was_columns.clone(),
                        is: is_columns.clone(),
                    });
                }
            }
        }
    }
    Some(changes)
}

/// Whether both rows have the same columns but those of the plugin, in the same places between them.
fn same_rest(plugin: &str, old: &RowPart, new: &RowPart) -> bool {
    let rest = |row: &RowPart| {
        let mut rest = Vec::new();
        let mut at = 0;
        for columns in row.plugins().iter().filter(|columns| columns.plugin == plugin) {
            rest.extend(types(row, at, columns.first.saturating_sub(at)));
            rest.push(format!("state {}", columns.state));
            at = columns.first + columns.count;
        }
        rest.extend(types(row, at, row.columns().len().saturating_sub(at)));
        rest
    };
    rest(old) == rest(new)
}

fn types(row: &RowPart, first: usize, count: usize) -> Vec<String> {
    row.columns().iter().skip(first).take(count).map(|field| field.data_type().to_string()).collect()
}

fn same_columns(old: &RowPart, was: &PluginColumns, new: &RowPart, is: &PluginColumns) -> bool {
    was.state_id == is.state_id && types(old, was.first, was.count) == types(new, is.first, is.count)
}

fn reject(what: String) -> VerdictFinding {
    VerdictFinding { verdict: Verdict::Reject, check: Check::Declaration, what }
}
