//! What evaluates.

use super::{Rdd, guarded, in_parallel};
use crate::lock::locked;
use crate::{Data, JobError};
use std::sync::{Mutex, PoisonError};

impl<T: Data> Rdd<T> {
    /// All rows, partition by partition.
    ///
    /// # Errors
    /// When a function that the rows depend on panicked or failed; so for all actions.
    pub fn collect(&self) -> Result<Vec<T>, JobError> {
        let parts = self.partitions()?;
        Ok(parts.iter().flat_map(|rows| rows.iter().cloned()).collect())
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    pub fn count(&self) -> Result<u64, JobError> {
        Ok(self.partitions()?.iter().map(|rows| rows.len() as u64).sum())
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    pub fn is_empty(&self) -> Result<bool, JobError> {
        Ok(self.partitions()?.iter().all(|rows| rows.is_empty()))
    }

    /// The first `count` rows; later partitions are left alone when they are not needed.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    pub fn take(&self, count: usize) -> Result<Vec<T>, JobError> {
        self.prepare()?;
        let mut taken = Vec::new();
        for index in 0..self.partition_count() {
            if taken.len() >= count {
                break;
            }
            taken.extend(self.cell(index)?.iter().take(count - taken.len()).cloned());
        }
        Ok(taken)
    }

    /// The first row, if there is one.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    pub fn first(&self) -> Result<Option<T>, JobError> {
        Ok(self.take(1)?.pop())
    }

    /// All rows reduced by an associative and commutative function; `None` without rows.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    pub fn reduce(&self, f: impl Fn(T, T) -> T + Send + Sync) -> Result<Option<T>, JobError> {
        let parts = self.partitions()?;
        let reduced: Mutex<Vec<(usize, T)>> = Mutex::default();
        in_parallel(self.workers(), parts.len(), |index| {
            if let Some(value) = parts[index].iter().cloned().reduce(&f) {
                locked(&reduced).push((index, value));
            }
            Ok(())
        })?;
        let mut reduced = reduced.into_inner().unwrap_or_else(PoisonError::into_inner);
        reduced.sort_by_key(|(index, _)| *index);
        guarded(|| Ok(reduced.into_iter().map(|(_, value)| value).reduce(f)))
    }

    /// Calls a function with each partition, several at a time.
    ///
    /// # Errors
    /// As [`collect`](Self::collect), and when the function fails.
    pub fn foreach_partition(
        &self,
        f: impl Fn(usize, &[T]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + Sync,
    ) -> Result<(), JobError> {
        let parts = self.partitions()?;
        in_parallel(self.workers(), parts.len(), |index| f(index, &parts[index]).map_err(JobError::failed))
    }

    /// Calls a function with each row, several partitions at a time.
    ///
    /// # Errors
    /// As [`collect`](Self::collect), and when the function fails.
    pub fn foreach(
        &self,
        f: impl Fn(&T) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + Sync,
    ) -> Result<(), JobError> {
        self.foreach_partition(|_, rows| rows.iter().try_for_each(&f))
    }
}
