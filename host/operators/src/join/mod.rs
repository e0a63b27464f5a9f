//! Two streams joined: every row meets every row of the other side with the same key, in whatever batches they come.
//!
//! ```text
//!   left rows ──late? drop──► meet right state ──► stored as left state ──┐
//!                                  │ matches                              │ (1)
//!                                  ▼                                      ▼
//!                                 out                                 left state
//!                                  ▲                                      │
//!                                  │ matches                              │ (2)
//!   right rows ─late? drop──► meet left state ◄───────────────────────────┘
//!                                  │
//!                                  └──► stored as right state
//!
//!   barrier: rows that can match no more leave both states; those that never matched come out with nulls, if the
//!            kind of the join wants them
//! ```
//! ```sql
//! SELECT i.ad, i.ts, c.ts AS clicked FROM impressions i LEFT JOIN clicks c
//!     ON i.ad = c.ad AND c.ts BETWEEN i.ts AND i.ts + INTERVAL 10 MINUTES
//! ```
//!
//! Left rows come first, so a left and a right row of one batch meet once: when the right one meets the left state. When
//! a row can match no more follows from the watermark, in one of two ways: the join key carries event time (a window, a
//! time), and the watermark reaches it; or the condition bounds the distance of the two event times, and the watermark
//! passes a row's time by that distance. Without either, rows stay for ever. A late row is dropped before anything else:
//! it matches nothing, and no row with nulls comes of it.
//!
//! A row of the second side that leaves in the batch in which it came is not stored at all, unless it has to come out
//! unmatched. In a semi join the right rows come first, and left rows wait for the barrier: a left row is given out at its
//! first match, and either leaves the state with it or never enters.
//!
//! Keys with nulls never match, except where the planner says so: Spark lets them match in full outer joins.
//! Source of the semantics: Spark's `StreamingSymmetricHashJoinExec`.
//!
//! It decides no kind, no bound and no refusal: the planner has read them from the query.

mod condition;
mod evict;
mod fault;
mod incoming;
mod keep;
mod probe;
mod side;
mod spec;

pub use spec::{JoinKind, JoinSide, JoinSpec, TimeBound};

use crate::partitions::Partitions;
use crate::{BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StateOpener, Stateful};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use condition::Condition;
use datafusion::error::DataFusionError;
use incoming::{Groups, Incoming};
use keep::KeepError;
use millstream_common::{Digest, Watermark, Watermarks};
use millstream_state::{StateError, StateManifest};
use probe::{Emit, Probe, ProbeError};
use side::{Expiry, Side, Which};
use std::time::Instant;

/// Joins two streams.
pub struct Join {
    kind: JoinKind,
    left: Side,
    right: Side,
    condition: Option<Condition>,
    nulls_match: bool,
    output: SchemaRef,
    description: String,
    state: Partitions,
    /// Rows of both sides as of the last commit, and what the open batch adds.
    rows: u64,
    change: i64,
    /// Left rows of a semi join, until all right rows have come.
    waiting: Vec<RecordBatch>,
    metrics: OperatorMetrics,
    /// Whether the counters are those of a batch that is being looked at.
    is_counting: bool,
}

impl Join {
    /// A join; its state is still to be opened.
    ///
    /// # Errors
    /// When the parts do not fit: keys of different types, an event time that is none, a condition that is not boolean,
    /// a column without a byte form.
    pub fn try_new(spec: JoinSpec) -> Result<Self, OperatorError> {
        let operator = format!("Join {} [{}]", spec.uid, spec.kind);
        let misbuilt = |error| OperatorError::from_expression(&operator, error);
        let left = Side::try_new(Which::Left, &spec).map_err(misbuilt)?;
        let right = Side::try_new(Which::Right, &spec).map_err(misbuilt)?;
        if left.key_types() != right.key_types() {
            let reason = format!("its keys are {:?} and {:?}", left.key_types(), right.key_types());
            return Err(OperatorError::Misfit { operator, reason });
        }
        let types =
            |schema: &SchemaRef| schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<DataType>>();
        let mut wanted = types(&left.schema);
        if spec.kind != JoinKind::LeftSemi {
            wanted.extend(types(&right.schema));
        }
        if types(&spec.output) != wanted {
            let reason = format!("its columns are {wanted:?}, {:?} are wanted", types(&spec.output));
            return Err(OperatorError::Misfit { operator, reason });
        }
        let state = Partitions::new(spec.uid.clone(), spec.partitions, left.rows_family().clone());
        let metrics = OperatorMetrics { operator_name: "symmetricHashJoin".to_owned(), ..OperatorMetrics::default() };
        let pairs = spec.left.keys.iter().zip(&spec.right.keys).map(|(left, right)| format!("{left} = {right}"));
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        let rest = spec.condition.as_ref().map_or_else(String::new, |condition| format!(", and {condition}"));
        let description = format!("{operator} on {pairs}{rest}; {left}; {right}");
        let condition = spec.condition.map(|expr| Condition::try_new(expr, &left.schema, &right.schema));
        let condition = condition.transpose().map_err(misbuilt)?;
        Ok(Self {
            kind: spec.kind,
            left,
            right,
            condition,
            nulls_match: spec.nulls_match,
            output: spec.output,
            description,
            state,
            rows: 0,
            change: 0,
            waiting: Vec::new(),
            metrics,
            is_counting: false,
        })
    }

