//! Rows go to the partition of their key.

use super::{Rdd, in_parallel};
use crate::{Data, JobError, Key};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, OnceLock};

/// For each partition of the parent its rows by partition of the child.
type Buckets<T> = Vec<OnceLock<Vec<Vec<T>>>>;

impl<T: Data> Rdd<T> {
    /// The same rows, each in the partition that `place` says (modulo `partitions`). Rows keep their order.
    pub(super) fn shuffle(
        &self,
        partitions: usize,
        place: impl Fn(usize, usize, &T) -> u64 + Send + Sync + 'static,
    ) -> Self {
        let partitions = partitions.max(1);
        let buckets: Arc<Buckets<T>> = Arc::new((0..self.partition_count()).map(|_| OnceLock::new()).collect());
        let (parent, filled) = (self.clone(), Arc::clone(&buckets));
        let prepare = move || {
            let parts = parent.partitions()?;
            in_parallel(parent.workers(), parts.len(), |from| {
                let mut split: Vec<Vec<T>> = (0..partitions).map(|_| Vec::new()).collect();
                for (index, row) in parts[from].iter().enumerate() {
                    split[(place(from, index, row) % partitions as u64) as usize].push(row.clone());
                }
                filled[from].get_or_init(|| split);
                Ok(())
            })
        };
        let compute = move |to: usize| -> Result<Vec<T>, JobError> {
            let parts = buckets.iter().filter_map(OnceLock::get);
            Ok(parts.flat_map(|split| split[to].iter().cloned()).collect())
        };
        Self::new(partitions, self.workers(), Box::new(compute), Box::new(prepare))
    }
}

/// A hash that is the same in every run.
pub(super) fn hash_of<K: Key>(key: &K) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}
