//! Stored state on its way to other code: which steps lead there, and the keys that take them.
//!
//! ```text
//!   stored   f as `1` (x)  ──step──► f as `2` (x, y) ──step──► f as `3` (x, y, z)   wanted
//!                             └────── the shortest way over the steps of the candidate and of the running code
//!   every key of every affected family ──► new stores, empty at version N ──► files of version N+1 that nobody names yet
//! ```
//!
//! Beside the loop: a verdict runs it on a fork, a border runs it on the checkpoint. Steps of the running code count, too,
//! so that code which knows its past can also be left for it.
//!
//! Rule of its life: all keys or none. The work is that of the state, whatever its history; steps are given nothing but
//! rows and keys. What is not a plugin's stays byte for byte.

use crate::inspect::manifests;
use crate::query::families_of;
use crate::{RuntimeError, offline_store};
use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{DataType, FieldRef};
use millstream_checkpoint::{Checkpoint, CommitEntry, StatePin};
use millstream_common::OperatorUid;
use millstream_operators::{ColumnsChange, FamilyMigrator, FamilyReader, OperatorError, StateFamily};
use millstream_state::{ByteRows, FamilySpec, LogStore, MemoryBudget, StateManifest, StateStore};
use millstream_wasm::{Component, PluginSlot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Keys that are migrated at a time.
const KEYS_AT_A_TIME: usize = 16_384;
/// The most steps of a way.
const STEPS: usize = 32;

/// A step of one of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stride {
    component: usize,
    step: u32,
}

/// Steps and the code that has them.
pub(crate) struct Migration {
    slot: Arc<PluginSlot>,
    /// The candidate first, then the running code.
    components: Vec<Arc<Component>>,
    /// Makes names of files unique: the id of the run.
    writer: String,
}

/// State after a migration.
pub(crate) struct MigratedState {
    /// Per operator, as a commit entry names it.
    pub(crate) state: BTreeMap<String, Vec<serde_json::Value>>,
    /// Keys whose value was made anew.
    pub(crate) keys: u64,
}

/// Stored and wanted forms of the state, operator by operator.
pub(crate) type Forms<'a> = (&'a BTreeMap<String, StatePin>, &'a BTreeMap<String, StatePin>);

impl Migration {
    /// A migration to the first of the components, under the limits of `slot`.
    pub(crate) fn new(slot: Arc<PluginSlot>, components: Vec<Arc<Component>>, writer: String) -> Self {
        Self { slot, components, writer }
    }

    /// The ways that the state would take, in words; `Err` says where there is none.
    pub(crate) fn ways(&self, (stored, wanted): Forms<'_>) -> Result<Vec<String>, String> {
        let mut ways = Vec::new();
        for (uid, old) in stored {
            let Some(new) = wanted.get(uid).filter(|new| is_affected(old, new)) else { continue };
            for (was, is) in pairs(uid, old, new)? {
                let migrator = FamilyMigrator::try_new(&was, &is)
                    .map_err(|error| format!("the state of `{uid}`: {}", millstream_common::describe_chain(&error)))?;
                for change in migrator.changes() {
                    let way = self.way(change).ok_or_else(|| no_way(uid, change))?;
                    let (state, from, to) = (&change.was.state, &change.was.state_id, &change.is.state_id);
                    let steps = way.iter().map(|stride| format!("`{}`", self.step_of(*stride).to_id));
                    let steps = steps.collect::<Vec<_>>().join(", ");
                    let text = format!("`{state}` of `{uid}`: `{from}` to `{to}` by way of {steps}");
                    if !ways.contains(&text) {
                        ways.push(text);
                    }
                }
            }
        }
        Ok(ways)
    }

    fn step_of(&self, stride: Stride) -> &millstream_wasm::MigrationStep {
        &self.components[stride.component].migrations()[stride.step as usize]
    }

