//! Spreads the state of a stopped query over another number of partitions.
//!
//! ```text
//!   batch N done ──► every key of every operator ──► new stores, empty at version N+1 ──► files of version N+2
//!                                                                                              │ nobody names them
//!                    offsets/N+1  reads nothing, repeats N's watermark, the new number   ◄─────┘
//!                    commits/N+1  names the new files: done
//! ```
//!
//! The number of partitions is frozen with the state, so a run cannot change it; this can, by a batch of its own. The
//! batch reads nothing and reaches no sink, and since it repeats the watermark of the batch before it, the rows that come
//! after are late or not as they would have been without it. Global operators keep their one partition.
//!
//! Rule of its life: all that can fail is done before the batch is defined. A crash before `offsets/N+1` leaves files that
//! nobody names; between the two entries a batch that is defined and not done, which the next start, or this command,
//! ends ([`resume`]). Older batches keep their files and their number of partitions.

use crate::inspect::{CheckpointPlace, manifests};
use crate::query::families_of;
use crate::settings::PARTITIONS;
use crate::{RuntimeError, Session, Settings, offline_store};
use millstream_checkpoint::{
    Checkpoint, CommitEntry, LeaseHolder, OffsetEntry, OffsetRange, RepartitionPin, ResumePoint, StatePin,
};
use millstream_common::{OperatorUid, RunId};
use millstream_operators::{FamilyReader, StateFamily};
use millstream_state::{ByteRows, FamilySpec, LogStore, MemoryBudget, StateManifest, StateStore};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that are moved at a time.
const KEYS_AT_A_TIME: usize = 16_384;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repartitioned {
    /// The batch that did it; `None` when the state had that many partitions already.
    pub batch: Option<u64>,
    /// Partitions before.
    pub from: u32,
    /// Partitions now.
    pub to: u32,
    /// The operators.
    pub operators: Vec<MovedOperator>,
}

/// What became of the state of one operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MovedOperator {
    /// The operator.
    pub uid: String,
    /// Its partitions before.
    pub from: u32,
    /// Its partitions now; a global operator keeps one.
    pub to: u32,
    /// Keys that were moved; 0 for a global operator.
    pub keys: u64,
}

/// Spreads the state in a checkpoint over `partitions` partitions. The query, if it is named, is planned only when the
/// checkpoint does not say what its state is made of.
///
/// # Errors
/// When a run has the checkpoint, its last batch is not done, its state is damaged or of an unknown form.
pub fn repartition(session: &Session, place: &CheckpointPlace, partitions: u32) -> Result<Repartitioned, RuntimeError> {
    Settings::default().set(PARTITIONS, &partitions.to_string())?;
    let checkpoint = place.open(session)?;
    let run = RunId(uuid::Uuid::new_v4());
    let now_ms = session.clock().now_ms();
    let mut lease = checkpoint.lease(LeaseHolder::this_process(run), now_ms)?;
    let renew = |lease: &mut millstream_checkpoint::Lease| lease.renew(session.clock().now_ms());
    let done = resume(&checkpoint, run)
        .and_then(|point| Plan::new(&checkpoint, point, partitions, &|| place.planned(session), now_ms))
        .and_then(|plan| plan.execute(&checkpoint, run, || Ok(renew(&mut lease)?)));
    // Whatever came of it, the checkpoint is free again; a lease that cannot be given back ends by itself.
    let released = lease.release();
    let done = done?;
    released?;
    Ok(done)
}

