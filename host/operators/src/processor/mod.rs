//! A user's code over keys, their state and their timers: Spark's `transformWithState`.
//!
//! ```text
//!   rows ──late? drop──► shared out by hash of the key, by key in the order in which they came
//!                                   │ barrier, per partition
//!                                   ▼
//!      initial rows (first batch) ─► code ─┐
//!      rows of the batch ──────────► code ─┤   one call each, with the state and the timers of its keys
//!      timers that are due ────────► code ─┤
//!                                          ▼
//!            output rows ──► out     changes ──► state, a family per variable and two for timers
//!                                          │
//!                                          ▼  entries whose time to live is over are removed
//! ```
//! ```sql
//! SELECT * FROM sessions(TABLE(clicks) PARTITION BY user)
//! ```
//!
//! A timer is due when its time is at or before the eviction watermark, or the time of the batch; those that were
//! registered by this batch's rows among them, those that are registered by timers not before the next batch. Due timers
//! are deleted after their call. A key at fault keeps its state and its timers as they were.
//!
//! With timers of event time, and a watermark, late rows are dropped one by one. An entry with a time to live is not told
//! of from the moment on at which that is over, by the time of the batch.
//!
//! It does not ask the code per key, and decides nothing about faults: the code's plugin does.
//!
//! Source of the semantics: Spark's `TransformWithStateExec`, `TimerStateImpl` and `ValueStateImplWithTTL`.

mod code;
mod expiry;
mod fault;
mod group;
mod held;
mod layout;
mod once;
mod spec;
mod timers;
mod variable;

pub use code::{PluginProcessor, ProcessorCode};
pub use spec::ProcessorSpec;

use crate::aggregate::lane::each_lane;
use crate::event_order::{passed, prefixes};
use crate::partitions::{Partition, Partitions};
use crate::{
    BatchContext, EventTimeKind, Operator, OperatorError, OperatorMetrics, StateFamily, StateOpener, Stateful,
};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use fault::StateFault;
use group::{Group, Groups};
use layout::{StateLayout, StoreFamilies, ms_of_prefix, prefix_of_ms};
use millstream_common::{BatchId, Watermark};
use millstream_state::{ByteRows, StateError, StateManifest, StateStore};
use millstream_wasm::Scope;
use millstream_wasm::processor::{Invocation, Outcome, Step, TimeMode, Timers};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use timers::HeldTimers;
use variable::Done;

/// Runs a user's code over keys.
pub struct Processor {
    spec: ProcessorSpec,
    layout: StateLayout,
    description: String,
    schema_text: String,
    state: Partitions,
    families: Vec<StoreFamilies>,
    rows: Vec<RecordBatch>,
    /// Whether families that the processor no longer has were emptied since the state was opened.
    is_tidy: bool,
    /// Entries and timers at the last commit, and how many more there are in the open batch.
    entries: u64,
    change: i64,
    metrics: OperatorMetrics,
    dropped: u64,
}

/// One partition at work.
struct Share<'a> {
    store: &'a mut dyn StateStore,
    families: &'a StoreFamilies,
    out: &'a mut Vec<RecordBatch>,
    done: &'a mut Done,
}

impl Processor {
    /// The operator that `spec` describes.
    ///
    /// # Errors
    /// When columns are not there or have other types than the processor's, or a type has no byte form.
    pub fn try_new(spec: ProcessorSpec) -> Result<Self, OperatorError> {
        let description = format!("Processor {}: {} of {}", spec.uid, spec.signature.name, spec.plugin);
        let misfit = |reason: String| OperatorError::Misfit { operator: description.clone(), reason };
        spec.check().map_err(misfit)?;
        let layout = StateLayout::try_new(&spec.plugin, &spec.signature).map_err(|error| misfit(error.to_string()))?;
        let schema_text = layout.text(&spec.signature);
        let state = Partitions::new(spec.uid.clone(), spec.partitions, layout.timers.clone());
        let metrics = OperatorMetrics { operator_name: "transformWithStateExec".into(), ..OperatorMetrics::default() };
        Ok(Self {
            spec,
            layout,
            description,
            schema_text,
            state,
            families: Vec::new(),
            rows: Vec::new(),
            is_tidy: false,
            entries: 0,
            change: 0,
            metrics,
            dropped: 0,
        })
    }

    fn failed(&self, error: ArrowError) -> OperatorError {
        OperatorError::from_expression(&self.description, error.into())
    }