    /// The shortest way from what is stored to what is wanted.
    fn way(&self, change: &ColumnsChange) -> Option<Vec<Stride>> {
        type Meaning = (String, Vec<DataType>);
        let meaning = |id: &str, fields: &[FieldRef]| -> Meaning {
            (id.to_owned(), fields.iter().map(|field| field.data_type().clone()).collect())
        };
        let goal = meaning(&change.is.state_id, &change.is_fields);
        let start = meaning(&change.was.state_id, &change.was_fields);
        let mut seen = vec![start.clone()];
        let mut open = VecDeque::from([(start, Vec::new())]);
        while let Some((at, way)) = open.pop_front() {
            if at == goal {
                return Some(way);
            }
            for (component, code) in self.components.iter().enumerate() {
                for (step, told) in (0..).zip(code.migrations()) {
                    let next = meaning(&told.to_id, &told.to_columns);
                    let begins = told.state == change.was.state && meaning(&told.from_id, &told.from_columns) == at;
                    if begins && way.len() < STEPS && !seen.contains(&next) {
                        let mut way: Vec<Stride> = way.clone();
                        way.push(Stride { component, step });
                        seen.push(next.clone());
                        open.push_back((next, way));
                    }
                }
            }
        }
        None
    }

    /// Migrates the state of a commit; the files are in `target`, which may be a fork.
    ///
    /// # Errors
    /// When there is no way, keys cannot be migrated (some are named), or files cannot be read or written.
    pub(crate) fn run(
        &self,
        target: &Checkpoint,
        (stored, wanted): Forms<'_>,
        base: &CommitEntry,
    ) -> Result<MigratedState, RuntimeError> {
        let mut migrated = MigratedState { state: BTreeMap::new(), keys: 0 };
        let budget = offline_store::budget();
        for (uid, values) in &base.state {
            let old = manifests(base.batch, uid, values)?;
            let operator = OperatorUid::new(uid.as_str()).map_err(|error| unknown(uid, error))?;
            let families = match (stored.get(uid), wanted.get(uid)) {
                (Some(was), Some(is)) if is_affected(was, is) => {
                    pairs(uid, was, is).map_err(|reason| unknown(uid, reason))?
                }
                _ => Vec::new(),
            };
            let mut new = Vec::new();
            for (partition, manifest) in (0..).zip(&old) {
                new.push(match families.is_empty() {
                    true => StateManifest { version: manifest.version + 1, ..manifest.clone() },
                    false => {
                        let place = Place { target, uid: &operator, partition, budget: &budget };
                        self.partition(&place, &families, manifest, &mut migrated.keys)?
                    }
                });
            }
            let named: Result<Vec<_>, _> = new.iter().map(serde_json::to_value).collect();
            migrated.state.insert(uid.clone(), named.map_err(|error| unknown(uid, error))?);
        }
        Ok(migrated)
    }

    fn partition(
        &self,
        place: &Place<'_>,
        families: &[(StateFamily, StateFamily)],
        manifest: &StateManifest,
        keys: &mut u64,
    ) -> Result<StateManifest, RuntimeError> {
        let mut source = place.open(&self.writer, manifest)?;
        let mut target = place.open(&self.writer, &StateManifest { version: manifest.version, files: Vec::new() })?;
        for spec in source.families() {
            let known = families.iter().find(|(was, _)| was.name == spec.name && was.schema_id == spec.schema_id);
            let (was, is) = known.ok_or_else(|| {
                let reason = format!("its files have a family `{}` that the checkpoint does not tell of", spec.name);
                unknown(place.uid.as_str(), reason)
            })?;
            let misfit = |error: OperatorError| unknown(place.uid.as_str(), millstream_common::describe_chain(&error));
            let mut hand = Hand {
                migration: self,
                uid: place.uid.as_str(),
                migrator: FamilyMigrator::try_new(was, is).map_err(misfit)?,
                reader: FamilyReader::try_new(was).map_err(misfit)?,
                spec: FamilySpec { schema_id: is.schema_id.clone(), ..spec.clone() },
                target: &mut target,
                keys: ByteRows::new(),
                values: ByteRows::new(),
            };
            let id = source.family(&spec)?;
            let mut failure = None;
            let mut count = 0;
            source.scan(id, &mut |key, value| {
                if failure.is_some() {
                    return;
                }
                count += 1;
                hand.keys.push(key);
                hand.values.push(value);
                if hand.keys.len() == KEYS_AT_A_TIME {
                    failure = hand.put_down().err();
                }
            })?;
            match failure {
                Some(error) => return Err(error),
                None => hand.put_down()?,
            }
            if !hand.migrator.changes().is_empty() {
                *keys += count;
            }
        }
        Ok(target.prepare()?)
    }

