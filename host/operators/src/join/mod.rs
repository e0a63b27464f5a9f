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
//! A right row that leaves in the batch in which it came is not stored at all, unless it has to come out unmatched. In a
//! semi join the right rows come first, and left rows wait for the barrier: a left row is given out at its first match,
//! and either leaves the state with it or never enters.
//!
//! Keys with nulls never match, except where the planner says so: Spark lets them match in full outer joins.
//! Source of the semantics: Spark's `StreamingSymmetricHashJoinExec`.
//!
//! It decides no kind, no bound and no refusal: the planner has read them from the query.

mod condition;
mod evict;
mod fault;
mod flow;
mod incoming;
mod keep;
mod probe;
mod side;
mod spec;

pub use spec::{JoinKind, JoinSide, JoinSpec, TimeBound};

use crate::partitions::Partitions;
use crate::{BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StateOpener, Stateful};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use condition::Condition;
use datafusion::error::DataFusionError;
use millstream_common::{Digest, Watermark};
use millstream_state::{StateError, StateManifest};
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
    /// Right rows of a semi join that are in the state for this batch only: they count as neither stored nor removed.
    passing: u64,
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
            passing: 0,
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
        self.passing = 0;
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
        self.passing = 0;
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
        self.passing = 0;
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
