//! State that is migrated while the query runs on: the border then only takes up what has changed since.
//!
//! ```text
//!   query       N ── N+1 ── N+2 ── … ── M ─┤ border ├─ M+2
//!   beside      all keys of N ─► new stores │ changes of N+1 … M │ stores are handed over
//!                                └── again, until little is left ─┘
//! ```
//! The changes are read from the changelogs of the batches, so the running code does nothing for it. What comes of it is
//! the same as if all keys had been migrated at the border, for a value is a function of its key and old value.
//!
//! Rule of its life: its files are named by nobody before the border is defined; whatever goes wrong, it is dropped and the
//! query has noticed nothing. It costs the memory of the state a second time for as long as it lasts.

use super::{
    Families, Form, Forms, Hand, MigratedState, Migration, Place, affected, empty_at, form, named, unknown, untold,
};
use crate::inspect::manifests;
use crate::{RuntimeError, offline_store};
use millstream_checkpoint::{Checkpoint, CommitEntry, StatePin};
use millstream_common::{BatchId, OperatorUid};
use millstream_operators::StateOpener;
use millstream_state::{
    ByteRows, FamilySpec, LogStore, StateChange, StateError, StateFileKind, StateManifest, StateStore, visit_changes,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How often what has changed meanwhile is taken up before the border.
const ROUNDS: u32 = 8;
/// So few batches are left to the border.
const FEW: u64 = 2;

/// Opens an empty store as the run opens its own.
pub(crate) type OpenStore<'a> = dyn Fn(&OperatorUid, u32, &StateManifest) -> Result<LogStore, StateError> + 'a;

/// State in its new form, and how far it has come.
pub(crate) struct Beside {
    migration: Migration,
    stored: BTreeMap<String, StatePin>,
    wanted: BTreeMap<String, StatePin>,
    /// The batch that it began with, and the last one that it has.
    base: BatchId,
    upto: BatchId,
    operators: BTreeMap<OperatorUid, (Families, Vec<LogStore>)>,
    keys: u64,
}

impl Beside {
    /// Migrates the state of a commit and what batches change meanwhile.
    ///
    /// # Errors
    /// As when a state is migrated, and when files go meanwhile that are needed.
    pub(crate) fn begin(
        migration: Migration,
        (stored, wanted): Forms<'_>,
        checkpoint: &Checkpoint,
        base: &CommitEntry,
        open: &OpenStore<'_>,
    ) -> Result<Self, RuntimeError> {
        let (mut operators, mut keys) = (BTreeMap::new(), 0);
        let budget = offline_store::budget();
        for (uid, values) in &base.state {
            let Some(families) = affected(uid, (stored, wanted))? else { continue };
            let operator = OperatorUid::new(uid.as_str()).map_err(|error| unknown(uid, error))?;
            let mut stores = Vec::new();
            for (partition, manifest) in (0..).zip(&manifests(base.batch, uid, values)?) {
                let place = Place { checkpoint, uid: &operator, partition, budget: &budget };
                // Its first file leads to the version that it was made from.
                let mut store = open(&operator, partition, &empty_at(manifest.version.saturating_sub(1)))?;
                keys += migration.fill(&place, &families, manifest, &mut store)?;
                store.prepare()?;
                store.commit();
                stores.push(store);
            }
            operators.insert(operator, (families, stores));
        }
        let (stored, wanted) = (stored.clone(), wanted.clone());
        let mut beside = Self { migration, stored, wanted, base: base.batch, upto: base.batch, operators, keys };
        for _ in 0..ROUNDS {
            let Some(newest) = checkpoint.commit_log().batches()?.last().copied() else { break };
            if newest.0 < beside.upto.0 + FEW {
                break;
            }
            beside.catch_up(checkpoint, newest, false)?;
        }
        Ok(beside)
    }

    /// Whether it leads from these forms to those, and what it began with is still kept.
    pub(crate) fn fits(&self, (stored, wanted): Forms<'_>, oldest: BatchId) -> bool {
        (&self.stored, &self.wanted) == (stored, wanted) && oldest <= self.base
    }

    /// Takes up what the batches up to `to` have changed; the files lead to the version of that batch, at the border to the
    /// one after it.
    fn catch_up(&mut self, checkpoint: &Checkpoint, to: BatchId, at_border: bool) -> Result<(), RuntimeError> {
        let mut commits = Vec::new();
        for number in self.upto.0 + 1..=to.0 {
            let batch = BatchId(number);
            let (entry, commit) = (checkpoint.offset_log().get(batch)?, checkpoint.commit_log().get(batch)?);
            let Some((entry, commit)) = entry.zip(commit) else { return Err(gone(batch)) };
            if entry.is_of_state_only() || *entry.state_schemas != self.stored {
                return Err(gone(batch));
            }
            commits.push(commit);
        }
        for (uid, (families, stores)) in &mut self.operators {
            for (partition, store) in (0..).zip(stores) {
                let files = checkpoint.state_files(uid, partition);
                let of = |commit: &CommitEntry| -> Result<StateManifest, RuntimeError> {
                    let values = commit.state.get(uid.as_str()).map(Vec::as_slice).unwrap_or_default();
                    let mut all = manifests(commit.batch, uid.as_str(), values)?;
                    let index = partition as usize;
                    if index < all.len() { Ok(all.swap_remove(index)) } else { Err(gone(commit.batch)) }
                };
                let mut follower = Follower::new(&self.migration, uid.as_str(), families);
                let mut version = store.version();
                let mut changes = Vec::new();
                for commit in &commits {
                    let manifest = of(commit)?;
                    let is_its_own = |file: &&millstream_state::StateFile| {
                        file.kind == StateFileKind::Changelog && file.version == manifest.version
                    };
                    changes.extend(manifest.files.iter().find(is_its_own).cloned());
                    version = manifest.version;
                }
                let reached = if at_border { version } else { version.saturating_sub(1) };
                store.skip_to(reached.max(store.version()));
                for file in &changes {
                    follower.follow(&files, file, store)?;
                }
                self.keys += follower.end(store)?;
                if at_border || !changes.is_empty() {
                    store.prepare()?;
                    store.commit();
                }
            }
        }
        self.upto = to;
        Ok(())
    }

    /// At the border after batch `last`: the rest, the files, and the stores that have them open.
    pub(crate) fn finish(
        mut self,
        checkpoint: &Checkpoint,
        last: &CommitEntry,
    ) -> Result<(MigratedState, HandedOver), RuntimeError> {
        self.catch_up(checkpoint, last.batch, true)?;
        let mut state = BTreeMap::new();
        let mut handed = BTreeMap::new();
        for (uid, values) in &last.state {
            let operator = OperatorUid::new(uid.as_str()).map_err(|error| unknown(uid, error))?;
            let files = match self.operators.remove(&operator) {
                None => {
                    let next = |manifest: StateManifest| StateManifest { version: manifest.version + 1, ..manifest };
                    manifests(last.batch, uid, values)?.into_iter().map(next).collect::<Vec<_>>()
                }
                Some((_, stores)) => {
                    let files = stores.iter().map(LogStore::manifest).collect();
                    for (partition, store) in (0..).zip(stores) {
                        handed.insert((operator.clone(), partition), store);
                    }
                    files
                }
            };
            state.insert(uid.clone(), named(uid, &files)?);
        }
        Ok((MigratedState { state, keys: self.keys }, HandedOver(Mutex::new(handed))))
    }
}

fn gone(batch: BatchId) -> RuntimeError {
    RuntimeError::Invalid {
        reason: format!("what batch {batch} changed can no longer be taken up beside the query"),
        hint: None,
    }
}

/// Takes the changes of batches to a store that keeps the new form.
struct Follower<'a> {
    migration: &'a Migration,
    uid: &'a str,
    families: &'a Families,
    hands: BTreeMap<String, Following<'a>>,
}

