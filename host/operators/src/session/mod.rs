//! Sessions: GROUP BY over ranges that grow with their rows, Spark's `session_window`.
//!
//! ```text
//!   rows, each with its own range [ts, ts + gap)
//!                   │ push
//!                   ▼
//!            partial groups of the batch          by all keys and the row's own range
//!                   │ barrier
//!                   ▼
//!            drop late groups                     their own range ends at or before the late watermark
//!                   ▼
//!            share out by hash of the keys        without the session: a partition owns all sessions of a key
//!                   ▼
//!            merge what overlaps or touches ◄──►  state, in two families
//!                   ▼                               ranges    keys ► the ranges of their sessions
//!            emit and evict                         sessions  end and keys ► the accumulators' exported states
//!
//!            append: sessions that end at or before the eviction watermark, once, removed
//!            complete: all sessions, nothing removed; late groups are dropped all the same
//! ```
//! ```sql
//! SELECT session_window.start AS s, session_window.end AS e, word, count(*) AS c
//! FROM events GROUP BY session_window(ts, '5 minutes'), word
//! ```
//!
//! A session ends where the last of its ranges ends, so with a gap per row a short one does not cut a long one off. Ranges
//! that touch are one session: a row exactly one gap after another belongs to it. A late row is dropped although it would touch
//! a session that is still open; a row that is not late joins what it touches.
//! Functions that depend on order see the rows of a session by the start of their ranges.
//!
//! A key's list of ranges is written when it changes, so a key with very many open sessions is dear; in output mode append the
//! watermark keeps lists short. Between two batches nothing lives in memory but the store.
//!
//! Source of the semantics: Spark's `SessionWindowing`, `SessionWindowStateStoreRestoreExec`, `MergingSessionsExec` and
//! `SessionWindowStateStoreSaveExec`. The ranges of the rows are made below, by the planner, which refuses output mode update
//! and sessions without another key, as Spark does.

mod evict;
mod merge;
mod plan;
mod ranges;

use crate::aggregate::lane::{Lane, each_lane};
use crate::aggregate::partial::Partial;
use crate::event_order::passed;
use crate::partitions::Partitions;
use crate::{
    AggregateSpec, BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StateOpener, Stateful,
};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use millstream_common::{OutputMode, Watermark};
use millstream_state::{StateError, StateManifest};
use millstream_wasm::Scope;
use plan::SessionPlan;
use std::time::Instant;

/// GROUP BY a session and other keys, over a stream.
pub struct SessionWindows {
    plan: SessionPlan,
    mode: OutputMode,
    /// Whether the session carries event time: without it no session is ever late or closed.
    has_event_time: bool,
    state: Partitions,
    /// The groups of the batch; second those of a canary's slice.
    partials: [Option<Partial>; 2],
    /// Sessions in the store at the last commit, and how many more there are in the open batch.
    sessions: u64,
    change: i64,
    metrics: OperatorMetrics,
}

impl SessionWindows {
    /// Groups by the session at position `session` of the keys and by the others. The key that carries event time, if one does,
    /// is the session.
    ///
    /// # Errors
    /// When the parts do not fit: output mode update, no other key, grouping sets, a session that is no start and end, a key or
    /// a state of a type that has no byte form.
    pub fn try_new(spec: AggregateSpec, session: usize) -> Result<Self, OperatorError> {
        let names: Vec<_> = spec.group_by.expr().iter().map(|(_, name)| name.as_str()).collect();
        let description = format!("Sessions {} [{}]: by {}", spec.uid, spec.mode, names.join(", "));
        let misfit =
            |reason: &str| Err(OperatorError::Misfit { operator: description.clone(), reason: reason.to_owned() });
        if session >= names.len() {
            return misfit("there is no such key");
        }
        if spec.group_by.has_grouping_set() {
            return misfit("it has grouping sets");
        }
        if spec.mode == OutputMode::Update {
            return misfit("its sessions are not final in output mode update");
        }
        let has_event_time = match spec.event_time {
            Some(key) if key.index == session => true,
            Some(_) => return misfit("another key than the session carries event time"),
            None => false,
        };
        let (uid, mode, partitions) = (spec.uid.clone(), spec.mode, spec.partitions);
        let mut plan = SessionPlan::try_new(spec, session, description)?;
        let functions = plan.groups.functions.describe();
        plan.groups.description = format!("{}; {functions}", plan.groups.description);
        let state = Partitions::new(uid, partitions, plan.sessions.clone());
        let operator_name = "sessionWindowStateStoreSaveExec".to_owned();
        let metrics = OperatorMetrics { operator_name, ..OperatorMetrics::default() };
        Ok(Self { plan, mode, has_event_time, state, partials: [None, None], sessions: 0, change: 0, metrics })
    }

