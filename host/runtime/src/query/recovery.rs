//! Where a run begins: what the two logs say, and whether the query still fits them.

use super::changes::{self, QueryChange};
use super::open::with_store_options;
use crate::{QuerySpec, RuntimeError, Session, Settings};
use millstream_checkpoint::{Checkpoint, CommitEntry, ConnectorPin, OffsetEntry, ResumePoint, StatePin};
use millstream_common::{BatchId, OperatorUid, Watermark};
use millstream_operators::Pipeline;
use millstream_plan::StreamingPlan;
use millstream_source::SourceSpec;
use millstream_state::StateManifest;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

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
    /// Takes the places where the sources are now for those of the log; answers where they were, by source. What was read
    /// then must be found at the new places.
    pub(super) fn relocate(&mut self, session: &Session, spec: &QuerySpec) -> BTreeMap<String, String> {
        // A connector that is not known yet, as that of a plugin, has no folder that could move.
        let place = |source: &SourceSpec| session.sources().factory(source).ok()?.place(source);
        let sources = spec.streams.iter().map(|stream| &stream.source);
        let now: BTreeMap<&str, String> = sources.filter_map(|source| Some((&*source.name, place(source)?))).collect();
        let mut moved = BTreeMap::new();
        let entries: Vec<&mut OffsetEntry> = match &mut self.point {
            ResumePoint::Fresh => Vec::new(),
            ResumePoint::Rerun { entry, previous, .. } => std::iter::once(entry).chain(previous).collect(),
            ResumePoint::Next { last, .. } => vec![last],
        };
        for entry in entries {
            for (name, pin) in &mut entry.connectors {
                let is = now.get(name.as_str()).cloned();
                if let (Some(was), Some(is)) = (&mut pin.place, is)
                    && *was != is
                {
                    moved.insert(name.clone(), std::mem::replace(was, is));
                }
            }
        }
        moved
    }

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
            tracing::warn!("setting {name} is {asked}, but the checkpoint has {logged}, which stays");
        }
        Ok(())
    }

    /// Refuses a query that is not the one of the log: another set of sources, of stateful operators, another form of
    /// state. Takes nothing from the log and changes nothing.
    pub(crate) fn check_query(
        &self,
        session: &Session,
        spec: &QuerySpec,
        plan: &mut StreamingPlan,
    ) -> Result<(), RuntimeError> {
        session.sinks().factory(&spec.sink)?.check_resume(&with_store_options(spec), self.next_batch())?;
        let Some(entry) = self.last_entry() else { return Ok(()) };
        let mut planned = connectors(session, spec)?;
        planned.retain(|name, _| plan.slots.iter().any(|slot| slot.stream == *name));
        let mut found = changes::sources(entry.sources.keys(), &entry.connectors, &planned);
        found.extend(changes::operators(&entry.state_schemas, &state_schemas(&mut plan.pipeline)));
        if let Some(was) = entry.output_mode {
            let is = spec.mode;
            let visited: Result<(), Infallible> = plan.pipeline.for_each_stateful(|operator| {
                if operator.forgets_in(was) && !operator.forgets_in(is) {
                    found.push(QueryChange::OutputMode { uid: operator.uid().to_string(), was, is });
                }
                Ok(())
            });
            let Ok(()) = visited;
        }
        if found.is_empty() { Ok(()) } else { Err(RuntimeError::Changed { changes: found }) }
    }

    /// The files of each operator that the next batch builds on.
    pub(super) fn manifests(
        &self,
        pipeline: &mut Pipeline,
    ) -> Result<BTreeMap<OperatorUid, Vec<StateManifest>>, RuntimeError> {
        let mut manifests = BTreeMap::new();
        pipeline.for_each_stateful(|operator| {
            let (uid, partitions) = (operator.uid().clone(), operator.partitions());
            let files = match self.base() {
                Some(commit) => files_of(commit, &uid, partitions)?,
                None => vec![StateManifest::default(); partitions as usize],
            };
            manifests.insert(uid, files);
            Ok::<(), RuntimeError>(())
        })?;
        Ok(manifests)
    }
}

/// What each source of a query is.
pub(super) fn connectors(session: &Session, spec: &QuerySpec) -> Result<BTreeMap<String, ConnectorPin>, RuntimeError> {
    let pin = |source: &SourceSpec| {
        let place = session.sources().factory(source)?.place(source);
        Ok((source.name.clone(), ConnectorPin { format: source.format.to_ascii_lowercase(), place }))
    };
    spec.streams.iter().map(|stream| pin(&stream.source)).collect()
}

/// What each stateful operator keeps, as the offset log has it.
pub(super) fn state_schemas(pipeline: &mut Pipeline) -> BTreeMap<String, StatePin> {
    let mut schemas = BTreeMap::new();
    let visited: Result<(), Infallible> = pipeline.for_each_stateful(|operator| {
        let pin = StatePin {
            schema_id: operator.schema_id(),
            schema_text: operator.schema_text(),
            partitions: operator.partitions(),
            families: serde_json::to_value(operator.families())
                .expect("names, numbers and lists of them always have a JSON form"),
        };
        schemas.insert(operator.uid().as_str().to_owned(), pin);
        Ok(())
    });
    let Ok(()) = visited;
    schemas
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
