//! Stored state on its way to other code: which steps lead there, and the keys that take them.
//!
//! ```text
//!   stored   f as `1` (x)  ──step──► f as `2` (x, y) ──step──► f as `3` (x, y, z)   wanted
//!                             └────── the shortest way over the steps of the candidate and of the running code
//!   every key of every affected family ──► new stores, empty at version N ──► files of version N+1 that nobody names yet
//! ```
//!
//! Beside the loop: a verdict runs it on a fork, a border runs it on the checkpoint, or takes over what was migrated
//! [beside the running query](Beside). Steps of the running code count, too, so that code which knows its past can also be
//! left for it.
//!
//! Rule of its life: all keys or none. The work is that of the state, whatever its history; steps are given nothing but
//! rows and keys. What is not a plugin's stays byte for byte.

mod beside;
mod hand;

pub(crate) use beside::{Beside, HandedOver, OpenStore};

use crate::inspect::manifests;
use crate::query::families_of;
use crate::{RuntimeError, offline_store};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use hand::Hand;
use millstream_checkpoint::{Checkpoint, CommitEntry, StatePin};
use millstream_common::OperatorUid;
use millstream_operators::{ColumnsChange, FamilyMigrator, OperatorError, StateFamily};
use millstream_state::{FamilySpec, LogStore, MemoryBudget, StateManifest, StateStore};
use millstream_wasm::{Component, PluginSlot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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
                let Some(is) = is else {
                    ways.extend(variable(&was).map(|name| format!("`{name}` of `{uid}` is gone")));
                    continue;
                };
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
            let known = families_of(old)?;
            let is_new = |family: &&StateFamily| !known.iter().any(|known| known.name == family.name);
            let new = families_of(new)?;
            ways.extend(
                new.iter().filter(is_new).filter_map(variable).map(|name| format!("`{name}` of `{uid}` is new")),
            );
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
            let families = affected(uid, (stored, wanted))?;
            let mut new = Vec::new();
            for (partition, manifest) in (0..).zip(&old) {
                new.push(match &families {
                    None => StateManifest { version: manifest.version + 1, ..manifest.clone() },
                    Some(families) => {
                        let place = Place { checkpoint: target, uid: &operator, partition, budget: &budget };
                        let mut store = place.open(&self.writer, &empty_at(manifest.version))?;
                        migrated.keys += self.fill(&place, families, manifest, &mut store)?;
                        store.prepare()?
                    }
                });
            }
            migrated.state.insert(uid.clone(), named(uid, &new)?);
        }
        Ok(migrated)
    }

    /// Takes all keys of a partition to an empty store; answers how many were made anew.
    fn fill(
        &self,
        place: &Place<'_>,
        families: &Families,
        manifest: &StateManifest,
        target: &mut LogStore,
    ) -> Result<u64, RuntimeError> {
        let mut source = place.open(&self.writer, manifest)?;
        let uid = place.uid.as_str();
        let mut keys = 0;
        for spec in source.families() {
            let id = source.family(&spec)?;
            let pair = match form(families, &spec) {
                Form::Stays(was, is) => (was, is),
                Form::Goes => continue,
                Form::Unknown => {
                    let mut count = 0_u64;
                    source.scan(id, &mut |_, _| count += 1)?;
                    match count {
                        // What a variable that is gone has left.
                        0 => continue,
                        _ => return Err(untold(uid, &spec)),
                    }
                }
            };
            let mut hand = Hand::try_new(self, uid, pair, &spec)?;
            let mut failure = None;
            source.scan(id, &mut |key, value| {
                if failure.is_none() {
                    failure = hand.take(key, value, target).err();
                }
            })?;
            match failure {
                Some(error) => return Err(error),
                None => hand.put_down(target)?,
            }
            keys += hand.migrated();
        }
        Ok(keys)
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
    checkpoint: &'a Checkpoint,
    uid: &'a OperatorUid,
    partition: u32,
    budget: &'a Arc<MemoryBudget>,
}

impl Place<'_> {
    fn open(&self, writer: &str, manifest: &StateManifest) -> Result<LogStore, RuntimeError> {
        Ok(offline_store::open(self.checkpoint, self.uid, self.partition, manifest, (writer, self.budget))?)
    }
}