    /// Drops what is late of the batch's groups, and merges the others into the state.
    fn merge_batch(&mut self, late: Option<u64>) -> Result<(), OperatorError> {
        [false, true]
            .into_iter()
            .try_for_each(|is_slice| Scope::current().slice(is_slice).enter(|| self.merge_lane(is_slice, late)))
    }

    /// Merges the groups of a canary's slice, or the others.
    fn merge_lane(&mut self, is_slice: bool, late: Option<u64>) -> Result<(), OperatorError> {
        let partial = self.partials[usize::from(is_slice)].as_mut();
        let Some(partial) = partial.filter(|partial| !partial.is_empty()) else { return Ok(()) };
        let groups = partial.finish(&self.plan.groups.keys, &self.plan.groups.functions);
        let mut groups = groups.map_err(|error| self.plan.groups.failed(error))?;
        if let Some(late) = late {
            self.metrics.rows_dropped_by_watermark += self.plan.groups.drop_late(&mut groups, late)?;
        }
        let merged = self.plan.merge(&groups, self.state.all())?;
        self.metrics.rows_updated += merged.updated;
        self.metrics.rows_removed += merged.removed;
        self.change += merged.change;
        Ok(())
    }

    /// Gives out the sessions that are final, in output mode append, or all.
    fn emit(&mut self, eviction: Option<u64>, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        for (number, partition) in (0..).zip(self.state.all()) {
            let scope = Scope::current().partition(number);
            if self.mode == OutputMode::Complete {
                scope.enter(|| self.plan.groups.read(partition, None, out))?;
            } else if let Some(through) = eviction {
                let closed = scope.enter(|| self.plan.close(partition, through, out))?;
                self.metrics.rows_removed += closed;
                self.change -= closed as i64;
            }
        }
        Ok(())
    }
}

impl Operator for SessionWindows {
    fn schema(&self) -> &SchemaRef {
        &self.plan.groups.output
    }

    fn describe(&self) -> String {
        self.plan.groups.description.clone()
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        _out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let groups = &self.plan.groups;
        let bytes = |keys: &[ArrayRef]| groups.owner_bytes(keys);
        each_lane(groups.slice(), |lane| {
            let place = &mut self.partials[usize::from(lane.is_some_and(|(_, is_slice)| is_slice))];
            let mut partial = match place.take() {
                Some(partial) => partial,
                None => Partial::try_new(&groups.keys).map_err(|error| groups.failed(error))?,
            };
            let lane = lane.map(|(slice, is_slice)| Lane { slice, is_slice, bytes: &bytes });
            let added = partial.add(&groups.keys, &groups.functions, rows, lane.as_ref());
            added.map_err(|error| groups.failed(error))?;
            *place = Some(partial);
            Ok(())
        })
    }

    fn barrier(&mut self, context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        if self.state.all().is_empty() {
            let reason = "its state is not open".to_owned();
            return Err(OperatorError::Misfit { operator: self.describe(), reason });
        }
        let started = Instant::now();
        let operator_name = std::mem::take(&mut self.metrics.operator_name);
        self.metrics = OperatorMetrics { operator_name, ..OperatorMetrics::default() };
        let watermarks = context.watermarks.filter(|_| self.has_event_time);
        self.merge_batch(watermarks.map(|watermarks| passed(watermarks.late.as_micros())))?;
        self.metrics.updates_ms = started.elapsed().as_millis() as u64;
        let started = Instant::now();
        self.emit(watermarks.map(|watermarks| passed(watermarks.eviction.as_micros())), out)?;
        self.metrics.removals_ms = started.elapsed().as_millis() as u64;
        Ok(())
    }

    fn abort(&mut self) {
        self.partials = [None, None];
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for SessionWindows {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        self.plan.families()
    }

    fn schema_text(&self) -> String {
        let groups = &self.plan.groups;
        let keys = groups.keys.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        format!("key: {} | value: {}", keys.collect::<Vec<_>>().join(", "), groups.functions.state_text())
    }

    fn open(&mut self, opener: &dyn StateOpener, manifests: &[StateManifest]) -> Result<(), StateError> {
        self.state.open(opener, manifests)?;
        (self.sessions, self.change) = (0, 0);
        // The store counts the keys of both families in one.
        for partition in self.state.all() {
            partition.store.scan(partition.family, &mut |_, _| self.sessions += 1)?;
        }
        Ok(())
    }

    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool {
        self.mode == OutputMode::Append && self.has_event_time && new > old
    }

    fn commit(&mut self) {
        self.state.commit();
        self.sessions = self.sessions.saturating_add_signed(self.change);
        self.change = 0;
    }

    fn abort(&mut self) {
        self.change = 0;
        self.state.abort();
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }

    /// The ranges only help to find sessions.
    fn rows_total(&self) -> u64 {
        self.sessions.saturating_add_signed(self.change)
    }

    fn forgets_in(&self, mode: OutputMode) -> bool {
        mode != OutputMode::Complete && self.has_event_time
    }
}

#[cfg(test)]
mod tests;
