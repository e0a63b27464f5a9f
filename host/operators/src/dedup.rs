//! Rows whose key has been seen before are dropped: Spark's `dropDuplicates` and `dropDuplicatesWithinWatermark`.
//!
//! ```text
//!   rows ──late? drop──► key seen? drop ──► first of its key ──► out
//!                            │                    │
//!                            └──── state ◄────────┘      barrier: keys that the watermark has passed are forgotten
//! ```
//! `SELECT * FROM events` where `events` drops duplicates of `(ts, id)`.
//!
//! What is remembered, and for how long:
//! - the event time is among the keys: until the watermark reaches it, after which such rows are late anyway;
//! - it is not: for ever;
//! - within the watermark: until the watermark reaches the event time of the first row plus the delay; a duplicate
//!   prolongs nothing, and a first row without a time is of 1970.
//!
//! Late rows are dropped whenever there is a watermark. Keys are forgotten at the barrier, after the rows of the batch
//! have been matched. Source of the semantics: Spark's `StreamingDeduplicateExec` and
//! `StreamingDeduplicateWithinWatermarkExec`.

use crate::event_order::{NEVER, ordered};
use crate::float_identity::unify_floats;
use crate::partitions::Partitions;
use crate::row_codec::{FORMAT, RowCodec, partition_of};
use crate::{BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StatePart, Stateful};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use hashbrown::HashSet;
use millstream_common::{Digest, OperatorUid, Watermark};
use millstream_state::{ByteRows, FamilySpec, Layout, StateError};
use std::sync::Arc;
use std::time::Instant;

/// The family of the keys that were seen.
const SEEN: &str = "seen";
/// The family that has them in the order in which they are forgotten.
const EXPIRY: &str = "expiry";

/// What a deduplication is made of.
#[derive(Debug, Clone)]
pub struct DedupSpec {
    /// The operator's stable name.
    pub uid: OperatorUid,
    /// The columns of the rows, in and out.
    pub schema: SchemaRef,
    /// The columns that make the key.
    pub keys: Vec<usize>,
    /// The column that carries event time, if one does: a timestamp in microseconds.
    pub event_time: Option<usize>,
    /// Remember a key only until the watermark reaches its first row's event time plus this delay (µs).
    pub within_us: Option<i64>,
    /// Over how many partitions the keys are spread.
    pub partitions: u32,
}

/// How long a key is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    ForEver,
    UntilItsEventTime,
    Within { delay_us: i64 },
}

/// Drops rows whose key has been seen.
pub struct Deduplicate {
    spec: DedupSpec,
    memory: Memory,
    codec: RowCodec,
    schema_text: String,
    state: Partitions,
    /// When keys are to be forgotten, in the order of those times: only within the watermark.
    expiry: FamilySpec,
    metrics: OperatorMetrics,
    /// Whether the counters are those of a batch that is being looked at.
    is_counting: bool,
}

/// The rows of one partition that are first of their key, gathered while a batch of rows is looked at.
#[derive(Default)]
struct New {
    keys: ByteRows,
    values: ByteRows,
    expiries: ByteRows,
}

