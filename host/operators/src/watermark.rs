//! Watches the event time of the rows that pass.
//!
//! ```text
//!   rows ──► [ least, greatest, sum of the event time ] ──► the same rows
//!                          │
//!                          └──► EventTimeSeen, taken at the end of the batch
//! ```
//! ```sql
//! -- withWatermark('ts', '10 minutes') on the source, then
//! SELECT window(ts, '5 minutes'), count(*) FROM events GROUP BY window(ts, '5 minutes')
//! ```
//!
//! Stands where the user put the watermark, usually right behind the source. Every row counts, late ones too;
//! rows without event time do not, nor do, where the user set a bound, those too far in the future. What was seen is forgotten when it is taken, and when the batch is aborted.
//! It drops no row and makes no watermark: the runtime turns what was seen into the next batch's watermark, and
//! stateful operators apply it.

use crate::{BatchContext, EventTimeSeen, Operator, OperatorError};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampMicrosecondType};
use millstream_common::Watermark;

/// Watches the event time of the rows that pass.
#[derive(Debug)]
pub struct WatchEventTime {
    node: String,
    schema: SchemaRef,
    column: usize,
    delay_us: i64,
    /// How far ahead of the batch's time an event time may be to move the watermark.
    max_ahead_us: Option<i64>,
    rows: u64,
    range_us: Option<(i64, i64, i128)>,
    advance_us: Option<i64>,
    rows_ahead: u64,
}

impl WatchEventTime {
    /// Watches column `column` of rows of `input`; `node` names the stream.
    ///
    /// # Errors
    /// When there is no such column or it is no timestamp in microseconds.
    pub fn try_new(
        node: impl Into<String>,
        input: SchemaRef,
        column: usize,
        delay_us: i64,
    ) -> Result<Self, OperatorError> {
        let node = node.into();
        match input.fields().get(column).map(|field| field.data_type()) {
            Some(DataType::Timestamp(TimeUnit::Microsecond, _)) => {
                let (rows, range_us, advance_us, rows_ahead) = (0, None, None, 0);
                Ok(Self {
                    node,
                    schema: input,
                    column,
                    delay_us,
                    max_ahead_us: None,
                    rows,
                    range_us,
                    advance_us,
                    rows_ahead,
                })
            }
            other => Err(OperatorError::Misfit {
                operator: format!("Watermark: {node}"),
                reason: match other {
                    Some(kind) => format!("event time is {kind}, not a timestamp in microseconds"),
                    None => format!("there is no column {column}"),
                },
            }),
        }
    }

    /// Lets event times more than `max_ahead_us` (µs) ahead of the batch's time pass without moving the watermark: one
    /// wrong clock does not make everything else late. Beyond Spark.
    #[must_use]
    pub fn bounded(mut self, max_ahead_us: Option<i64>) -> Self {
        self.max_ahead_us = max_ahead_us;
        self
    }

    fn see(&mut self, times: &ArrayRef, batch_time_ms: i64) {
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let (Some(least), Some(greatest)) = (min(times), max(times)) else { return };
        let sum: i128 = if times.null_count() == 0 {
            times.values().iter().map(|&time| i128::from(time)).sum()
        } else {
            times.iter().flatten().map(i128::from).sum()
        };
        self.rows += (times.len() - times.null_count()) as u64;
        self.range_us = Some(match self.range_us {
            None => (least, greatest, sum),
            Some((low, high, total)) => (low.min(least), high.max(greatest), total.saturating_add(sum)),
        });
        let latest_us =
            self.max_ahead_us.map_or(i64::MAX, |ahead| batch_time_ms.saturating_mul(1000).saturating_add(ahead));
        if greatest <= latest_us {
            self.advance_us = self.advance_us.max(Some(greatest));
            return;
        }
        self.rows_ahead += times.iter().flatten().filter(|time| *time > latest_us).count() as u64;
        let advance = times.iter().flatten().filter(|time| *time <= latest_us).max();
        self.advance_us = self.advance_us.max(advance);
    }
}

impl Operator for WatchEventTime {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        let column = self.schema.field(self.column).name();
        format!("Watermark: {column} of {}, delay {} ms", self.node, self.delay_us / 1000)
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            self.see(rows.column(self.column), context.batch_time_ms);
            out.push(rows.clone());
        }
        Ok(())
    }

    fn abort(&mut self) {
        (self.rows, self.range_us, self.advance_us, self.rows_ahead) = (0, None, None, 0);
    }

    fn output_watermark(&self, _input: Option<Watermark>, global: Watermark) -> Option<Watermark> {
        Some(global)
    }

    fn take_event_time(&mut self) -> Option<EventTimeSeen> {
        Some(EventTimeSeen {
            node: self.node.clone(),
            delay_us: self.delay_us,
            rows: std::mem::take(&mut self.rows),
            range_us: self.range_us.take(),
            advance_us: self.advance_us.take(),
            rows_ahead: std::mem::take(&mut self.rows_ahead),
        })
    }
}