    fn count_this_batch(&mut self) {
        if !std::mem::replace(&mut self.is_counting, true) {
            let operator_name = std::mem::take(&mut self.metrics.operator_name);
            self.metrics = OperatorMetrics { operator_name, ..OperatorMetrics::default() };
        }
    }

    fn failed(&self, error: impl Into<DataFusionError>) -> OperatorError {
        OperatorError::from_expression(&self.description, error.into())
    }

    fn state_failed(&self, source: StateError) -> OperatorError {
        OperatorError::State { operator: self.description.clone(), source }
    }

    /// Takes out the rows that take no part: late ones, and those that fail the part of the condition that reads their
    /// side only. The latter come out at once where unmatched rows do.
    fn admit(
        &mut self,
        which: Which,
        rows: &RecordBatch,
        watermarks: Option<Watermarks>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<RecordBatch, OperatorError> {
        let side = self.side(which);
        let mut rows = rows.clone();
        let mut dropped = 0;
        if let Some(late) = watermarks.and_then(|watermarks| side.late(&rows, watermarks.late)) {
            dropped = late.true_count() as u64;
            if dropped > 0 {
                rows = select(&rows, &late, false).map_err(|error| self.failed(error))?;
            }
        }
        let passing = side.passing(&rows).map_err(|error| self.failed(error))?;
        if let Some(passing) = passing.filter(|passing| passing.true_count() < passing.len()) {
            if side.is_preserved {
                let unmatched = select(&rows, &passing, false).map_err(|error| self.failed(error))?;
                let columns = side.conform(&unmatched).map_err(|error| self.failed(error))?;
                let unmatched = self.with_nulls(which, columns, unmatched.num_rows());
                out.push(unmatched.map_err(|error| self.failed(error))?);
            }
            rows = select(&rows, &passing, true).map_err(|error| self.failed(error))?;
        }
        self.metrics.rows_dropped_by_watermark += dropped;
        Ok(rows)
    }

    fn side(&self, which: Which) -> &Side {
        match which {
            Which::Left => &self.left,
            Which::Right => &self.right,
        }
    }

    /// Rows of one side beside nulls.
    fn with_nulls(&self, which: Which, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
        with_nulls(&self.output, which, columns, rows)
    }

    fn take_in(
        &mut self,
        which: Which,
        rows: &RecordBatch,
        watermarks: Option<Watermarks>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let rows = self.admit(which, rows, watermarks, out)?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let side = self.side(which);
        let columns = side.conform(&rows).map_err(|error| self.failed(error))?;
        let keys = side.keys(&rows).map_err(|error| self.failed(error))?;
        let times = side.own_times(&columns);
        let matched = vec![false; rows.num_rows()];
        let mut incoming = Incoming { columns, keys, times, matched, nulls_match: self.nulls_match };
        for (partition, groups) in incoming.share_out(side, self.state.count()).iter().enumerate() {
            if groups.len() > 0 {
                self.meet(which, &mut incoming, groups, partition, out)?;
                self.keep(which, &incoming, groups, partition, watermarks)?;
            }
        }
        if which == Which::Left && self.kind == JoinKind::LeftSemi && incoming.matched.contains(&true) {
            let matched = BooleanArray::from(incoming.matched);
            let first = probe::batch(&self.output, incoming.columns, rows.num_rows())
                .and_then(|rows| select(&rows, &matched, true));
            out.push(first.map_err(|error| self.failed(error))?);
        }
        Ok(())
    }

    /// Lets rows of one partition meet the state of the other side.
    fn meet(
        &mut self,
        which: Which,
        incoming: &mut Incoming,
        groups: &Groups,
        partition: usize,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let other = match which {
            Which::Left => &self.right,
            Which::Right => &self.left,
        };
        let emit = match (self.kind, which) {
            (JoinKind::LeftSemi, Which::Left) => Emit::Marks,
            (JoinKind::LeftSemi, Which::Right) => Emit::Released(&self.output),
            _ => Emit::Pairs(&self.output),
        };
        let probe = Probe { other, condition: self.condition.as_ref(), emit };
        let partition = &mut self.state.all()[partition];
        let families = match other.families(partition) {
            Ok(families) => families,
            Err(error) => return Err(self.state_failed(error)),
        };
        let removed = probe.run(incoming, groups, partition, families, out).map_err(|error| match error {
            ProbeError::Condition(error) => OperatorError::from_expression(&self.description, error),
            ProbeError::State(fault) => fault.of(&self.description),
        })?;
        self.metrics.rows_removed += removed;
        self.change -= removed as i64;
        Ok(())
    }

    /// Stores rows of one partition that later rows of the other side may meet, or that are to come out unmatched.
    fn keep(
        &mut self,
        which: Which,
        incoming: &Incoming,
        groups: &Groups,
        partition: usize,
        watermarks: Option<Watermarks>,
    ) -> Result<(), OperatorError> {
        let side = match which {
            Which::Left => &self.left,
            Which::Right => &self.right,
        };
        // The first side's state is still to be met by this batch's rows of the second; that of the second has seen all
        // that it will see.
        let is_second = (which == Which::Left) == (self.kind == JoinKind::LeftSemi);
        let through = watermarks.filter(|_| is_second).and_then(|watermarks| side.expiry.through(watermarks.eviction));
        let is_semi_left = self.kind == JoinKind::LeftSemi && which == Which::Left;
        let times = if matches!(side.expiry, Expiry::ByKey(_)) { &incoming.keys.times } else { &incoming.times };
        let wanted = |row: usize| {
            let matched = incoming.matched[row];
            if is_semi_left && matched {
                return false;
            }
            let leaves_now = through.zip(times.get(row)).is_some_and(|(through, time)| *time <= through);
            !leaves_now || (side.is_preserved && !matched)
        };
        let partition = &mut self.state.all()[partition];
        let kept = match side.families(partition) {
            Ok(families) => side.keep(incoming, groups, wanted, partition, families),
            Err(error) => return Err(self.state_failed(error)),
        };
        let kept = kept.map_err(|error| match error {
            KeepError::Rows(error) => self.failed(error),
            KeepError::State(fault) => fault.of(&self.description),
        })?;
        self.metrics.rows_updated += kept;
        self.change += kept as i64;
        Ok(())
    }

    /// Removes the rows of both sides that can match no more.
    fn evict(&mut self, watermark: Watermark, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let mut removed = 0;
        for side in [&self.left, &self.right] {
            let Some(through) = side.expiry.through(watermark) else { continue };
            for partition in self.state.all() {
                let families = side
                    .families(partition)
                    .map_err(|source| OperatorError::State { operator: self.description.clone(), source })?;
                let mut failure = None;
                let evicted = side.evict(through, partition, families, &mut |columns, rows| {
                    match with_nulls(&self.output, side.which, columns, rows) {
                        Ok(rows) => out.push(rows),
                        Err(error) => failure = Some(error),
                    }
                    Ok(())
                });
                if let Some(error) = failure {
                    return Err(OperatorError::from_expression(&self.description, error.into()));
                }
                removed += evicted.map_err(|fault| fault.of(&self.description))?;
            }
        }
        self.metrics.rows_removed += removed;
        self.change -= removed as i64;
        Ok(())
    }

    /// Declares the families of both sides, and counts the rows that are there.
    fn count_stored(&mut self) -> Result<u64, StateError> {
        let mut rows = 0;
        for partition in self.state.all() {
            for side in [&self.left, &self.right] {
                let families = side.families(partition)?;
                partition.store.scan(families.counts, &mut |_, count| {
                    rows += <[u8; 4]>::try_from(count).map_or(0, u32::from_be_bytes) as u64;
                })?;
            }
        }
        Ok(rows)
    }
}

/// The rows for which `verdict` is `wanted`.
fn select(rows: &RecordBatch, verdict: &BooleanArray, wanted: bool) -> Result<RecordBatch, ArrowError> {
    if wanted { filter_record_batch(rows, verdict) } else { filter_record_batch(rows, &not(verdict)?) }
}

fn with_nulls(
    output: &SchemaRef,
    which: Which,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let others = output.fields().len() - columns.len();
    let nulls = |fields: &[arrow::datatypes::FieldRef]| -> Vec<ArrayRef> {
        fields.iter().map(|field| new_null_array(field.data_type(), rows)).collect()
    };
    let columns = match which {
        Which::Left => {
            let nulls = nulls(&output.fields()[columns.len()..]);
            columns.into_iter().chain(nulls).collect()
        }
        Which::Right => nulls(&output.fields()[..others]).into_iter().chain(columns).collect(),
    };
    probe::batch(output, columns, rows)
}

impl Operator for Join {
    fn schema(&self) -> &SchemaRef {
        &self.output
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn push(
        &mut self,
        port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        if self.state.all().is_empty() {
            let reason = "its state is not open".to_owned();
            return Err(OperatorError::Misfit { operator: self.describe(), reason });
        }
        let started = Instant::now();
        self.count_this_batch();
        match (port, self.kind) {
            (0, JoinKind::LeftSemi) => self.waiting.push(rows.clone()),
            (0, _) => self.take_in(Which::Left, rows, context.watermarks, out)?,
            _ => self.take_in(Which::Right, rows, context.watermarks, out)?,
        }
        self.metrics.updates_ms += started.elapsed().as_millis() as u64;
        Ok(())
    }

    fn barrier(&mut self, context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let started = Instant::now();
        self.count_this_batch();
        for rows in std::mem::take(&mut self.waiting) {
            self.take_in(Which::Left, &rows, context.watermarks, out)?;
        }
        self.metrics.updates_ms += started.elapsed().as_millis() as u64;
        let started = Instant::now();
        if let Some(watermarks) = context.watermarks {
            self.evict(watermarks.eviction, out)?;
        }
        self.metrics.removals_ms = started.elapsed().as_millis() as u64;
        self.is_counting = false;
        Ok(())
    }

    fn abort(&mut self) {
        self.waiting.clear();
        self.is_counting = false;
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }

    /// Rows come out until they leave the state: as old as the state watermark of either side.
    fn output_watermark(&self, input: Option<Watermark>, _global: Watermark) -> Option<Watermark> {
        let input = input?;
        let held_back = [&self.left, &self.right].into_iter().filter_map(|side| side.expiry.state_watermark(input));
        held_back.chain([input]).min()
    }
}

impl Stateful for Join {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        [&self.left, &self.right].into_iter().flat_map(Side::state_families).collect()
    }

    fn schema_id(&self) -> String {
        let sides = format!("{} {}", self.left.rows_family().schema_id, self.right.rows_family().schema_id);
        Digest::of(sides.as_bytes()).to_string()
    }

    fn schema_text(&self) -> String {
        format!("{} join; left {}; right {}", self.kind, self.left.text(), self.right.text())
    }

    fn open(&mut self, opener: &dyn StateOpener, manifests: &[StateManifest]) -> Result<(), StateError> {
        self.change = 0;
        self.state.open(opener, manifests)?;
        self.rows = self.count_stored()?;
        Ok(())
    }

    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool {
        let evicts = [&self.left, &self.right].iter().any(|side| side.expiry != Expiry::Never);
        evicts && new > old
    }

    fn commit(&mut self) {
        self.state.commit();
        self.rows = self.rows.saturating_add_signed(self.change);
        self.change = 0;
    }

    fn abort(&mut self) {
        self.state.abort();
        self.change = 0;
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }

    /// The rows of both sides; counts and times only help to find them.
    fn rows_total(&self) -> u64 {
        self.rows.saturating_add_signed(self.change)
    }
}

#[cfg(test)]
mod tests;