impl Deduplicate {
    /// The operator that `spec` describes.
    ///
    /// # Errors
    /// When a column is not there, the event time is no timestamp, or a key's type has no byte form.
    pub fn try_new(spec: DedupSpec) -> Result<Self, OperatorError> {
        let misfit = |reason: String| OperatorError::Misfit { operator: format!("Deduplicate {}", spec.uid), reason };
        let fields = spec.schema.fields();
        if let Some(missing) = spec.keys.iter().chain(&spec.event_time).find(|index| **index >= fields.len()) {
            return Err(misfit(format!("there is no column {missing}")));
        }
        if let Some(index) = spec.event_time
            && !matches!(fields[index].data_type(), DataType::Timestamp(TimeUnit::Microsecond, _))
        {
            return Err(misfit(format!("the event time is {}", fields[index].data_type())));
        }
        let memory = match (spec.within_us, spec.event_time) {
            (Some(delay_us), Some(_)) => Memory::Within { delay_us },
            (Some(_), None) => return Err(misfit("there is no event time to wait within".into())),
            (None, Some(index)) if spec.keys.contains(&index) => Memory::UntilItsEventTime,
            (None, _) => Memory::ForEver,
        };
        let types: Vec<DataType> = spec.keys.iter().map(|key| fields[*key].data_type().clone()).collect();
        let codec = RowCodec::try_new(types).map_err(|error| misfit(error.to_string()))?;
        let named = spec.keys.iter().map(|key| format!("{} {}", fields[*key].name(), fields[*key].data_type()));
        let kind = match memory {
            Memory::ForEver => "for ever",
            Memory::UntilItsEventTime => "until its event time",
            Memory::Within { .. } => "within the watermark",
        };
        let schema_text = format!("key: {} | remembered {kind}", named.collect::<Vec<_>>().join(", "));
        let schema_id = Digest::of(format!("{FORMAT} {schema_text}").as_bytes()).to_string();
        let layout = if memory == Memory::UntilItsEventTime { Layout::Windowed } else { Layout::Hash };
        let family = FamilySpec { name: SEEN.into(), layout, schema_id: schema_id.clone() };
        let expiry = FamilySpec { name: EXPIRY.into(), layout: Layout::Windowed, schema_id };
        let operator_name = match memory {
            Memory::Within { .. } => "dedupeWithinWatermark",
            _ => "dedupe",
        };
        let metrics = OperatorMetrics {
            operator_name: operator_name.into(),
            rows_dropped_as_duplicates: Some(0),
            ..OperatorMetrics::default()
        };
        let state = Partitions::new(spec.uid.clone(), spec.partitions, family);
        Ok(Self { spec, memory, codec, schema_text, state, expiry, metrics, is_counting: false })
    }

    /// Starts the counters with the first rows of a batch, or with its barrier.
    fn count_this_batch(&mut self) {
        if std::mem::replace(&mut self.is_counting, true) {
            return;
        }
        let operator_name = std::mem::take(&mut self.metrics.operator_name);
        self.metrics =
            OperatorMetrics { operator_name, rows_dropped_as_duplicates: Some(0), ..OperatorMetrics::default() };
    }

    /// Entries per key: within the watermark each key is also in the order of expiry.
    fn entries_per_key(&self) -> u64 {
        if matches!(self.memory, Memory::Within { .. }) { 2 } else { 1 }
    }

    fn keep_first(&mut self, rows: &RecordBatch, context: &BatchContext) -> Result<BooleanArray, OperatorError> {
        let operator = self.describe();
        let failed = |source| OperatorError::State { operator: operator.clone(), source };
        let misread = |error: ArrowError| OperatorError::from_expression(&operator, error.into());
        let columns = self.spec.keys.iter().map(|key| unify_floats(rows.column(*key)));
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>().map_err(misread)?;
        let encoded = self.codec.conform(columns).and_then(|columns| self.codec.encode(&columns)).map_err(misread)?;
        let times = self.spec.event_time.map(|index| rows.column(index).as_primitive::<TimestampMicrosecondType>());
        let late_us = context.watermarks.map(|watermarks| watermarks.late.as_micros());
        let mut candidates: Vec<(ByteRows, Vec<usize>)> = vec![Default::default(); self.state.count() as usize];
        for row in 0..rows.num_rows() {
            let time = time_of(times, row);
            if time.zip(late_us).is_some_and(|(time, late)| time <= late) {
                self.metrics.rows_dropped_by_watermark += 1;
                continue;
            }
            let key = encoded.row(row);
            let (keys, indices) = &mut candidates[partition_of(key, self.state.count())];
            match self.memory {
                Memory::UntilItsEventTime => keys.push_parts(&[&prefix(time, 0).to_be_bytes(), key]),
                _ => keys.push(key),
            }
            indices.push(row);
        }
        let mut keep = vec![false; rows.num_rows()];
        let (mut kept, mut duplicates) = (0, 0);
        for (partition, (keys, indices)) in self.state.all().iter_mut().zip(&candidates) {
            let mut new = New::default();
            let seen = partition.store.get_many(partition.family, keys).map_err(failed)?;
            let mut first = HashSet::new();
            for ((key, known), row) in keys.iter().zip(seen).zip(indices) {
                if known.is_some() || !first.insert(key) {
                    duplicates += 1;
                    continue;
                }
                keep[*row] = true;
                kept += 1;
                let expiry = match self.memory {
                    Memory::Within { delay_us } => {
                        prefix(time_of(times, *row).or(Some(0)), delay_us).to_be_bytes().to_vec()
                    }
                    _ => Vec::new(),
                };
                new.keys.push(key);
                new.values.push(&expiry);
                if !expiry.is_empty() {
                    new.expiries.push_parts(&[&expiry, key]);
                }
            }
            partition.store.put_many(partition.family, &new.keys, &new.values).map_err(failed)?;
            if !new.expiries.is_empty() {
                let family = partition.store.family(&self.expiry).map_err(failed)?;
                let nothing = empty_rows(new.expiries.len());
                partition.store.put_many(family, &new.expiries, &nothing).map_err(failed)?;
            }
        }
        self.metrics.rows_updated += kept;
        *self.metrics.rows_dropped_as_duplicates.get_or_insert(0) += duplicates;
        self.state.count_change(kept * self.entries_per_key(), 0);
        Ok(BooleanArray::from(keep))
    }

