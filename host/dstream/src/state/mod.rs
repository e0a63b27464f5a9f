//! What operations keep from batch to batch.
//!
//! ```text
//!   batch t: rows of the parent ──► advance ──► rows of this stream
//!                                     │
//!                                     └──► changes in the stores ──prepare──► files ──commit log──► commit
//! ```
//!
//! The values that a batch works with are in memory as the program's own types; the stores have the same as bytes, and
//! are read when a run begins.
//!
//! Rule of its life: each operation is brought on once per batch, in the order in which the program made them, before any
//! output operation runs. A batch that fails ends the run, so nothing here is taken back.
//!
//! It does not know the logs: the journal opens the stores and names their files.

mod batch_rows;
mod identity;
mod keyed;
mod mapping;
mod mapping_stream;
mod reduced_window;
mod spec;
mod stores;
mod update;
mod window;

pub(crate) use batch_rows::BatchRows;
pub(crate) use identity::Identity;
pub(crate) use keyed::{KeyedRows, spread, spread_once};
pub use mapping_stream::MapWithStateStream;
pub(crate) use reduced_window::{Inverse, ReducedWindow};
pub use spec::{State, StateSpec};
pub(crate) use stores::{Changes, StoreSet};
pub(crate) use update::{Update, UpdateFn};
pub(crate) use window::Window;

use crate::lock::locked;
use crate::rdd::Rdd;
use crate::{DStreamError, JobError, Time};
use std::sync::{Mutex, PoisonError};

/// The rows that an operation gave last, and in which batch.
pub(crate) type Latest<T> = Option<(Time, Rdd<T>)>;

/// An operation that keeps something.
pub(crate) trait Stateful: Send + Sync {
    /// Name, form and number of partitions.
    fn identity(&self) -> &Identity;
    /// Its stores; none without a checkpoint.
    fn stores(&self) -> &StoreSet;
    /// The stores are open, or there will be none: reads what is in them. `fresh` when no batch ever had this operation.
    fn restore(&self, fresh: bool) -> Result<(), DStreamError>;
    /// Brings it to `time`.
    fn advance(&self, time: Time) -> Result<(), DStreamError>;
}

/// Work for each number below `count` on some threads, with its results in order.
pub(crate) fn each<R: Send>(
    workers: usize,
    count: usize,
    work: impl Fn(usize) -> Result<R, JobError> + Sync,
) -> Result<Vec<R>, JobError> {
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    crate::rdd::in_parallel(workers, count, |index| {
        let result = work(index)?;
        *locked(&results[index]) = Some(result);
        Ok(())
    })?;
    Ok(results.into_iter().filter_map(|cell| cell.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
}
