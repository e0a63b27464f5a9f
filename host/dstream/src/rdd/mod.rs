//! The rows of one batch of a stream: partitions, evaluated when they are asked for, once, on all cores.
//!
//! ```text
//!   input ──map──► filter ──► pairs ──shuffle──► reduced ──► collect, foreach, …
//!          narrow: partition i of the child needs partition i of the parent
//!                                  wide: each partition needs all of the parent; it is prepared before
//! ```
//!
//! Rule of its life: a value. What it holds never changes, and what was evaluated is shared by all who use it. A
//! function that panics makes the value a failure; it is not called again.
//!
//! It knows no streams and no time.

mod actions;
mod groups;
mod joins;
mod narrow;
mod pairs;
mod shuffle;
#[cfg(test)]
mod tests;

use crate::input::{KafkaOffsetRange, partitions_of};
use crate::lock::locked;
use crate::{Data, JobError};
use millstream_checkpoint::OffsetRange;
use millstream_common::Panicked;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub(crate) use groups::Groups;
pub use joins::{Cogrouped, OuterJoined};
pub use pairs::Combiner;

/// What a direct stream read for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRange {
    /// The name of the input.
    pub input: String,
    /// The offsets, as the source has them: after `start`, up to and including `end`.
    pub range: OffsetRange,
}

type Partition<T> = Result<Arc<Vec<T>>, JobError>;
type Compute<T> = Box<dyn Fn(usize) -> Result<Vec<T>, JobError> + Send + Sync>;
type Prepare = Box<dyn Fn() -> Result<(), JobError> + Send + Sync>;

struct Node<T> {
    cells: Vec<OnceLock<Partition<T>>>,
    compute: Compute<T>,
    prepare: Prepare,
    prepared: OnceLock<Result<(), JobError>>,
    workers: usize,
    ranges: Vec<InputRange>,
}

/// The rows of one batch.
pub struct Rdd<T>(Arc<Node<T>>);

impl<T> Clone for Rdd<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> std::fmt::Debug for Rdd<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rdd").field("partitions", &self.0.cells.len()).finish_non_exhaustive()
    }
}

impl<T: Data> Rdd<T> {
    /// Rows that are there already, in their partitions.
    pub fn from_partitions(partitions: Vec<Vec<T>>) -> Self {
        Self::of_input(partitions, default_workers(), Vec::new())
    }

    /// Rows, spread over at most `partitions` partitions in order.
    pub fn parallelize(rows: Vec<T>, partitions: usize) -> Self {
        let share = rows.len().div_ceil(partitions.max(1)).max(1);
        let mut rows = rows.into_iter().peekable();
        let mut parts = Vec::new();
        while rows.peek().is_some() {
            parts.push(rows.by_ref().take(share).collect());
        }
        Self::from_partitions(parts)
    }

    /// No rows.
    pub fn empty() -> Self {
        Self::from_partitions(Vec::new())
    }

    fn new(partitions: usize, workers: usize, compute: Compute<T>, prepare: Prepare) -> Self {
        Self(Arc::new(Node {
            cells: (0..partitions).map(|_| OnceLock::new()).collect(),
            compute,
            prepare,
            prepared: OnceLock::new(),
            workers,
            ranges: Vec::new(),
        }))
    }

    /// The same rows, evaluated by at most that many threads, and read from those ranges.
    pub(crate) fn of_input(partitions: Vec<Vec<T>>, workers: usize, ranges: Vec<InputRange>) -> Self {
        let cells = partitions.into_iter().map(|rows| OnceLock::from(Ok(Arc::new(rows)))).collect();
        let (compute, prepare): (Compute<T>, Prepare) = (Box::new(|_| Ok(Vec::new())), Box::new(|| Ok(())));
        Self(Arc::new(Node { cells, compute, prepare, prepared: OnceLock::new(), workers, ranges }))
    }

    /// The number of partitions.
    pub fn partition_count(&self) -> usize {
        self.0.cells.len()
    }

    /// The offsets that these rows were read from. Only the rows of a direct stream itself have them, not what is made of
    /// them.
    pub fn offset_ranges(&self) -> &[InputRange] {
        &self.0.ranges
    }

    /// The same for a direct stream of Kafka, partition by partition: Spark's `HasOffsetRanges`.
    pub fn kafka_offset_ranges(&self) -> Vec<KafkaOffsetRange> {
        self.0.ranges.iter().flat_map(partitions_of).collect()
    }

    fn workers(&self) -> usize {
        self.0.workers
    }

    fn prepare(&self) -> Result<(), JobError> {
        self.0.prepared.get_or_init(|| guarded(&*self.0.prepare)).clone()
    }

    /// Partition `index`, which is prepared.
    fn cell(&self, index: usize) -> Partition<T> {
        self.0.cells[index].get_or_init(|| guarded(|| (self.0.compute)(index)).map(Arc::new)).clone()
    }

    /// All partitions, evaluated.
    ///
    /// # Errors
    /// When a function that the rows depend on panicked or failed.
    pub fn partitions(&self) -> Result<Vec<Arc<Vec<T>>>, JobError> {
        self.prepare()?;
        let missing: Vec<usize> =
            (0..self.partition_count()).filter(|index| self.0.cells[*index].get().is_none()).collect();
        in_parallel(self.workers(), missing.len(), |at| self.cell(missing[at]).map(drop))?;
        (0..self.partition_count()).map(|index| self.cell(index)).collect()
    }
}

/// How many threads work on a batch unless the settings say otherwise: one per core.
pub(crate) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs a function of the program; a panic is a failure.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Result<R, JobError>) -> Result<R, JobError> {
    millstream_common::guarded(work).unwrap_or_else(|Panicked { message }| Err(JobError::Panicked { message }))
}

/// Does the tasks `0..count` on at most `workers` threads; the first failure, by number, is the answer. Threads live as
/// long as the work.
pub(crate) fn in_parallel(
    workers: usize,
    count: usize,
    work: impl Fn(usize) -> Result<(), JobError> + Sync,
) -> Result<(), JobError> {
    let workers = workers.min(count);
    if workers <= 1 {
        return (0..count).try_for_each(|index| guarded(|| work(index)));
    }
    let (next, first) = (AtomicUsize::new(0), Mutex::new(None::<(usize, JobError)>));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    if let Err(error) = guarded(|| work(index)) {
                        next.store(count, Ordering::Relaxed);
                        let mut first = locked(&first);
                        if first.as_ref().is_none_or(|(before, _)| index < *before) {
                            *first = Some((index, error));
                        }
                    }
                }
            });
        }
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
}
