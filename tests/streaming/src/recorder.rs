//! A sink that keeps what each batch gave and compares when a batch comes again.

use crate::text;
use arrow::record_batch::RecordBatch;
use millstream_common::{OutputMode, QueryId};
use millstream_sink::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The batches that a query gave. Clones share them.
///
/// A batch that comes again must have the same rows: that is what lets a sink be idempotent. It outlives the runs of a
/// query as a sink's place does.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    query: Option<QueryId>,
    batches: BTreeMap<u64, Vec<String>>,
    /// Batches that no sink sees.
    skipped: BTreeSet<u64>,
    again: u64,
}

impl Recorded {
    /// The batch that must come next, if no earlier one comes again.
    fn next(&self) -> u64 {
        let newest = self.batches.last_key_value();
        let mut next = newest.map_or(0, |(newest, _)| newest + 1);
        while self.skipped.contains(&next) {
            next += 1;
        }
        next
    }
}

impl Recorder {
    /// The rows per batch, in the order in which they came.
    pub fn batches(&self) -> BTreeMap<u64, Vec<String>> {
        self.lock().batches.clone()
    }

    /// A batch will not come: it only spreads state anew.
    pub fn skip(&self, batch: u64) {
        self.lock().skipped.insert(batch);
    }

    /// How many batches came again.
    pub fn again(&self) -> u64 {
        self.lock().again
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fail(reason: String) -> SinkError {
    SinkError::Schema { sink: "recorder".into(), reason }
}

fn sorted(rows: &[String]) -> Vec<String> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

impl SinkFactory for Recorder {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(spec.options.only("sink `recorder`", &[])?)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.check(spec)?;
        let mut recorded = self.lock();
        if recorded.query.is_some_and(|query| query != context.query) && !recorded.batches.is_empty() {
            return Err(fail(format!("it has batches of {:?} and is opened by {}", recorded.query, context.query)));
        }
        recorded.query = Some(context.query);
        Ok(Box::new(self.clone()))
    }
}

impl Sink for Recorder {
    fn description(&self) -> String {
        "Recorder".into()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let rows = text::rows(batch.rows).map_err(|error| fail(error.to_string()))?;
        let count = batch.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        let mut recorded = self.lock();
        let next = recorded.next();
        match recorded.batches.get(&batch.id.0) {
            Some(earlier) if sorted(earlier) != sorted(&rows) => {
                return Err(fail(format!("batch {} gave {earlier:?} and then {rows:?}", batch.id)));
            }
            Some(_) => recorded.again += 1,
            None if batch.id.0 != next => {
                return Err(fail(format!("batch {} comes, and {next} is next", batch.id)));
            }
            None => drop(recorded.batches.insert(batch.id.0, rows)),
        }
        Ok(SinkReport { rows: count })
    }
}
