//! The rate source.

use super::config::RateConfig;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec, sealed};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::ReadLimit;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;
/// The file of the log that holds the time of creation.
const LOG_FILE: &str = "0";

/// Makes rate sources.
#[derive(Debug, Clone, Copy)]
pub struct RateSourceFactory;

/// The columns of sources that count.
pub(crate) fn counting_schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("timestamp", time, true), Field::new("value", DataType::Int64, true)]))
}

/// Deals the values of `range` to `partitions`, one by one, and makes the projected columns of them;
/// `time_us` is the time of a value.
pub(crate) fn deal(
    range: Range<i64>,
    partitions: usize,
    projection: &[usize],
    time_us: impl Fn(i64) -> i64,
) -> Result<Vec<Vec<RecordBatch>>, arrow::error::ArrowError> {
    let partitions = partitions.max(1);
    let schema = Arc::new(counting_schema().project(projection)?);
    let mut lists = Vec::new();
    for partition in 0..partitions as i64 {
        let values: Vec<i64> = (range.start.saturating_add(partition)..range.end).step_by(partitions).collect();
        let mut batches = Vec::new();
        for chunk in values.chunks(BATCH_ROWS) {
            let columns: Vec<ArrayRef> = projection
                .iter()
                .map(|column| match column {
                    0 => {
                        let times = TimestampMicrosecondArray::from_iter_values(chunk.iter().map(|v| time_us(*v)));
                        Arc::new(times.with_timezone("UTC")) as ArrayRef
                    }
                    _ => Arc::new(Int64Array::from(chunk.to_vec())),
                })
                .collect();
            let options = RecordBatchOptions::new().with_row_count(Some(chunk.len()));
            batches.push(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?);
        }
        lists.push(batches);
    }
    Ok(lists)
}

/// What is kept in the checkpoint.
#[derive(Serialize, Deserialize)]
struct Creation {
    created_ms: i64,
}

impl SourceFactory for RateSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        RateConfig::new(spec)?;
        Ok(counting_schema())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = RateConfig::new(spec)?;
        let files = context.files.as_ref();
        let creation = match sealed::read(&spec.name, files, LOG_FILE)? {
            Some(body) => serde_json::from_str(&body)
                .map_err(|error| sealed::damaged(&spec.name, files, LOG_FILE, &error.to_string()))?,
            None => {
                let creation = Creation { created_ms: context.clock.now_ms() };
                let body = serde_json::to_string(&creation).expect("a number always has a JSON form");
                sealed::write(&spec.name, files, LOG_FILE, &body)?;
                creation
            }
        };
        let Creation { created_ms } = creation;
        let name = spec.name.clone();
        Ok(Box::new(RateSource { name, config, context, created_ms, seconds: 0, frozen: false }))
    }
}

struct RateSource {
    name: String,
    config: RateConfig,
    context: SourceContext,
    created_ms: i64,
    /// The newest offset that the clock has shown.
    seconds: i64,
    frozen: bool,
}

impl RateSource {
    fn look_at_clock(&mut self) {
        if !self.frozen {
            let passed_ms = self.context.clock.now_ms().saturating_sub(self.created_ms);
            self.seconds = self.seconds.max(passed_ms / 1000);
        }
    }

    fn start(&self, start: Option<&Offset>) -> Result<i64, SourceError> {
        start.map_or(Ok(0), |offset| offset.number(&self.name))
    }
}

impl Source for RateSource {
    fn schema(&self) -> SchemaRef {
        counting_schema()
    }

    fn description(&self) -> String {
        format!(
            "RateStream[rowsPerSecond={}, rampUpTimeSeconds={}, numPartitions={}]",
            self.config.rows_per_second,
            self.config.ramp_up_s,
            self.config.partitions.map_or("default".to_owned(), |n| n.to_string())
        )
    }

    fn latest_offset(&mut self, start: Option<&Offset>, _limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.start(start)?;
        self.look_at_clock();
        // While frozen, and after the clock was set back, an older answer stands.
        Ok(if self.seconds > from { Some(self.seconds.into()) } else { start.cloned() })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        Some(self.seconds.into())
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.start(start)?, end.number(&self.name)?);
        let mut lists: Vec<Vec<RecordBatch>> = Vec::new();
        let (first, last) = (self.config.rows_until(from), self.config.rows_until(to));
        if last <= first {
            return Ok(lists);
        }
        let partitions = self.config.partitions.unwrap_or(self.context.default_parallelism);
        let spread_us = (to - from) as f64 * 1_000_000.0 / (last - first) as f64;
        let base_us = self.created_ms.saturating_add(from.saturating_mul(1000)).saturating_mul(1000);
        let time_us = |value: i64| {
            // Whole milliseconds, as the clock gives them.
            let after_ms = ((value - first) as f64 * spread_us / 1000.0).round() as i64;
            base_us.saturating_add(after_ms.saturating_mul(1000))
        };
        lists.extend(
            deal(first..last, partitions, projection, time_us)
                .map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?,
        );
        Ok(lists)
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.look_at_clock();
        self.frozen = true;
        Ok(())
    }
}
