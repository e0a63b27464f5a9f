//! Counts late rows one by one and keeps them, in front of a stateful operator that would drop them.
//!
//! ```text
//!   rows ──► late? ──no──► the stateful operator
//!             └─yes──► counted; kept for the late sink, taken at the end of the batch
//! ```
//! ```sql
//! -- with [late_rows] in the query file
//! SELECT window(ts, '5 minutes'), count(*) FROM events GROUP BY window(ts, '5 minutes')
//! ```
//!
//! Beyond Spark, and only where the user asked for it. A stateful operator drops late rows by itself, an aggregation only
//! after it has put the rows of a batch together: its counter counts groups. This operator judges each row by the rule of
//! the operator above it, so that one sees no late row any more: its result is the same, its counter stays 0.
//!
//! The rule: event time, or the end of the row's window, at or before the late watermark; rows without are never late.
//! It keeps no state; what it has kept is forgotten when it is taken and when the batch is aborted.

use crate::aggregate::EventTimeKind;
use crate::event_order::{passed, prefixes};
use crate::{BatchContext, Operator, OperatorError};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::physical_expr::PhysicalExpr;
use millstream_common::OperatorUid;
use std::sync::Arc;

/// The late rows that one operator took out of one batch.
#[derive(Debug, Clone, PartialEq)]
pub struct LateRows {
    /// The stateful operator that they were late for.
    pub operator: OperatorUid,
    /// The rows, as they came to it; empty when they are only counted.
    pub rows: Vec<RecordBatch>,
    /// How many there were.
    pub count: u64,
}

/// What becomes of late rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateRowsPolicy {
    /// They are counted.
    Count,
    /// They are counted and kept for the late sink.
    Keep,
}

/// Takes late rows out.
pub struct TakeLate {
    operator: OperatorUid,
    policy: LateRowsPolicy,
    time: Arc<dyn PhysicalExpr>,
    kind: EventTimeKind,
    schema: SchemaRef,
    description: String,
    kept: Vec<RecordBatch>,
    count: u64,
}

impl TakeLate {
    /// In front of `operator`: judges rows of `schema` by `time`, a timestamp in microseconds or a window.
    ///
    /// # Errors
    /// When `time` is neither.
    pub fn try_new(
        operator: OperatorUid,
        policy: LateRowsPolicy,
        time: Arc<dyn PhysicalExpr>,
        schema: SchemaRef,
    ) -> Result<Self, OperatorError> {
        let description = format!("LateRows of {operator}: by {time}");
        let misfit = |reason: String| OperatorError::Misfit { operator: description.clone(), reason };
        let kind = match time.data_type(&schema).map_err(|error| misfit(error.to_string()))? {
            DataType::Timestamp(TimeUnit::Microsecond, _) => EventTimeKind::Timestamp,
            DataType::Struct(_) => EventTimeKind::Window,
            other => return Err(misfit(format!("the event time is {other}"))),
        };
        Ok(Self { operator, policy, time, kind, schema, description, kept: Vec::new(), count: 0 })
    }

    /// Which rows are late; `None` when none is.
    fn late(&self, rows: &RecordBatch, context: &BatchContext) -> Result<Option<BooleanArray>, OperatorError> {
        let Some(watermarks) = context.watermarks else { return Ok(None) };
        let through = passed(watermarks.late.as_micros());
        let times = self.time.evaluate(rows).and_then(|times| times.into_array(rows.num_rows()));
        let times = times.map_err(|error| OperatorError::from_expression(&self.description, error))?;
        let Some(times) = prefixes(&times, self.kind) else { return Ok(None) };
        if times.iter().all(|time| *time > through) {
            return Ok(None);
        }
        Ok(Some(times.into_iter().map(|time| Some(time <= through)).collect()))
    }
}

impl Operator for TakeLate {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let Some(late) = self.late(rows, context)? else {
            if rows.num_rows() > 0 {
                out.push(rows.clone());
            }
            return Ok(());
        };
        let failed = |error: arrow::error::ArrowError| OperatorError::from_expression(&self.description, error.into());
        self.count += late.true_count() as u64;
        let in_time = not(&late).and_then(|in_time| filter_record_batch(rows, &in_time)).map_err(failed)?;
        if self.policy == LateRowsPolicy::Keep {
            self.kept.push(filter_record_batch(rows, &late).map_err(failed)?);
        }
        if in_time.num_rows() > 0 {
            out.push(in_time);
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.kept.clear();
        self.count = 0;
    }

    fn judges_for_above(&self) -> bool {
        true
    }

    fn take_late_rows(&mut self) -> Option<LateRows> {
        let (rows, count) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.count));
        Some(LateRows { operator: self.operator.clone(), rows, count })
    }
}
