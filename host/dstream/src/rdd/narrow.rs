//! Operations that need no other partition.

use super::Rdd;
use super::shuffle::hash_of;
use crate::{Data, JobError, Key};
use std::sync::Arc;

impl<T: Data> Rdd<T> {
    /// A child whose partition `i` is made of partition `i` alone.
    pub(crate) fn narrow<U: Data>(
        &self,
        work: impl Fn(usize, &[T]) -> Result<Vec<U>, JobError> + Send + Sync + 'static,
    ) -> Rdd<U> {
        let (parent, prepared) = (self.clone(), self.clone());
        let compute = move |index: usize| work(index, &parent.cell(index)?);
        Rdd::new(self.partition_count(), self.workers(), Box::new(compute), Box::new(move || prepared.prepare()))
    }

    /// Each row by a function.
    pub fn map<U: Data>(&self, f: impl Fn(T) -> U + Send + Sync + 'static) -> Rdd<U> {
        self.narrow(move |_, rows| Ok(rows.iter().cloned().map(&f).collect()))
    }

    /// Each row by a function that gives any number of rows.
    pub fn flat_map<U: Data, I: IntoIterator<Item = U>>(&self, f: impl Fn(T) -> I + Send + Sync + 'static) -> Rdd<U> {
        self.narrow(move |_, rows| Ok(rows.iter().cloned().flat_map(&f).collect()))
    }

    /// The rows that a function wants.
    pub fn filter(&self, f: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.narrow(move |_, rows| Ok(rows.iter().filter(|row| f(row)).cloned().collect()))
    }

    /// Each partition by a function.
    pub fn map_partitions<U: Data, I: IntoIterator<Item = U>>(
        &self,
        f: impl Fn(Vec<T>) -> I + Send + Sync + 'static,
    ) -> Rdd<U> {
        self.narrow(move |_, rows| Ok(f(rows.to_vec()).into_iter().collect()))
    }

    /// Each partition by a function that may fail, with its number.
    pub fn try_map_partitions<U: Data>(
        &self,
        f: impl Fn(usize, &[T]) -> Result<Vec<U>, JobError> + Send + Sync + 'static,
    ) -> Rdd<U> {
        self.narrow(f)
    }

    /// Each partition as one row.
    pub fn glom(&self) -> Rdd<Vec<T>> {
        self.narrow(|_, rows| Ok(vec![rows.to_vec()]))
    }

    /// Each row with the key that a function gives it.
    pub fn key_by<K: Data>(&self, f: impl Fn(&T) -> K + Send + Sync + 'static) -> Rdd<(K, T)> {
        self.map(move |row| (f(&row), row))
    }

    /// The rows of both; partitions stay as they are.
    pub fn union(&self, other: &Self) -> Self {
        Self::union_all(&[self.clone(), other.clone()])
    }

    /// The rows of all; partitions stay as they are.
    pub fn union_all(all: &[Self]) -> Self {
        if let [only] = all {
            return only.clone();
        }
        let all: Arc<[Self]> = all.into();
        let places: Vec<(usize, usize)> = all
            .iter()
            .enumerate()
            .flat_map(|(number, rdd)| (0..rdd.partition_count()).map(move |index| (number, index)))
            .collect();
        let workers = all.iter().map(Self::workers).max().unwrap_or_else(super::default_workers);
        let (count, parents) = (places.len(), Arc::clone(&all));
        let compute = move |at: usize| {
            let (number, index) = places[at];
            Ok(all[number].cell(index)?.to_vec())
        };
        Self::new(count, workers, Box::new(compute), Box::new(move || parents.iter().try_for_each(Self::prepare)))
    }

    /// The same rows spread evenly over another number of partitions.
    pub fn repartition(&self, partitions: usize) -> Self {
        self.shuffle(partitions, |from, index, _| (from as u64).wrapping_add(index as u64))
    }

    /// The rows in the order of what a function says of them; in one partition for each that there was, in order.
    pub fn sort_by<O: Ord>(&self, f: impl Fn(&T) -> O + Send + Sync + 'static, ascending: bool) -> Self {
        let partitions = self.partition_count().max(1);
        let gathered = self.shuffle(1, |_, _, _| 0);
        let sorted = gathered.narrow(move |_, rows| {
            let mut rows = rows.to_vec();
            if ascending {
                rows.sort_by_key(|row| f(row));
            } else {
                rows.sort_by_key(|row| std::cmp::Reverse(f(row)));
            }
            Ok(rows)
        });
        let parent = sorted.clone();
        let compute = move |index: usize| {
            let rows = sorted.cell(0)?;
            let share = rows.len().div_ceil(partitions).max(1);
            Ok(rows.iter().skip(index * share).take(share).cloned().collect())
        };
        Self::new(partitions, self.workers(), Box::new(compute), Box::new(move || parent.prepare()))
    }
}

impl<T: Key> Rdd<T> {
    /// Each row once, by as many partitions as there were.
    pub fn distinct(&self) -> Self {
        self.shuffle(self.partition_count(), |_, _, row| hash_of(row)).narrow(|_, rows| {
            let mut groups = super::Groups::<T, ()>::new();
            rows.iter().for_each(|row| *groups.of(row.clone()) = ());
            Ok(groups.into_rows().into_iter().map(|(row, ())| row).collect())
        })
    }

    /// Each row with how often it is there.
    pub fn count_by_value(&self) -> Rdd<(T, i64)> {
        self.map(|row| (row, 1)).reduce_by_key(|a, b| a + b, self.partition_count())
    }
}
