//! GROUP BY over a stream: groups live in the state store, batches are merged into them.
//!
//! ```text
//!   rows ──► partial groups of the batch          push: grouping, and DataFusion's accumulators
//!                   │ barrier
//!                   ▼
//!            drop late groups                     event time at or before the late watermark
//!                   ▼
//!            share out by hash of the key         a partition owns its keys
//!                   ▼
//!            merge with old states ◄──► state     value = the accumulators' exported states
//!                   ▼
//!            emit and evict                       append: groups at or before the eviction watermark, once, removed
//!                                                 update: groups of this batch; passed ones removed in silence
//!                                                 complete: all groups, nothing removed, nothing late
//! ```
//! ```sql
//! SELECT window(ts, '10 minutes') AS w, word, count(*) AS c FROM events GROUP BY window(ts, '10 minutes'), word
//! ```
//!
//! Behind it comes HAVING, a filter; before it stands whatever makes its rows, for sliding windows an unnest.
//! Between two batches nothing lives in memory but the store: with the store reopened after every batch the result is
//! the same. The partition of a key is `stable_hash` of its encoded bytes, so it does not depend on the process.
//! A global aggregate has one group, which leaves in every batch, also an empty one.
//!
//! It makes no windows and no watermark, and refuses no output mode: the planner has done that.

pub(crate) mod functions;
pub(crate) mod keys;
pub(crate) mod lane;
pub(crate) mod merge;
mod numbering;
pub(crate) mod partial;
mod spec;

pub use spec::{AggregateSpec, EventTimeKey, EventTimeKind};

use crate::event_order::passed;
use crate::partitions::Partitions;
use crate::row_codec::FORMAT;
use crate::{BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StatePart, Stateful};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use functions::Functions;
use keys::KeyColumns;
use lane::{Lane, each_lane};
use merge::AggregatePlan;
use millstream_common::{Digest, OutputMode, Watermark};
use millstream_state::{FamilySpec, Layout};
use millstream_wasm::Scope;
use partial::Partial;
use std::time::Instant;

/// The family of the groups.
const FAMILY: &str = "groups";

/// GROUP BY over a stream.
pub struct Aggregate {
    plan: AggregatePlan,
    mode: OutputMode,
    state: Partitions,
    /// The groups of the batch; second those of a canary's slice.
    partials: [Option<Partial>; 2],
    metrics: OperatorMetrics,
}

impl Aggregate {
    /// An aggregate; its state is still to be opened.
    ///
    /// # Errors
    /// When the parts do not fit: an output column of another type than its key or function, a key without
    /// event time that should carry it, a key or state of a type that has no byte form.
    pub fn try_new(spec: AggregateSpec) -> Result<Self, OperatorError> {
        let description = describe(&spec);
        let misbuilt = |error| OperatorError::from_expression(&description, error);
        let keys = KeyColumns::try_new(spec.group_by.clone(), spec.event_time, &spec.input).map_err(misbuilt)?;
        spec.check_output(keys.fields(), &description)?;
        let functions = Functions::try_new(spec.functions, spec.filters, &spec.input).map_err(misbuilt)?;
        let description = format!("{description}; {}", functions.describe());
        let family = FamilySpec {
            name: FAMILY.to_owned(),
            layout: if keys.has_event_time() { Layout::Windowed } else { Layout::Hash },
            schema_id: schema_id(&keys, &functions),
        };
        let partitions = if keys.is_global() { 1 } else { spec.partitions };
        Ok(Self {
            plan: AggregatePlan {
                keys,
                functions,
                output: spec.output,
                description,
                plugins: spec.plugins,
                owners: None,
            },
            mode: spec.mode,
            state: Partitions::new(spec.uid, partitions, family),
            partials: [None, None],
            metrics: OperatorMetrics { operator_name: "stateStoreSave".to_owned(), ..OperatorMetrics::default() },
        })
    }

    fn partial(&mut self, is_slice: bool) -> Result<&mut Partial, OperatorError> {
        let partial = &mut self.partials[usize::from(is_slice)];
        if partial.is_none() {
            *partial = Some(Partial::try_new(&self.plan.keys).map_err(|error| self.plan.failed(error))?);
        }
        Ok(partial.as_mut().expect("it was just made"))
    }

    /// The late and the eviction bound of a batch, if this aggregate minds them.
    fn bounds(&self, context: &BatchContext) -> Option<(u64, u64)> {
        let minds = self.plan.keys.has_event_time() && self.mode != OutputMode::Complete;
        let watermarks = context.watermarks.filter(|_| minds)?;
        Some((passed(watermarks.late.as_micros()), passed(watermarks.eviction.as_micros())))
    }

    /// Merges the batch's groups into the state; in update mode they are the result.
    fn merge_batch(&mut self, late: Option<u64>, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        if self.plan.keys.is_global() {
            self.partial(false)?;
        }
        [false, true]
            .into_iter()
            .try_for_each(|is_slice| Scope::current().slice(is_slice).enter(|| self.merge_lane(is_slice, late, out)))
    }