/// Where a run begins, after a repartition that was begun has been ended. The caller holds the lease.
pub(crate) fn resume(checkpoint: &Checkpoint, run: RunId) -> Result<ResumePoint, RuntimeError> {
    let point = checkpoint.resume()?;
    let ResumePoint::Rerun { entry, base: Some(base), .. } = &point else { return Ok(point) };
    if let Some(border) = &entry.border {
        tracing::info!(batch = %entry.batch, "ending a border that was begun: {}", border.what);
        commit(checkpoint, entry, base, border.state.clone())?;
        return Ok(checkpoint.resume()?);
    }
    let Some(pin) = entry.repartition else { return Ok(point) };
    tracing::info!(batch = %entry.batch, partitions = pin.to, "ending a repartition that was begun");
    let (state, _) = spread(checkpoint, &entry.state_schemas, base, pin.to, run)?;
    commit(checkpoint, entry, base, state)?;
    Ok(checkpoint.resume()?)
}

/// Asks the query's plan for its stateful operators.
type Planned<'a> = dyn Fn() -> Result<BTreeMap<String, StatePin>, RuntimeError> + 'a;

/// The batch that is to be.
struct Plan {
    entry: Option<OffsetEntry>,
    base: CommitEntry,
    from: u32,
    to: u32,
}

impl Plan {
    fn new(
        checkpoint: &Checkpoint,
        point: ResumePoint,
        to: u32,
        planned: &Planned<'_>,
        now_ms: i64,
    ) -> Result<Self, RuntimeError> {
        let (last, base) = match point {
            ResumePoint::Next { last, commit } => (last, commit),
            ResumePoint::Fresh => {
                return Err(RuntimeError::Invalid {
                    reason: format!("there is no state in `{}`: no batch is done", checkpoint.location()),
                    hint: Some(format!("set {PARTITIONS} for the first start of the query")),
                });
            }
            ResumePoint::Rerun { entry, .. } => {
                return Err(RuntimeError::Invalid {
                    reason: format!("batch {} is defined and not done: its rows are not in the state yet", entry.batch),
                    hint: Some("start the query once, which ends the batch, and stop it; then repartition".into()),
                });
            }
        };
        let mut settings = Settings::default();
        settings.restore(&last.settings)?;
        let from = settings.partitions;
        if from == to {
            return Ok(Self { entry: None, base, from, to });
        }
        let mut schemas = BTreeMap::clone(&last.state_schemas);
        for (uid, pin) in &mut schemas {
            complete(uid, pin, planned)?;
            if is_spread(uid, &families(uid, pin)?)? {
                pin.partitions = to;
            }
        }
        let mut frozen = last.settings.clone();
        frozen.insert(PARTITIONS.to_owned(), to.to_string());
        let still = |range: &OffsetRange| OffsetRange { start: range.end.clone(), end: range.end.clone() };
        let entry = OffsetEntry {
            batch: last.batch.next(),
            batch_time_ms: last.batch_time_ms.max(now_ms),
            sources: last.sources.iter().map(|(name, range)| (name.clone(), still(range))).collect(),
            settings: frozen,
            state_schemas: schemas.into(),
            repartition: Some(RepartitionPin { from, to }),
            border: None,
            ..last
        };
        Ok(Self { entry: Some(entry), base, from, to })
    }

    fn execute(
        self,
        checkpoint: &Checkpoint,
        run: RunId,
        mut renew: impl FnMut() -> Result<(), RuntimeError>,
    ) -> Result<Repartitioned, RuntimeError> {
        let Self { entry, base, from, to } = self;
        let Some(entry) = entry else {
            return Ok(Repartitioned { batch: None, from, to, operators: Vec::new() });
        };
        let (state, operators) = spread(checkpoint, &entry.state_schemas, &base, to, run)?;
        renew()?;
        checkpoint.offset_log().add(&entry)?;
        commit(checkpoint, &entry, &base, state)?;
        Ok(Repartitioned { batch: Some(entry.batch.0), from, to, operators })
    }
}