/// The stored families of an operator, each with its wanted form; without one it goes.
type Families = Vec<(StateFamily, Option<StateFamily>)>;

/// What becomes of a family in a file.
enum Form<'a> {
    Stays(&'a StateFamily, &'a StateFamily),
    Goes,
    Unknown,
}

fn form<'a>(families: &'a Families, spec: &FamilySpec) -> Form<'a> {
    match families.iter().find(|(was, _)| was.name == spec.name && was.schema_id == spec.schema_id) {
        Some((was, Some(is))) => Form::Stays(was, is),
        Some((_, None)) => Form::Goes,
        None => Form::Unknown,
    }
}

/// The families of an operator whose state takes another form.
fn affected(uid: &str, (stored, wanted): Forms<'_>) -> Result<Option<Families>, RuntimeError> {
    match (stored.get(uid), wanted.get(uid)) {
        (Some(was), Some(is)) if is_affected(was, is) => {
            pairs(uid, was, is).map(Some).map_err(|reason| unknown(uid, reason))
        }
        _ => Ok(None),
    }
}

/// No files at all, at a version.
fn empty_at(version: u64) -> StateManifest {
    StateManifest { version, files: Vec::new() }
}

/// Files as a commit entry names them.
fn named(uid: &str, files: &[StateManifest]) -> Result<Vec<serde_json::Value>, RuntimeError> {
    let named: Result<Vec<_>, _> = files.iter().map(serde_json::to_value).collect();
    named.map_err(|error| unknown(uid, error))
}

fn untold(uid: &str, spec: &FamilySpec) -> RuntimeError {
    unknown(uid, format!("its files have a family `{}` that the checkpoint does not tell of", spec.name))
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

/// Whether any operator keeps something in another form, so that it has to be planned anew.
pub(crate) fn is_needed((stored, wanted): Forms<'_>) -> bool {
    stored.iter().any(|(uid, was)| wanted.get(uid).is_some_and(|is| is_affected(was, is)))
}

/// What is stored and would be gone, in words.
pub(crate) fn losses((stored, wanted): Forms<'_>) -> Vec<String> {
    let mut losses = Vec::new();
    for (uid, was) in stored {
        let Some(is) = wanted.get(uid).filter(|is| is_affected(was, is)) else { continue };
        for (family, _) in pairs(uid, was, is).unwrap_or_default().iter().filter(|(_, is)| is.is_none()) {
            losses
                .extend(variable(family).map(|name| format!("`{name}` of `{uid}` is gone, and what it holds with it")));
        }
    }
    losses
}

/// The name that people know a family by; none for one that only helps to find others.
fn variable(family: &StateFamily) -> Option<&str> {
    (!family.name.contains('.')).then_some(family.name.as_str())
}

/// Whether what an operator keeps takes another form. Names are not part of it.
fn is_affected(stored: &StatePin, wanted: &StatePin) -> bool {
    let ids = |pin: &StatePin| {
        let families = families_of(pin).unwrap_or_default();
        families.into_iter().map(|family| (family.name, family.schema_id)).collect::<BTreeMap<_, _>>()
    };
    stored.schema_id != wanted.schema_id || !stored.families.is_null() && ids(stored) != ids(wanted)
}

/// The stored and wanted forms of each family of an operator. Families come and go where the operator as a whole keeps the
/// same, as the variables of a processor do.
fn pairs(uid: &str, stored: &StatePin, wanted: &StatePin) -> Result<Families, String> {
    let of = |pin: &StatePin| families_of(pin).map_err(|reason| format!("the state of `{uid}`: {reason}"));
    let may_come_and_go = stored.schema_id == wanted.schema_id;
    let (stored, wanted) = (of(stored)?, of(wanted)?);
    let new = wanted.iter().find(|is| !stored.iter().any(|was| was.name == is.name));
    if let Some(new) = new.filter(|_| !may_come_and_go) {
        return Err(format!("the state of `{uid}` has a new family `{}`", new.name));
    }
    let mut pairs = Families::new();
    for was in stored {
        let is = wanted.iter().find(|is| is.name == was.name).cloned();
        if is.is_none() && !may_come_and_go {
            return Err(format!("the family `{}` of the state of `{uid}` is gone", was.name));
        }
        pairs.push((was, is));
    }
    Ok(pairs)
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
