//! Where a run begins: what the two logs say, and whether the query still fits them.

use crate::{RuntimeError, Settings};
use millstream_checkpoint::{Checkpoint, CommitEntry, OffsetEntry, ResumePoint};
use millstream_common::{BatchId, OperatorUid, Watermark};
use millstream_operators::Pipeline;
use millstream_plan::SourceSlot;
use millstream_state::StateManifest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const VERIFY: &str = "see with `millstream checkpoint verify` which batches are whole";

/// Per retained batch, oldest first: the state files per operator and partition.
pub(super) type RetainedFiles = VecDeque<(BatchId, BTreeMap<OperatorUid, Vec<StateManifest>>)>;

/// What a run starts from.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The answer of the logs.
    pub(super) point: ResumePoint,
}

impl Recovered {
    /// The newest entry of the offset log.
    pub(super) fn last_entry(&self) -> Option<&OffsetEntry> {
        match &self.point {
            ResumePoint::Fresh => None,
            ResumePoint::Rerun { entry, .. } => Some(entry),
            ResumePoint::Next { last, .. } => Some(last),
        }
    }

    /// Whether the last batch is defined and not done.
    pub(super) fn is_rerun(&self) -> bool {
        matches!(self.point, ResumePoint::Rerun { .. })
    }

    /// The next batch to run.
    pub(super) fn next_batch(&self) -> BatchId {
        match &self.point {
            ResumePoint::Fresh => BatchId::FIRST,
            ResumePoint::Rerun { entry, .. } => entry.batch,
            ResumePoint::Next { last, .. } => last.batch.next(),
        }
    }

    /// The commit whose state the next batch builds on.
    pub(super) fn base(&self) -> Option<&CommitEntry> {
        match &self.point {
            ResumePoint::Fresh => None,
            ResumePoint::Rerun { base, .. } => base.as_ref(),
            ResumePoint::Next { commit, .. } => Some(commit),
        }
    }

    /// The (late, eviction) watermarks of the next batch.
    pub(super) fn watermarks(&self) -> (Watermark, Watermark) {
        let of = |ms: Option<i64>| ms.map_or(Watermark::START, Watermark);
        match &self.point {
            ResumePoint::Fresh => (Watermark::START, Watermark::START),
            ResumePoint::Rerun { entry, previous, .. } => {
                (of(previous.as_ref().and_then(|entry| entry.watermark_ms)), of(entry.watermark_ms))
            }
            ResumePoint::Next { last, commit } => {
                let late = of(last.watermark_ms);
                (late, late.max(of(commit.next_watermark_ms)))
            }
        }
    }

    /// Where a source stands before the next batch.
    pub(super) fn offset_before_next(&self, source: &str) -> Option<serde_json::Value> {
        match &self.point {
            ResumePoint::Fresh => None,
            ResumePoint::Rerun { entry, .. } => entry.sources.get(source)?.start.clone(),
            ResumePoint::Next { last, .. } => last.sources.get(source)?.end.clone(),
        }
    }

    /// The time of the last logged batch: time does not go back.
    pub(super) fn last_batch_time_ms(&self) -> i64 {
        self.last_entry().map_or(i64::MIN, |entry| entry.batch_time_ms)
    }

    /// Takes the frozen settings of the log and tells of differences.
    pub(crate) fn restore_settings(&self, settings: &mut Settings) -> Result<(), RuntimeError> {
        let Some(entry) = self.last_entry() else { return Ok(()) };
        for (name, asked, logged) in settings.restore(&entry.settings)? {
            tracing::warn!("setting {name} is {asked}, but the checkpoint was made with {logged}, which stays");
        }
        Ok(())
    }

    /// Refuses sources that are not those of the log.
    pub(crate) fn check_sources(&self, slots: &[SourceSlot]) -> Result<(), RuntimeError> {
        let Some(entry) = self.last_entry() else { return Ok(()) };
        let names: BTreeSet<String> = slots.iter().map(|slot| slot.stream.clone()).collect();
        let logged: BTreeSet<String> = entry.sources.keys().cloned().collect();
        if logged == names {
            return Ok(());
        }
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
        Err(RuntimeError::ForeignQuery {
            reason: format!("it was made for the sources {}, and the query reads {}", list(&logged), list(&names)),
            hint: "give the sources their old names back, or start a new checkpoint".into(),
        })
    }