/// The batch is done. The watermark that comes after it is the one that came after the batch before it.
fn commit(
    checkpoint: &Checkpoint,
    entry: &OffsetEntry,
    base: &CommitEntry,
    state: BTreeMap<String, Vec<serde_json::Value>>,
) -> Result<(), RuntimeError> {
    let CommitEntry { next_watermark_ms, canary, .. } = base.clone();
    let (output, inputs, sink) = (None, BTreeMap::new(), None);
    let done = CommitEntry { batch: entry.batch, next_watermark_ms, state, output, inputs, sink, canary };
    Ok(checkpoint.commit_log().add(&done)?)
}

/// Lets a pin without families take those of the query's plan.
fn complete(uid: &str, pin: &mut StatePin, planned: &Planned<'_>) -> Result<(), RuntimeError> {
    if !pin.families.is_null() {
        return Ok(());
    }
    let planned = planned()?;
    let Some(plan) = planned.get(uid).filter(|plan| plan.schema_id == pin.schema_id) else {
        return Err(RuntimeError::Invalid {
            reason: format!(
                "the checkpoint does not say what the state of `{uid}` is made of: an older release wrote it"
            ),
            hint: Some("name the query file in place of the checkpoint, or run one batch of the query first".into()),
        });
    };
    pin.families = plan.families.clone();
    Ok(())
}

fn unknown(uid: &str, reason: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::UnknownState { uid: uid.to_owned(), action: "moved", reason: reason.to_string() }
}

fn families(uid: &str, pin: &StatePin) -> Result<Vec<StateFamily>, RuntimeError> {
    families_of(pin).map_err(|reason| unknown(uid, reason))
}

/// Whether the operator's keys are spread over partitions: all families say the same.
fn is_spread(uid: &str, families: &[StateFamily]) -> Result<bool, RuntimeError> {
    let spread = families.iter().filter(|family| family.is_spread()).count();
    match spread {
        _ if families.is_empty() => Err(unknown(uid, "the checkpoint does not say what it is made of")),
        0 => Ok(false),
        all if all == families.len() => Ok(true),
        _ => Err(unknown(uid, "some of its families are spread over partitions and some are not")),
    }
}

/// State per operator as a commit entry names it, and what was done.
type Spread = (BTreeMap<String, Vec<serde_json::Value>>, Vec<MovedOperator>);

/// Makes the files of the state after `base` over `to` partitions.
fn spread(
    checkpoint: &Checkpoint,
    schemas: &BTreeMap<String, StatePin>,
    base: &CommitEntry,
    to: u32,
    run: RunId,
) -> Result<Spread, RuntimeError> {
    let (mut state, mut moved) = (BTreeMap::new(), Vec::new());
    for (uid, values) in &base.state {
        let old = manifests(base.batch, uid, values)?;
        let pin = schemas.get(uid).ok_or_else(|| unknown(uid, "no entry of the offset log tells of it"))?;
        let operator = OperatorUid::new(uid.as_str()).map_err(|error| unknown(uid, error))?;
        let families = families(uid, pin)?;
        let (new, keys) = if is_spread(uid, &families)? {
            Move { checkpoint, uid: &operator, families: &families, run, budget: offline_store::budget() }
                .all(&old, to)?
        } else if old.len() != 1 {
            return Err(unknown(uid, format!("it is of a global operator and has {} partitions", old.len())));
        } else {
            let next = |manifest: &StateManifest| StateManifest { version: manifest.version + 1, ..manifest.clone() };
            (old.iter().map(next).collect(), 0)
        };
        moved.push(MovedOperator { uid: uid.clone(), from: old.len() as u32, to: new.len() as u32, keys });
        let values: Result<Vec<_>, _> = new.iter().map(serde_json::to_value).collect();
        state.insert(uid.clone(), values.map_err(|error| unknown(uid, error))?);
    }
    Ok((state, moved))
}

/// The move of one operator's state.
struct Move<'a> {
    checkpoint: &'a Checkpoint,
    uid: &'a OperatorUid,
    families: &'a [StateFamily],
    run: RunId,
    budget: Arc<MemoryBudget>,
}

