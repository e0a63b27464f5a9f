//! The rate-per-micro-batch source and its options.

use crate::connectors::rate::{config, counting_schema, deal};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{Options, ReadLimit};
use serde::{Deserialize, Serialize};

/// Makes rate-per-micro-batch sources.
#[derive(Debug, Clone, Copy)]
pub struct RateMicroBatchSourceFactory;

/// The options, checked.
#[derive(Debug, Clone)]
struct Config {
    rows: i64,
    partitions: Option<usize>,
    start_ms: i64,
    advance_ms: i64,
}

impl Config {
    fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        options.only(owner, &["rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"])?;
        if spec.schema.is_some() {
            let reason = "it has its own columns `timestamp` and `value`; leave the schema out".into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        options.require(owner, "rowsPerBatch")?;
        let at_least = |name: &str, least: i64, default: i64| {
            let expected = format!("write a whole number, at least {least}");
            let value = options.parse::<i64>(owner, name, &expected)?.unwrap_or(default);
            if value < least { Err(Options::invalid(owner, name, &value.to_string(), &expected)) } else { Ok(value) }
        };
        Ok(Self {
            rows: at_least("rowsPerBatch", 1, 0)?,
            partitions: config::partitions(owner, options)?,
            start_ms: at_least("startTimestamp", 0, 0)?,
            advance_ms: at_least("advanceMillisPerBatch", 0, 1000)?,
        })
    }
}

/// How many rows there were, and the time of the rows that come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Position {
    offset: i64,
    timestamp: i64,
}

impl SourceFactory for RateMicroBatchSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Config::new(spec)?;
        Ok(counting_schema())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = Config::new(spec)?;
        Ok(Box::new(RateMicroBatchSource { name: spec.name.clone(), config, context, frozen: None }))
    }
}

struct RateMicroBatchSource {
    name: String,
    config: Config,
    context: SourceContext,
    /// Once everything available was fixed: where the one batch of this run ends, when that is known.
    frozen: Option<Option<Position>>,
}

impl RateMicroBatchSource {
    fn position(&self, offset: Option<&Offset>) -> Result<Position, SourceError> {
        let Some(offset) = offset else { return Ok(Position { offset: 0, timestamp: self.config.start_ms }) };
        let position: Option<Position> = serde_json::from_value(offset.0.clone()).ok();
        position
            .filter(|position| position.offset >= 0)
            .ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    /// The batches of (from, to] as (rows before it, rows, time): as many as the time moved on.
    fn batches(&self, from: Position, to: Position) -> Vec<(i64, i64, i64)> {
        let rows = to.offset.saturating_sub(from.offset);
        let passed = to.timestamp.saturating_sub(from.timestamp);
        let count = if self.config.advance_ms > 0 { passed / self.config.advance_ms } else { 1 };
        if count <= 1 || rows % count != 0 {
            return vec![(from.offset, rows, from.timestamp)];
        }
        let each = rows / count;
        (0..count).map(|k| (from.offset + k * each, each, from.timestamp + k * self.config.advance_ms)).collect()
    }
}

impl Source for RateMicroBatchSource {
    fn schema(&self) -> SchemaRef {
        counting_schema()
    }

    fn description(&self) -> String {
        format!(
            "RatePerMicroBatchStream[rowsPerBatch={}, numPartitions={}, startTimestamp={}, advanceMsPerBatch={}]",
            self.config.rows,
            self.config.partitions.map_or("default".to_owned(), |n| n.to_string()),
            self.config.start_ms,
            self.config.advance_ms
        )
    }

    fn latest_offset(&mut self, start: Option<&Offset>, _limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.position(start)?;
        let next = Position {
            offset: from.offset.saturating_add(self.config.rows),
            timestamp: from.timestamp.saturating_add(self.config.advance_ms),
        };
        let end = match &mut self.frozen {
            None => next,
            Some(end) => *end.get_or_insert(next),
        };
        if end.offset <= from.offset {
            return Ok(start.cloned());
        }
        let json = serde_json::to_value(end).expect("numbers always have a JSON form");
        Ok(Some(Offset(json)))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.position(start)?, self.position(Some(end))?);
        let partitions = self.config.partitions.unwrap_or(self.context.default_parallelism);
        let mut lists: Vec<Vec<RecordBatch>> = Vec::new();
        if to.offset <= from.offset {
            return Ok(lists);
        }
        for (before, rows, time_ms) in self.batches(from, to) {
            let time_us = time_ms.saturating_mul(1000);
            let dealt = deal(before..before.saturating_add(rows), partitions, projection, |_| time_us);
            let dealt =
                dealt.map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?;
            lists.resize_with(dealt.len().max(lists.len()), Vec::new);
            for (list, batches) in lists.iter_mut().zip(dealt) {
                list.extend(batches);
            }
        }
        Ok(lists)
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.frozen.get_or_insert(None);
        Ok(())
    }
}
