//! Sources that are read from their beginning to where they end now.
//!
//! ```text
//!   open ──► fix the end ──► ranges of offsets ──► read them one after the other, as often as the plan scans
//! ```
//!
//! All ranges are found before anything is read, so a stream that the query reads twice has the same rows both times.
//! A range is as large as the user's read limit, or some files: that bounds what is in memory at a time. It is read on a thread
//! of its own: sources wait for their servers, and the plan runs on threads that must not wait.

use crate::query::folder_of_its_own;
use crate::{QuerySpec, RuntimeError, Session};
use arrow::array::RecordBatch;
use millstream_common::{ReadLimit, StopSignal};
use millstream_plan::batch_query::{BoundedInputs, BoundedRows, InputError};
use millstream_source::{Offset, Source, SourceContext, SourceError};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Files per range, where the user names no limit.
const FILES_AT_A_TIME: u64 = 64;

/// The sources of a query, each with an end.
#[derive(Debug)]
pub(super) struct FrozenInputs {
    inputs: Vec<(String, Arc<FrozenInput>)>,
    /// Where sources keep logs of their own; goes with the query.
    _scratch: tempfile::TempDir,
}

struct FrozenInput {
    source: Mutex<Box<dyn Source>>,
    /// The ends of the ranges, in order.
    ends: Vec<Offset>,
    rows: AtomicU64,
}

impl fmt::Debug for FrozenInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenInput").field("ranges", &self.ends.len()).finish_non_exhaustive()
    }
}

impl FrozenInputs {
    /// Opens every source of the query and fixes its end.
    pub(super) fn open(session: &Session, spec: &QuerySpec, stop: &StopSignal) -> Result<Self, RuntimeError> {
        let scratch = folder_of_its_own("the batch query")?;
        let mut inputs = Vec::new();
        for (number, stream) in spec.streams.iter().enumerate() {
            let folder = scratch.path().join(number.to_string());
            let context = SourceContext {
                files: session.open_checkpoint(&folder.display().to_string(), &[])?,
                clock: Arc::clone(session.clock()),
                stop: stop.clone(),
                default_parallelism: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            };
            let source = session.sources().factory(&stream.source)?.open_bounded(&stream.source, context)?;
            inputs.push((stream.source.name.clone(), Arc::new(FrozenInput::new(source)?)));
        }
        Ok(Self { inputs, _scratch: scratch })
    }

    /// Rows read so far, by stream.
    pub(super) fn rows(&self) -> Vec<(String, u64)> {
        self.inputs.iter().map(|(name, input)| (name.clone(), input.rows.load(Ordering::Relaxed))).collect()
    }
}

impl FrozenInput {
    fn new(mut source: Box<dyn Source>) -> Result<Self, SourceError> {
        source.prepare_available_now()?;
        let limit = match source.read_limit() {
            ReadLimit::AllAvailable => ReadLimit::MaxFiles(FILES_AT_A_TIME),
            limit => limit,
        };
        let mut ends: Vec<Offset> = Vec::new();
        while let Some(end) = source.latest_offset(ends.last(), limit)? {
            if ends.last() == Some(&end) {
                break;
            }
            ends.push(end);
        }
        Ok(Self { source: Mutex::new(source), ends, rows: AtomicU64::new(0) })
    }

    /// The rows of one range.
    fn read(&self, range: usize, projection: &[usize]) -> Result<Vec<RecordBatch>, SourceError> {
        let start = range.checked_sub(1).and_then(|before| self.ends.get(before));
        let Some(end) = self.ends.get(range) else { return Ok(Vec::new()) };
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let source = source.as_mut();
        let read = std::thread::scope(|scope| scope.spawn(|| source.read(start, end, projection)).join());
        let read = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let rows: Vec<RecordBatch> = read.into_iter().flatten().collect();
        self.rows.fetch_add(rows.iter().map(|batch| batch.num_rows() as u64).sum(), Ordering::Relaxed);
        Ok(rows)
    }
}

impl Drop for FrozenInput {
    fn drop(&mut self) {
        self.source.get_mut().unwrap_or_else(PoisonError::into_inner).stop();
    }
}

impl BoundedInputs for FrozenInputs {
    fn read(&self, stream: &str, projection: &[usize]) -> Result<BoundedRows, InputError> {
        let found = self.inputs.iter().find(|(name, _)| name == stream);
        let Some((_, input)) = found else { return Err(format!("there is no stream `{stream}`").into()) };
        let (input, projection) = (Arc::clone(input), projection.to_vec());
        let ranges = (0..input.ends.len()).map(move |range| input.read(range, &projection));
        Ok(Box::new(ranges.flat_map(|read| -> Box<dyn Iterator<Item = Result<RecordBatch, InputError>> + Send> {
            match read {
                Ok(rows) => Box::new(rows.into_iter().map(Ok)),
                Err(error) => Box::new(std::iter::once(Err(error.into()))),
            }
        })))
    }
}
