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
//! rows without event time do not. What was seen is forgotten when it is taken, and when the batch is aborted.
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
    rows: u64,
    range_us: Option<(i64, i64, i128)>,
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
                Ok(Self { node, schema: input, column, delay_us, rows: 0, range_us: None })
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

    fn see(&mut self, times: &ArrayRef) {
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
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            self.see(rows.column(self.column));
            out.push(rows.clone());
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.rows = 0;
        self.range_us = None;
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
        })
    }
}