    /// Refuses stateful operators that are not those of the log; answers the files of each.
    pub(crate) fn check_state(
        &self,
        pipeline: &mut Pipeline,
    ) -> Result<BTreeMap<OperatorUid, Vec<StateManifest>>, RuntimeError> {
        let mut manifests = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let logged = self.last_entry().map(|entry| &entry.state_schemas);
        pipeline.for_each_stateful(|operator| {
            let uid = operator.uid().clone();
            seen.insert(uid.as_str().to_owned());
            if let Some(logged) = logged {
                let Some(pin) = logged.get(uid.as_str()) else {
                    return Err(new_operator(&uid, logged.keys()));
                };
                if pin.schema_id != operator.schema_id() {
                    return Err(other_schema(&uid, &pin.schema_text, &operator.schema_text()));
                }
            }
            let files = match self.base() {
                Some(commit) => files_of(commit, &uid, operator.partitions())?,
                None => vec![StateManifest::default(); operator.partitions() as usize],
            };
            manifests.insert(uid, files);
            Ok(())
        })?;
        if let Some(gone) = logged.and_then(|logged| logged.keys().find(|uid| !seen.contains(*uid))) {
            return Err(RuntimeError::ForeignQuery {
                reason: format!(
                    "it has state of the operator `{gone}`, which the query no longer has; it would be lost"
                ),
                hint:
                    "give the operator back (its uid comes from the name of its WITH clause; [uid] in the query file \
                       renames it), or start a new checkpoint"
                        .into(),
            });
        }
        Ok(manifests)
    }
}

/// The state files of every batch that the commit log still has, oldest first.
pub(super) fn retained(checkpoint: &Checkpoint) -> Result<RetainedFiles, RuntimeError> {
    let log = checkpoint.commit_log();
    let mut retained = RetainedFiles::new();
    for batch in log.batches()? {
        let Some(commit) = log.get(batch)? else { continue };
        let mut operators = BTreeMap::new();
        for (uid, partitions) in &commit.state {
            let uid = OperatorUid::new(uid.clone()).map_err(|error| RuntimeError::ForeignQuery {
                reason: format!("commit entry {batch} names an operator wrongly: {error}"),
                hint: VERIFY.into(),
            })?;
            let files = files_of(&commit, &uid, partitions.len() as u32)?;
            operators.insert(uid, files);
        }
        retained.push_back((batch, operators));
    }
    Ok(retained)
}

fn files_of(commit: &CommitEntry, uid: &OperatorUid, partitions: u32) -> Result<Vec<StateManifest>, RuntimeError> {
    let fail = |reason: String| RuntimeError::ForeignQuery { reason, hint: VERIFY.into() };
    let values = commit
        .state
        .get(uid.as_str())
        .ok_or_else(|| fail(format!("commit entry {} names no state of `{uid}`", commit.batch)))?;
    if values.len() != partitions as usize {
        let have = values.len();
        return Err(fail(format!("`{uid}` has {have} partitions in the checkpoint and {partitions} in the query")));
    }
    values
        .iter()
        .map(|value| {
            serde_json::from_value(value.clone()).map_err(|error| {
                fail(format!("commit entry {} names unreadable state of `{uid}`: {error}", commit.batch))
            })
        })
        .collect()
}

fn new_operator<'a>(uid: &OperatorUid, logged: impl Iterator<Item = &'a String>) -> RuntimeError {
    let known = logged.cloned().collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "no stateful operator".to_owned() } else { known };
    RuntimeError::ForeignQuery {
        reason: format!("the query has the stateful operator `{uid}`, and the checkpoint has {known}"),
        hint: "take the change back, rename the operator with [uid] in the query file, or start a new checkpoint"
            .into(),
    }
}

fn other_schema(uid: &OperatorUid, stored: &str, wanted: &str) -> RuntimeError {
    RuntimeError::ForeignQuery {
        reason: format!("the state of `{uid}` is ({stored}) in the checkpoint and ({wanted}) in the query"),
        hint: "give back the old grouping and aggregates, or start a new checkpoint".into(),
    }
}