    fn unusable(&self, fault: StateFault) -> OperatorError {
        fault.of(&self.description)
    }

    /// Drops the rows that are late.
    fn in_time(&self, rows: &RecordBatch, context: &BatchContext) -> Result<RecordBatch, OperatorError> {
        let (Some((column, kind)), Some(watermarks)) = (self.spec.event_time, context.watermarks) else {
            return Ok(rows.clone());
        };
        let Some(times) = prefixes(rows.column(column), kind) else { return Ok(rows.clone()) };
        let late = passed(watermarks.late.as_micros());
        if times.iter().all(|time| *time > late) {
            return Ok(rows.clone());
        }
        let keep: BooleanArray = times.into_iter().map(|time| Some(time > late)).collect();
        filter_record_batch(rows, &keep).map_err(|error| self.failed(error))
    }

    /// The time that decides which timers are due.
    fn timer_time(&self, context: &BatchContext) -> Option<i64> {
        match self.spec.signature.time_mode {
            TimeMode::None => None,
            TimeMode::ProcessingTime => Some(context.batch_time_ms),
            TimeMode::EventTime => context.watermarks.map(|watermarks| watermarks.eviction.0),
        }
    }

    /// Everything that one batch does to one partition.
    fn run(
        &self,
        partition: usize,
        (initial, rows): (&Groups, &Groups),
        context: &BatchContext,
        share: &mut Share<'_>,
    ) -> Result<(), OperatorError> {
        let keys = self.spec.signature.key.len();
        let initial_columns = keys..keys + self.spec.signature.initial.len();
        let input_columns = keys..keys + self.spec.signature.input.len();
        self.take(partition, (initial, initial_columns), &Step::Initialise, context, share)?;
        self.take(partition, (rows, input_columns), &Step::Process, context, share)?;
        if let Some(now_ms) = self.timer_time(context) {
            self.expire(now_ms, context, share)?;
        }
        for (layout, families) in self.layout.variables.iter().zip(&share.families.variables) {
            let expired = layout.expire(share.store, *families, context.batch_time_ms);
            let expired = expired.map_err(|fault| self.unusable(fault))?;
            share.done.removed += expired;
            share.done.change -= expired as i64;
        }
        Ok(())
    }

    /// Gives the rows of a partition to the code.
    fn take(
        &self,
        partition: usize,
        (groups, of): (&Groups, std::ops::Range<usize>),
        step: &Step,
        context: &BatchContext,
        share: &mut Share<'_>,
    ) -> Result<(), OperatorError> {
        let whole = &groups.partitions[partition];
        let failed = |error| self.failed(error);
        each_lane(self.spec.code.slice(), |lane| {
            let part: Group;
            let group = match lane {
                None => whole,
                Some((slice, is_slice)) => {
                    part = whole.of_lane(slice, is_slice);
                    &part
                }
            };
            if group.keys.is_empty() {
                return Ok(());
            }
            let key_columns = groups.key_columns(group).map_err(failed)?;
            let rows = groups.columns(group, of.clone()).map_err(failed)?;
            let invocation = self.invocation(key_columns, group.keys.len(), context);
            let invocation = Invocation { key_of_row: group.key_of_row.clone(), rows, ..invocation };
            self.call(step, &group.keys, invocation, context, share)
        })
    }

    /// Gives the timers that are due to the code.
    fn expire(&self, now_ms: i64, context: &BatchContext, share: &mut Share<'_>) -> Result<(), OperatorError> {
        let due = timers::due_timers(share.store, share.families.timers, now_ms);
        let due = due.map_err(|fault| self.unusable(fault))?;
        if due.is_empty() {
            return Ok(());
        }
        let mut by_time: Vec<(Vec<u8>, Vec<u64>)> = due.into_iter().collect();
        by_time.sort_by(|(_, one), (_, other)| one.cmp(other));
        each_lane(self.spec.code.slice(), |lane| {
            let is_mine = |key: &[u8]| lane.is_none_or(|(slice, is_slice)| slice.has(key) == is_slice);
            let (mut keys, mut told) = (ByteRows::new(), Timers::default());
            for (number, (key, times)) in (0..).zip(by_time.iter().filter(|(key, _)| is_mine(key))) {
                keys.push(key);
                times.iter().for_each(|time| told.push(number, ms_of_prefix(*time)));
            }
            if keys.is_empty() {
                return Ok(());
            }
            let key_columns = self.layout.keys.decode(keys.iter());
            let key_columns = key_columns.map_err(|error| self.unusable(error.into()))?;
            let rows = self.spec.signature.input.iter().map(|field| arrow::array::new_empty_array(field.data_type()));
            let invocation = self.invocation(key_columns, keys.len(), context);
            let invocation = Invocation { rows: rows.collect(), ..invocation };
            self.call(&Step::Expire(told), &keys, invocation, context, share)
        })
    }