impl Move<'_> {
    fn store(&self, partition: u32, manifest: &StateManifest) -> Result<LogStore, RuntimeError> {
        let writer = self.run.0.simple().to_string();
        Ok(offline_store::open(self.checkpoint, self.uid, partition, manifest, (&writer, &self.budget))?)
    }

    /// Moves every key; answers the new files and how many keys there are.
    fn all(&self, old: &[StateManifest], to: u32) -> Result<(Vec<StateManifest>, u64), RuntimeError> {
        let version = old.first().map_or(0, |manifest| manifest.version);
        if old.iter().any(|manifest| manifest.version != version) {
            return Err(unknown(self.uid.as_str(), "its partitions have different versions"));
        }
        let empty = StateManifest { version, files: Vec::new() };
        let mut targets = (0..to).map(|partition| self.store(partition, &empty)).collect::<Result<Vec<_>, _>>()?;
        let mut keys = 0;
        for (partition, manifest) in (0..).zip(old) {
            let mut source = self.store(partition, manifest)?;
            keys += source.metrics().keys;
            for spec in source.families() {
                self.family(&mut source, &spec, &mut targets)?;
            }
        }
        let arrived: u64 = targets.iter().map(|target| target.metrics().keys).sum();
        if arrived != keys {
            return Err(unknown(self.uid.as_str(), format!("of {keys} keys {arrived} are different ones")));
        }
        let new = targets.iter_mut().map(|target| target.prepare()).collect::<Result<Vec<_>, _>>()?;
        Ok((new, keys))
    }

    fn family(&self, source: &mut LogStore, spec: &FamilySpec, targets: &mut [LogStore]) -> Result<(), RuntimeError> {
        let family = source.family(spec)?;
        let known = self.families.iter().find(|family| family.name == spec.name && family.schema_id == spec.schema_id);
        let Some(known) = known else {
            let mut count = 0_u64;
            source.scan(family, &mut |_, _| count += 1)?;
            return match count {
                // What a variable that is gone has left.
                0 => Ok(()),
                _ => Err(unknown(
                    self.uid.as_str(),
                    format!("its files have a family `{}` that the checkpoint does not tell of", spec.name),
                )),
            };
        };
        let reader = FamilyReader::try_new(known).map_err(|error| unknown(self.uid.as_str(), error))?;
        let mut hand = Hand { reader, spec, targets, keys: ByteRows::new(), values: ByteRows::new() };
        let mut failure = None;
        source.scan(family, &mut |key, value| {
            if failure.is_some() {
                return;
            }
            hand.keys.push(key);
            hand.values.push(value);
            if hand.keys.len() == KEYS_AT_A_TIME {
                failure = hand.put_down().err();
            }
        })?;
        match failure {
            Some(error) => Err(error),
            None => hand.put_down(),
        }
    }
}

/// Some keys on their way.
struct Hand<'a> {
    reader: FamilyReader,
    spec: &'a FamilySpec,
    targets: &'a mut [LogStore],
    keys: ByteRows,
    values: ByteRows,
}

impl Hand<'_> {
    /// Gives every key to the partition that owns it.
    fn put_down(&mut self) -> Result<(), RuntimeError> {
        let owners = self.reader.partitions(&self.keys, self.targets.len() as u32);
        let owners = owners.map_err(|error| unknown(&self.spec.name, millstream_common::describe_chain(&error)))?;
        let mut shares = vec![(ByteRows::new(), ByteRows::new()); self.targets.len()];
        for ((owner, key), value) in owners.into_iter().zip(self.keys.iter()).zip(self.values.iter()) {
            shares[owner].0.push(key);
            shares[owner].1.push(value);
        }
        for (target, (keys, values)) in self.targets.iter_mut().zip(&shares).filter(|(_, (keys, _))| !keys.is_empty()) {
            let family = target.family(self.spec)?;
            target.put_many(family, keys, values)?;
        }
        self.keys.clear();
        self.values.clear();
        Ok(())
    }
}
