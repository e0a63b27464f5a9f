//! The sink over a writer.

use super::Row;
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::{BatchId, OutputMode};
use std::error::Error;
use std::sync::{Mutex, PoisonError};

const NAME: &str = "foreach";
/// The only partition of a batch.
const PARTITION: u32 = 0;

type Failure = Box<dyn Error + Send + Sync>;

/// What the program does with rows (Spark's `ForeachWriter`). A batch works on a clone, so connections belong into `open`.
pub trait ForeachWriter: Clone + Send + 'static {
    /// Called first. `false` skips the rows of the batch, for example because they are there already.
    ///
    /// # Errors
    /// What fails the batch; `close` is not called then.
    fn open(&mut self, partition: u32, batch: BatchId) -> Result<bool, Box<dyn Error + Send + Sync>>;

    /// Called for each row when `open` gave `true`.
    ///
    /// # Errors
    /// What fails the batch, after `close` was called with it.
    fn process(&mut self, row: Row<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Called last when `open` gave an answer, with what went wrong in between.
    ///
    /// # Errors
    /// What fails the batch, unless it has failed before.
    fn close(&mut self, error: Option<&(dyn Error + Send + Sync)>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Makes sinks over copies of one writer.
pub struct ForeachFactory<W> {
    writer: Mutex<W>,
}

impl<W: ForeachWriter> ForeachFactory<W> {
    /// A factory for the writer.
    pub fn new(writer: W) -> Self {
        Self { writer: Mutex::new(writer) }
    }
}

impl<W: ForeachWriter> SinkFactory for ForeachFactory<W> {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(spec.options.only("sink `foreach`", &[])?)
    }

    fn open(&self, spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.check(spec)?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::new(ForeachSink { writer }))
    }
}

struct ForeachSink<W> {
    writer: W,
}

impl<W: ForeachWriter> Sink for ForeachSink<W> {
    fn description(&self) -> String {
        "ForeachSink".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let mut writer = self.writer.clone();
        let rows = write(&mut writer, batch).map_err(|source| SinkError::Function {
            sink: NAME.into(),
            batch: batch.id,
            source,
        })?;
        Ok(SinkReport { rows })
    }
}

fn write(writer: &mut impl ForeachWriter, batch: &SinkBatch<'_>) -> Result<u64, Failure> {
    let outcome = match guarded(|| writer.open(PARTITION, batch.id))? {
        true => batch.rows.iter().try_fold(0, |done, rows| process(writer, rows).map(|more| done + more)),
        false => Ok(0),
    };
    let closed = guarded(|| writer.close(outcome.as_ref().err().map(AsRef::as_ref)));
    let written = outcome?;
    closed.map(|()| written)
}

fn process(writer: &mut impl ForeachWriter, rows: &RecordBatch) -> Result<u64, Failure> {
    guarded(|| (0..rows.num_rows()).try_for_each(|index| writer.process(Row::new(rows, index))))?;
    Ok(rows.num_rows() as u64)
}

/// A panic of the program's code is a failure of its batch.
fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    millstream_common::guarded(call).unwrap_or_else(|panicked| Err(panicked.into()))
}