    /// A call without rows and state.
    fn invocation(&self, keys: Vec<ArrayRef>, key_count: usize, context: &BatchContext) -> Invocation {
        Invocation {
            key_count,
            keys,
            key_of_row: Vec::new(),
            rows: Vec::new(),
            state: Vec::new(),
            timers: Timers::default(),
            batch_time_ms: context.batch_time_ms,
            watermark_ms: context.watermarks.map(|watermarks| watermarks.eviction.0),
        }
    }

    /// Reads the state of the keys, calls the code and does what it says.
    fn call(
        &self,
        step: &Step,
        keys: &ByteRows,
        mut invocation: Invocation,
        context: &BatchContext,
        share: &mut Share<'_>,
    ) -> Result<(), OperatorError> {
        let unusable = |fault| self.unusable(fault);
        let timers = HeldTimers::read(share.store, share.families.timers, keys).map_err(unusable)?;
        invocation.timers = timers.told();
        let now = prefix_of_ms(context.batch_time_ms);
        let mut held = Vec::with_capacity(self.layout.variables.len());
        for (layout, families) in self.layout.variables.iter().zip(&share.families.variables) {
            let entries = layout.read(share.store, *families, keys).map_err(unusable)?;
            invocation.state.push(entries.told(layout, now).map_err(unusable)?);
            held.push(entries);
        }
        let outcome = self
            .spec
            .code
            .call(step, &invocation)
            .map_err(|source| OperatorError::Plugin { operator: self.description.clone(), source: Box::new(source) })?;
        self.give_out(&outcome, context, share.out)?;
        let variables = self.layout.variables.iter().zip(&share.families.variables);
        for (((layout, families), held), changes) in variables.zip(&held).zip(&outcome.changes) {
            let applied =
                layout.apply(share.store, *families, (keys, held), changes, context.batch_time_ms).map_err(unusable)?;
            *share.done += applied;
        }
        let due = match step {
            Step::Expire(due) => Some(due),
            Step::Process | Step::Initialise => None,
        };
        let more = timers.apply(share.store, share.families.timers, keys, &outcome, due).map_err(unusable)?;
        share.done.change += more;
        Ok(())
    }

    /// The output rows; those that carry event time are not late themselves, by the watermark that rows of this batch are late
    /// by (Spark's `UpdateEventTimeColumnExec`).
    fn give_out(
        &self,
        outcome: &Outcome,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if outcome.key_of_row.is_empty() {
            return Ok(());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(outcome.key_of_row.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.spec.output), outcome.rows.clone(), &options);
        let rows = rows.map_err(|error| self.failed(error))?;
        if let (Some(column), Some(watermarks)) = (self.spec.output_time, context.watermarks)
            && let Some(times) = prefixes(rows.column(column), EventTimeKind::Timestamp)
            && let Some(old) = times.iter().find(|time| **time <= passed(watermarks.late.as_micros()))
        {
            return Err(OperatorError::OldRow {
                operator: self.description.clone(),
                time_ms: ms_of_prefix(*old),
                watermark_ms: watermarks.late.0,
            });
        }
        out.push(rows);
        Ok(())
    }

    /// Empties the families of variables that the processor no longer has.
    fn tidy(&mut self) -> Result<(), StateError> {
        let told: BTreeSet<String> = self.layout.families().into_iter().map(|family| family.name).collect();
        for Partition { store, .. } in self.state.all() {
            for spec in store.families() {
                if told.contains(&spec.name) {
                    continue;
                }
                let family = store.family(&spec)?;
                let mut keys = ByteRows::new();
                store.scan(family, &mut |key, _| keys.push(key))?;
                if !keys.is_empty() {
                    tracing::info!(operator = %self.spec.uid, family = spec.name, "its variable is gone, and so is its state");
                    store.delete_many(family, &keys)?;
                }
            }
        }
        self.is_tidy = true;
        Ok(())
    }