    /// Merges the groups of a canary's slice, or the others.
    fn merge_lane(
        &mut self,
        is_slice: bool,
        late: Option<u64>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let is_global = self.plan.keys.is_global();
        let filled = self.partials[usize::from(is_slice)].as_mut().filter(|partial| is_global || !partial.is_empty());
        let Some(partial) = filled else { return Ok(()) };
        let groups = partial.finish(&self.plan.keys, &self.plan.functions);
        let mut groups = groups.map_err(|error| self.plan.failed(error))?;
        if let Some(late) = late {
            self.metrics.rows_dropped_by_watermark += self.plan.drop_late(&mut groups, late)?;
        }
        if groups.len == 0 {
            return Ok(());
        }
        let merged = self.plan.merge(groups, self.state.all())?;
        self.state.count_change(merged.added, 0);
        self.metrics.rows_updated += merged.updated;
        if self.mode == OutputMode::Update {
            for touched in merged.touched {
                out.push(self.plan.rows(touched)?);
            }
        }
        Ok(())
    }

    /// Removes the groups that the watermark passed; in append mode they are the result.
    fn evict(&mut self, through: u64, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        for (number, partition) in (0..).zip(self.state.all()) {
            if self.mode == OutputMode::Append {
                Scope::current().partition(number).enter(|| self.plan.read(partition, Some(through), out))?;
            }
            let removed = partition.store.delete_through(partition.family, through);
            self.metrics.rows_removed += removed.map_err(|error| self.plan.state_failed(error))?;
        }
        self.state.count_change(0, self.metrics.rows_removed);
        Ok(())
    }
}

impl Operator for Aggregate {
    fn schema(&self) -> &SchemaRef {
        &self.plan.output
    }

    fn describe(&self) -> String {
        self.plan.description.clone()
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
        each_lane(self.plan.slice(), |lane| {
            let is_slice = lane.is_some_and(|(_, is_slice)| is_slice);
            self.partial(is_slice)?;
            let plan = &self.plan;
            let bytes = |keys: &[ArrayRef]| plan.owner_bytes(keys);
            let lane = lane.map(|(slice, is_slice)| Lane { slice, is_slice, bytes: &bytes });
            match &mut self.partials[usize::from(is_slice)] {
                Some(partial) => {
                    let added = partial.add(&plan.keys, &plan.functions, rows, lane.as_ref());
                    added.map_err(|error| plan.failed(error))
                }
                None => Ok(()),
            }
        })
    }

    fn barrier(&mut self, context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        if self.state.all().is_empty() {
            let reason = "its state is not open".to_owned();
            return Err(OperatorError::Misfit { operator: self.describe(), reason });
        }
        let started = Instant::now();
        let name = std::mem::take(&mut self.metrics.operator_name);
        self.metrics = OperatorMetrics { operator_name: name, ..OperatorMetrics::default() };
        let bounds = self.bounds(context);
        self.merge_batch(bounds.map(|(late, _)| late), out)?;
        self.metrics.updates_ms = started.elapsed().as_millis() as u64;
        let started = Instant::now();
        if let Some((_, eviction)) = bounds {
            self.evict(eviction, out)?;
        }
        self.metrics.removals_ms = started.elapsed().as_millis() as u64;
        if self.mode == OutputMode::Complete {
            for (number, partition) in (0..).zip(self.state.all()) {
                Scope::current().partition(number).enter(|| self.plan.read(partition, None, out))?;
            }
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.partials = [None, None];
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for Aggregate {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        let keys = &self.plan.keys;
        let columns = self.plan.named_keys();
        let time = keys.event_time().and_then(|key| {
            let name = columns.get(key.index)?.name();
            Some(match key.kind {
                EventTimeKind::Window => format!("{name}.end"),
                EventTimeKind::Timestamp => name.clone(),
            })
        });
        let row = StatePart::row(columns);
        vec![StateFamily {
            name: FAMILY.to_owned(),
            schema_id: self.state.schema_id().to_owned(),
            key: time.map(StatePart::EventTime).into_iter().chain([row]).collect(),
            value: vec![self.plan.state_part()],
        }]
    }

    fn schema_text(&self) -> String {
        let keys: Vec<_> =
            self.plan.keys.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        format!("key: {} | value: {}", keys.join(", "), self.plan.functions.state_text())
    }

    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool {
        self.mode != OutputMode::Complete && new > old
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }

    fn forgets_in(&self, mode: OutputMode) -> bool {
        mode != OutputMode::Complete && self.plan.keys.has_event_time()
    }
}

fn describe(spec: &AggregateSpec) -> String {
    let keys: Vec<_> = spec.group_by.expr().iter().map(|(_, name)| name.as_str()).collect();
    let sets = match spec.group_by.groups().len() {
        sets if spec.group_by.has_grouping_set() => format!(" in {sets} grouping sets"),
        _ => String::new(),
    };
    match keys.is_empty() {
        true => format!("Aggregate {} [{}]: all rows", spec.uid, spec.mode),
        false => format!("Aggregate {} [{}]: by {}{sets}", spec.uid, spec.mode, keys.join(", ")),
    }
}

/// The identity of the state's form: what the bytes mean, whatever columns are called.
fn schema_id(keys: &KeyColumns, functions: &Functions) -> String {
    let types: Vec<_> = keys.fields().iter().map(|field| field.data_type().to_string()).collect();
    let event_time = match keys.event_time() {
        Some(EventTimeKey { index, kind: EventTimeKind::Window }) => format!("end of window key {index}"),
        Some(EventTimeKey { index, kind: EventTimeKind::Timestamp }) => format!("key {index}"),
        None => "none".to_owned(),
    };
    let text = format!(
        "groups, {FORMAT}; keys {}; event time {event_time}; states {}",
        types.join(", "),
        functions.state_text()
    );
    Digest::of(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
