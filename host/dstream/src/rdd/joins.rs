//! Two sets of rows by key.

use super::{Groups, Rdd};
use crate::{Data, Key};

/// A key with its values of both sides.
pub type Cogrouped<K, V, W> = (K, (Vec<V>, Vec<W>));
/// A key with a value of each side, one of which may be missing.
pub type OuterJoined<K, V, W> = (K, (Option<V>, Option<W>));

impl<K: Key, V: Data> Rdd<(K, V)> {
    /// Each key of either side with its values of both.
    pub fn cogroup<W: Data>(&self, other: &Rdd<(K, W)>, partitions: usize) -> Rdd<Cogrouped<K, V, W>> {
        let (one, other) = (self.partition_by_key(partitions), other.partition_by_key(partitions));
        let (left, right) = (one.clone(), other.clone());
        let compute = move |index: usize| {
            let mut groups = Groups::<K, (Vec<V>, Vec<W>)>::new();
            one.cell(index)?.iter().cloned().for_each(|(key, value)| groups.of(key).0.push(value));
            other.cell(index)?.iter().cloned().for_each(|(key, value)| groups.of(key).1.push(value));
            Ok(groups.into_rows())
        };
        let prepare = move || left.prepare().and_then(|()| right.prepare());
        Rdd::new(partitions.max(1), self.workers(), Box::new(compute), Box::new(prepare))
    }

    /// Each pair of values of a key that both sides have.
    pub fn join<W: Data>(&self, other: &Rdd<(K, W)>, partitions: usize) -> Rdd<(K, (V, W))> {
        self.cogroup(other, partitions).flat_map_values(|(left, right)| {
            let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one.clone(), other.clone())));
            pairs.collect::<Vec<_>>()
        })
    }

    /// As `join`, and each row of this side whose key the other does not have.
    pub fn left_outer_join<W: Data>(&self, other: &Rdd<(K, W)>, partitions: usize) -> Rdd<(K, (V, Option<W>))> {
        self.cogroup(other, partitions).flat_map_values(|(left, right)| {
            let right = optional(&right);
            let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one.clone(), other.clone())));
            pairs.collect::<Vec<_>>()
        })
    }

    /// As `join`, and each row of the other side whose key this one does not have.
    pub fn right_outer_join<W: Data>(&self, other: &Rdd<(K, W)>, partitions: usize) -> Rdd<(K, (Option<V>, W))> {
        self.cogroup(other, partitions).flat_map_values(|(left, right)| {
            let left = optional(&left);
            let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one.clone(), other.clone())));
            pairs.collect::<Vec<_>>()
        })
    }

    /// As `join`, and each row of either side whose key the other does not have.
    pub fn full_outer_join<W: Data>(&self, other: &Rdd<(K, W)>, partitions: usize) -> Rdd<OuterJoined<K, V, W>> {
        self.cogroup(other, partitions).flat_map_values(|(left, right)| {
            let (left, right) = (optional(&left), optional(&right));
            let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one.clone(), other.clone())));
            pairs.collect::<Vec<_>>()
        })
    }
}

/// The values; one that is missing when there are none.
fn optional<V: Clone>(values: &[V]) -> Vec<Option<V>> {
    if values.is_empty() { vec![None] } else { values.iter().cloned().map(Some).collect() }
}