    /// Entries of variables and timers in the stores.
    fn count(&mut self) -> Result<u64, StateError> {
        let mut entries = 0;
        for (partition, families) in self.state.all().iter().zip(&self.families) {
            let of_variables = families.variables.iter().map(|variable| variable.rows);
            for family in of_variables.chain([families.timers.by_time]) {
                entries += partition.store.keys_of(family)?;
            }
        }
        Ok(entries)
    }
}

impl Operator for Processor {
    fn schema(&self) -> &SchemaRef {
        &self.spec.output
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        _out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let kept = self.in_time(rows, context)?;
        self.dropped += (rows.num_rows() - kept.num_rows()) as u64;
        if kept.num_rows() > 0 {
            self.rows.push(kept);
        }
        Ok(())
    }

    fn barrier(&mut self, context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        if self.state.all().is_empty() {
            let reason = "its state is not open".to_owned();
            return Err(OperatorError::Misfit { operator: self.describe(), reason });
        }
        let started = Instant::now();
        if !self.is_tidy {
            self.tidy().map_err(|source| self.unusable(source.into()))?;
        }
        let keys = self.spec.signature.key.len();
        let share_out = |rows: &[RecordBatch]| Groups::of(rows, keys, &self.layout.keys, self.state.count());
        let initial = if context.batch == BatchId::FIRST { self.spec.initial.as_slice() } else { &[] };
        let initial = share_out(initial).map_err(|error| self.failed(error))?;
        let rows = share_out(&std::mem::take(&mut self.rows)).map_err(|error| self.failed(error))?;
        let mut done = Done::default();
        // The stores are taken out while the code runs over them, so that the operator can be asked meanwhile.
        let mut stores = self.state.take_open();
        let mut result = Ok(());
        for ((partition, store), families) in stores.iter_mut().enumerate().zip(&self.families) {
            let mut share = Share { store: store.store.as_mut(), families, out, done: &mut done };
            let scope = Scope::current().partition(partition as u32);
            result = scope.enter(|| self.run(partition, (&initial, &rows), context, &mut share));
            if result.is_err() {
                break;
            }
        }
        self.state.give_back(stores);
        result?;
        self.change += done.change;
        self.metrics = OperatorMetrics {
            operator_name: std::mem::take(&mut self.metrics.operator_name),
            rows_updated: done.written,
            rows_removed: done.removed,
            rows_dropped_by_watermark: std::mem::take(&mut self.dropped),
            updates_ms: started.elapsed().as_millis() as u64,
            ..OperatorMetrics::default()
        };
        Ok(())
    }

    fn abort(&mut self) {
        self.rows.clear();
        self.dropped = 0;
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for Processor {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        self.layout.families()
    }

    fn schema_text(&self) -> String {
        self.schema_text.clone()
    }

    fn open(&mut self, opener: &dyn StateOpener, manifests: &[StateManifest]) -> Result<(), StateError> {
        self.state.open(opener, manifests)?;
        let layout = &self.layout;
        let opened = self.state.all().iter_mut().map(|partition| layout.open(partition.store.as_mut()));
        self.families = opened.collect::<Result<_, _>>()?;
        (self.entries, self.change) = (self.count()?, 0);
        self.is_tidy = false;
        Ok(())
    }

    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool {
        self.spec.signature.time_mode != TimeMode::ProcessingTime && new > old
    }

    fn is_due(&self, now_ms: i64) -> Result<bool, StateError> {
        if self.spec.signature.time_mode != TimeMode::ProcessingTime {
            return Ok(false);
        }
        for (partition, families) in self.state.open_partitions().iter().zip(&self.families) {
            let store = partition.store.as_ref();
            if timers::is_due(store, families.timers, now_ms)? {
                return Ok(true);
            }
            for (layout, families) in self.layout.variables.iter().zip(&families.variables) {
                if layout.has_expired(store, *families, now_ms)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn commit(&mut self) {
        self.state.commit();
        self.entries = self.entries.saturating_add_signed(self.change);
        self.change = 0;
    }

    fn abort(&mut self) {
        self.change = 0;
        self.is_tidy = false;
        self.state.abort();
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }

    /// Entries and timers; the rest only helps to find them.
    fn rows_total(&self) -> u64 {
        self.entries.saturating_add_signed(self.change)
    }
}

#[cfg(test)]
mod tests;