    fn forget(&mut self, watermark: Watermark) -> Result<(), StateError> {
        let through = ordered(watermark.as_micros()).min(NEVER - 1);
        let mut removed = 0;
        for partition in self.state.all() {
            match self.memory {
                Memory::ForEver => {}
                Memory::UntilItsEventTime => removed += partition.store.delete_through(partition.family, through)?,
                Memory::Within { .. } => {
                    let family = partition.store.family(&self.expiry)?;
                    let mut keys = ByteRows::new();
                    partition.store.scan_through(family, through, &mut |entry, _| keys.push(&entry[8..]))?;
                    partition.store.delete_many(partition.family, &keys)?;
                    removed += partition.store.delete_through(family, through)?;
                }
            }
        }
        self.metrics.rows_removed = removed;
        self.state.count_change(0, removed * self.entries_per_key());
        Ok(())
    }
}

fn time_of(times: Option<&TimestampMicrosecondArray>, row: usize) -> Option<i64> {
    times.filter(|times| times.is_valid(row)).map(|times| times.value(row))
}

fn prefix(time: Option<i64>, delay_us: i64) -> u64 {
    time.map_or(NEVER, |time| ordered(time.saturating_add(delay_us)))
}

fn empty_rows(rows: usize) -> ByteRows {
    let mut empty = ByteRows::with_capacity(rows, 0);
    (0..rows).for_each(|_| empty.push(&[]));
    empty
}

impl Operator for Deduplicate {
    fn schema(&self) -> &SchemaRef {
        &self.spec.schema
    }

    fn describe(&self) -> String {
        format!("Deduplicate {}: {}", self.spec.uid, self.schema_text)
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let started = Instant::now();
        self.count_this_batch();
        let keep = self.keep_first(rows, context)?;
        let kept = filter_record_batch(rows, &keep)
            .map_err(|error| OperatorError::from_expression(&self.describe(), error.into()))?;
        if kept.num_rows() > 0 {
            out.push(kept);
        }
        self.metrics.updates_ms += started.elapsed().as_millis() as u64;
        Ok(())
    }

    fn barrier(&mut self, context: &BatchContext, _out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let started = Instant::now();
        self.count_this_batch();
        if let Some(watermarks) = context.watermarks {
            let operator = self.describe();
            self.forget(watermarks.eviction).map_err(|source| OperatorError::State { operator, source })?;
        }
        self.metrics.removals_ms = started.elapsed().as_millis() as u64;
        self.is_counting = false;
        Ok(())
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }

    fn abort(&mut self) {
        self.is_counting = false;
    }
}

impl Stateful for Deduplicate {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        let fields = self.spec.schema.fields();
        let key = StatePart::row(self.spec.keys.iter().map(|key| Arc::clone(&fields[*key])).collect::<Vec<_>>());
        let schema_id = self.state.schema_id().to_owned();
        let family =
            |name: &str, key, value| StateFamily { name: name.into(), schema_id: schema_id.clone(), key, value };
        let time = || StatePart::EventTime("event_time".into());
        let expires = || StatePart::EventTime("expires".into());
        match self.memory {
            Memory::ForEver => vec![family(SEEN, vec![key], Vec::new())],
            Memory::UntilItsEventTime => vec![family(SEEN, vec![time(), key], Vec::new())],
            Memory::Within { .. } => {
                vec![family(SEEN, vec![key.clone()], vec![expires()]), family(EXPIRY, vec![expires(), key], Vec::new())]
            }
        }
    }

    fn schema_text(&self) -> String {
        self.schema_text.clone()
    }

    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool {
        new > old
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }

    fn rows_total(&self) -> u64 {
        self.state.totals().keys / self.entries_per_key()
    }
}
