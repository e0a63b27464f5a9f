//! LIMIT: the first rows of a query's life, or of each batch.
//!
//! ```text
//!   GlobalLimit 4:  batch 0: a b ──► a b      batch 1: c d e ──► c d      batch 2: f ──► (nothing, ever again)
//!   BatchLimit 4:   batch 0: a b ──► a b      batch 1: a b c d e ──► a b c d
//! ```
//! ```sql
//! SELECT word FROM events LIMIT 4
//! ```
//!
//! In append mode LIMIT counts over the whole life of the query: [`GlobalLimit`] keeps one row of state, how many rows it has
//! let through, so a restart goes on counting. In complete mode each batch is a whole result, so
//! [`BatchLimit`] starts anew in each. Which rows are the first is the order of arrival, unless a sort stands below.

use crate::partitions::Partitions;
use crate::{BatchContext, Operator, OperatorError, OperatorMetrics, StateFamily, StatePart, Stateful};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use millstream_common::{Digest, OperatorUid, Watermark};
use millstream_state::{ByteRows, FamilySpec, Layout};
use std::time::Instant;

const SCHEMA: &str = "key: fixed text `rows` | value: rows let through, u64 little-endian";
const KEY: &[u8] = b"rows";
const FAMILY: &str = "limit";

/// Lets the first rows of each batch through.
#[derive(Debug)]
pub struct BatchLimit {
    schema: SchemaRef,
    skip: usize,
    fetch: Option<usize>,
    seen: usize,
}

impl BatchLimit {
    /// Drops `skip` rows of each batch, then lets `fetch` through (all, if `None`).
    pub fn new(skip: usize, fetch: Option<usize>, input: SchemaRef) -> Self {
        Self { schema: input, skip, fetch, seen: 0 }
    }
}

impl Operator for BatchLimit {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        match self.fetch {
            Some(fetch) => format!("Limit of each batch: {fetch}, after {}", self.skip),
            None => format!("Limit of each batch: all, after {}", self.skip),
        }
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let last = self.fetch.map_or(usize::MAX, |fetch| self.skip.saturating_add(fetch));
        let from = self.skip.saturating_sub(self.seen).min(rows.num_rows());
        let to = last.saturating_sub(self.seen).min(rows.num_rows());
        self.seen += rows.num_rows();
        if from < to {
            out.push(rows.slice(from, to - from));
        }
        Ok(())
    }

    fn barrier(&mut self, _context: &BatchContext, _out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        self.seen = 0;
        Ok(())
    }

    fn abort(&mut self) {
        self.seen = 0;
    }
}

/// Lets the first rows of the query's life through.
pub struct GlobalLimit {
    schema: SchemaRef,
    limit: u64,
    state: Partitions,
    /// Rows let through before the batch and until now; read from the store with the batch's first rows.
    passed: Option<(u64, u64)>,
    metrics: OperatorMetrics,
}

impl GlobalLimit {
    /// Lets `limit` rows through.
    pub fn new(uid: OperatorUid, limit: u64, input: SchemaRef) -> Self {
        let family = FamilySpec {
            name: FAMILY.to_owned(),
            layout: Layout::Hash,
            schema_id: Digest::of(SCHEMA.as_bytes()).to_string(),
        };
        let metrics = OperatorMetrics { operator_name: "globalLimit".to_owned(), ..OperatorMetrics::default() };
        Self { schema: input, limit, state: Partitions::new(uid, 1, family), passed: None, metrics }
    }

    fn key() -> ByteRows {
        let mut keys = ByteRows::with_capacity(1, KEY.len());
        keys.push(KEY);
        keys
    }

    fn stored(&mut self) -> Result<u64, OperatorError> {
        let operator = self.describe();
        let Some(partition) = self.state.all().first_mut() else {
            return Err(OperatorError::Misfit { operator, reason: "its state is not open".to_owned() });
        };
        let found = match partition.store.get_many(partition.family, &Self::key()) {
            Ok(found) => found,
            Err(source) => return Err(OperatorError::State { operator, source }),
        };
        match found.first() {
            Some(Some(bytes)) => match <[u8; 8]>::try_from(*bytes) {
                Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
                Err(_) => {
                    let reason = format!("a counter of {} bytes instead of 8", bytes.len());
                    Err(OperatorError::StateRow { operator, source: ArrowError::ParseError(reason) })
                }
            },
            _ => Ok(0),
        }
    }
}

impl Operator for GlobalLimit {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        format!("Limit of the query: {}", self.limit)
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let (before, now) = match self.passed {
            Some(passed) => passed,
            None => {
                let stored = self.stored()?;
                (stored, stored)
            }
        };
        let room = usize::try_from(self.limit.saturating_sub(now)).unwrap_or(usize::MAX);
        let passing = rows.num_rows().min(room);
        self.passed = Some((before, now + passing as u64));
        if passing > 0 {
            out.push(rows.slice(0, passing));
        }
        Ok(())
    }

    fn barrier(&mut self, _context: &BatchContext, _out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let started = Instant::now();
        self.metrics.rows_updated = 0;
        if let Some((before, now)) = self.passed.take()
            && now > before
        {
            let mut values = ByteRows::with_capacity(1, 8);
            values.push(&now.to_le_bytes());
            let operator = self.describe();
            if let Some(partition) = self.state.all().first_mut() {
                let kept = partition.store.put_many(partition.family, &Self::key(), &values);
                kept.map_err(|source| OperatorError::State { operator, source })?;
            }
            self.state.count_change(u64::from(before == 0), 0);
            self.metrics.rows_updated = 1;
        }
        self.metrics.updates_ms = started.elapsed().as_millis() as u64;
        Ok(())
    }

    fn abort(&mut self) {
        self.passed = None;
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for GlobalLimit {
    fn state(&self) -> &Partitions {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Partitions {
        &mut self.state
    }

    fn families(&self) -> Vec<StateFamily> {
        vec![StateFamily {
            name: FAMILY.to_owned(),
            schema_id: self.state.schema_id().to_owned(),
            key: vec![StatePart::Text("what".to_owned())],
            value: vec![StatePart::U64LittleEndian("passed".to_owned())],
        }]
    }

    fn schema_text(&self) -> String {
        SCHEMA.to_owned()
    }

    fn wants_no_data_batch(&self, _old: Watermark, _new: Watermark) -> bool {
        false
    }

    fn counters(&self) -> &OperatorMetrics {
        &self.metrics
    }
}