/// One family: its hand, and the keys that changed last.
struct Following<'a> {
    hand: Hand<'a>,
    keys: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Follower<'a> {
    fn new(migration: &'a Migration, uid: &'a str, families: &'a Families) -> Self {
        Self { migration, uid, families, hands: BTreeMap::new() }
    }

    fn follow(
        &mut self,
        files: &dyn millstream_common::DurableFiles,
        file: &millstream_state::StateFile,
        store: &mut LogStore,
    ) -> Result<(), RuntimeError> {
        let mut failure = None;
        visit_changes(files, file, &mut |spec, change| {
            if failure.is_none() {
                failure = self.change(spec, change, store).err();
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn change(&mut self, spec: &FamilySpec, change: StateChange<'_>, store: &mut LogStore) -> Result<(), RuntimeError> {
        if !self.hands.contains_key(&spec.name) {
            let pair = match (form(self.families, spec), change) {
                (Form::Stays(was, is), _) => (was, is),
                (Form::Goes, _) | (Form::Unknown, StateChange::Delete { .. } | StateChange::DeleteThrough { .. }) => {
                    return Ok(());
                }
                (Form::Unknown, StateChange::Put { .. }) => return Err(untold(self.uid, spec)),
            };
            let hand = Hand::try_new(self.migration, self.uid, pair, spec)?;
            self.hands.insert(spec.name.clone(), Following { hand, keys: BTreeMap::new() });
        }
        let Some(following) = self.hands.get_mut(&spec.name) else { return Ok(()) };
        match change {
            StateChange::Put { key, value } => {
                following.keys.insert(key.to_vec(), Some(value.to_vec()));
            }
            StateChange::Delete { key } => {
                following.keys.insert(key.to_vec(), None);
            }
            StateChange::DeleteThrough { through } => {
                following.put_down(store)?;
                following.hand.delete_through(through, store)?;
            }
        }
        Ok(())
    }

    /// Puts down the rest; answers how many keys were made anew.
    fn end(self, store: &mut LogStore) -> Result<u64, RuntimeError> {
        let mut keys = 0;
        for mut following in self.hands.into_values() {
            following.put_down(store)?;
            keys += following.hand.migrated();
        }
        Ok(keys)
    }
}

impl Following<'_> {
    fn put_down(&mut self, store: &mut LogStore) -> Result<(), RuntimeError> {
        let mut deleted = ByteRows::new();
        for (key, value) in std::mem::take(&mut self.keys) {
            match value {
                Some(value) => self.hand.take(&key, &value, store)?,
                None => deleted.push(&key),
            }
        }
        self.hand.delete(&deleted, store)
    }
}

/// Stores that are open already. Operators get them in place of files.
pub(crate) struct HandedOver(Mutex<BTreeMap<(OperatorUid, u32), LogStore>>);

impl HandedOver {
    /// None at all.
    pub(crate) fn nothing() -> Self {
        Self(Mutex::default())
    }

    /// Opens what was handed over, and everything else by `rest`.
    pub(crate) fn opener<'a, O: StateOpener>(&'a self, rest: &'a O) -> impl StateOpener + use<'a, O> {
        Opener { handed: self, rest }
    }
}

struct Opener<'a, O> {
    handed: &'a HandedOver,
    rest: &'a O,
}

impl<O: StateOpener> StateOpener for Opener<'_, O> {
    fn open(
        &self,
        uid: &OperatorUid,
        partition: u32,
        manifest: &StateManifest,
    ) -> Result<Box<dyn StateStore>, StateError> {
        let mut handed = self.handed.0.lock().unwrap_or_else(PoisonError::into_inner);
        match handed.remove(&(uid.clone(), partition)).filter(|store| store.manifest() == *manifest) {
            Some(store) => Ok(Box::new(store)),
            None => self.rest.open(uid, partition, manifest),
        }
    }
}