    /// Takes columns along their way.
    fn convert(
        &self,
        uid: &str,
        change: &ColumnsChange,
        keys: &[ArrayRef],
        mut columns: Vec<ArrayRef>,
    ) -> Result<Vec<ArrayRef>, Fault> {
        let way = self.way(change).ok_or_else(|| Fault::Other(invalid(no_way(uid, change))))?;
        let rows = columns.first().map_or(0, |column| column.len());
        for stride in way {
            let component = &self.components[stride.component];
            let done = self.slot.migrate(component, stride.step, keys, &columns, rows);
            let done = done.map_err(|error| Fault::Other(error.into()))?;
            if !done.faults.is_empty() {
                let step = self.step_of(stride);
                let what = format!("`{}` of `{uid}` from `{}` to `{}`", step.state, step.from_id, step.to_id);
                let faults = done.faults.into_iter().map(|fault| (fault.row as usize, fault.error)).collect();
                return Err(Fault::Keys { what, faults });
            }
            columns = done.columns;
        }
        Ok(columns)
    }
}

/// Where a partition is.
struct Place<'a> {
    target: &'a Checkpoint,
    uid: &'a OperatorUid,
    partition: u32,
    budget: &'a Arc<MemoryBudget>,
}

impl Place<'_> {
    fn open(&self, writer: &str, manifest: &StateManifest) -> Result<LogStore, RuntimeError> {
        Ok(offline_store::open(self.target, self.uid, self.partition, manifest, (writer, self.budget))?)
    }
}

/// Why columns cannot be converted.
enum Fault {
    /// At some keys.
    Keys { what: String, faults: Vec<(usize, String)> },
    /// At none in particular.
    Other(RuntimeError),
}

impl From<OperatorError> for Fault {
    fn from(error: OperatorError) -> Self {
        Self::Other(invalid(format!("state cannot be migrated: {}", millstream_common::describe_chain(&error))))
    }
}

/// Some keys on their way.
struct Hand<'a> {
    migration: &'a Migration,
    uid: &'a str,
    migrator: FamilyMigrator,
    reader: FamilyReader,
    spec: FamilySpec,
    target: &'a mut LogStore,
    keys: ByteRows,
    values: ByteRows,
}

impl Hand<'_> {
    fn put_down(&mut self) -> Result<(), RuntimeError> {
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
        let family = self.target.family(&self.spec)?;
        self.target.put_many(family, &self.keys, &values)?;
        self.keys.clear();
        self.values.clear();
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

/// Whether what an operator keeps takes another form. Names are not part of it.
fn is_affected(stored: &StatePin, wanted: &StatePin) -> bool {
    let ids = |pin: &StatePin| {
        let families = families_of(pin).unwrap_or_default();
        families.into_iter().map(|family| (family.name, family.schema_id)).collect::<BTreeMap<_, _>>()
    };
    stored.schema_id != wanted.schema_id || !stored.families.is_null() && ids(stored) != ids(wanted)
}

/// The stored and wanted forms of each family of an operator.
fn pairs(uid: &str, stored: &StatePin, wanted: &StatePin) -> Result<Vec<(StateFamily, StateFamily)>, String> {
    let of = |pin: &StatePin| families_of(pin).map_err(|reason| format!("the state of `{uid}`: {reason}"));
    let (stored, wanted) = (of(stored)?, of(wanted)?);
    let mut pairs = Vec::new();
    for was in stored {
        let is = wanted.iter().find(|is| is.name == was.name);
        let is = is.ok_or_else(|| format!("the family `{}` of the state of `{uid}` is gone", was.name))?;
        pairs.push((was, is.clone()));
    }
    match wanted.iter().find(|is| !pairs.iter().any(|(was, _)| was.name == is.name)) {
        Some(new) => Err(format!("the state of `{uid}` has a new family `{}`", new.name)),
        None => Ok(pairs),
    }
}

fn no_way(uid: &str, change: &ColumnsChange) -> String {
    let (state, from, to) = (&change.was.state, &change.was.state_id, &change.is.state_id);
    let columns = |fields: &[FieldRef]| {
        fields.iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect::<Vec<_>>().join(", ")
    };
    format!(
        "the state `{state}` of `{uid}` is stored as `{from}` ({}) and wanted as `{to}` ({}), and no migration leads there",
        columns(&change.was_fields),
        columns(&change.is_fields)
    )
}

fn invalid(reason: String) -> RuntimeError {
    RuntimeError::Invalid { reason, hint: None }
}

fn unknown(uid: &str, reason: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::UnknownState { uid: uid.to_owned(), action: "migrated", reason: reason.to_string() }
}
