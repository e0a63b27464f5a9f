//! Operations by key.

use super::shuffle::hash_of;
use super::{Groups, Rdd};
use crate::{Data, Key};
use std::sync::Arc;

/// How the values of a key become one: of the first value, of one more value, of two that were combined apart.
pub struct Combiner<V, C> {
    /// Of the first value.
    pub create: Arc<dyn Fn(V) -> C + Send + Sync>,
    /// Of one more value.
    pub merge_value: Arc<dyn Fn(C, V) -> C + Send + Sync>,
    /// Of two.
    pub merge_combiners: Arc<dyn Fn(C, C) -> C + Send + Sync>,
}

impl<V, C> Clone for Combiner<V, C> {
    fn clone(&self) -> Self {
        Self {
            create: Arc::clone(&self.create),
            merge_value: Arc::clone(&self.merge_value),
            merge_combiners: Arc::clone(&self.merge_combiners),
        }
    }
}

impl<V, C> Combiner<V, C> {
    /// Of three functions.
    pub fn new(
        create: impl Fn(V) -> C + Send + Sync + 'static,
        merge_value: impl Fn(C, V) -> C + Send + Sync + 'static,
        merge_combiners: impl Fn(C, C) -> C + Send + Sync + 'static,
    ) -> Self {
        Self {
            create: Arc::new(create),
            merge_value: Arc::new(merge_value),
            merge_combiners: Arc::new(merge_combiners),
        }
    }
}

impl<V: Data> Combiner<V, V> {
    /// Of one function that is associative and commutative.
    pub(crate) fn reducing(f: impl Fn(V, V) -> V + Send + Sync + 'static) -> Self {
        let f: Arc<dyn Fn(V, V) -> V + Send + Sync> = Arc::new(f);
        Self { create: Arc::new(|value| value), merge_value: Arc::clone(&f), merge_combiners: f }
    }
}

impl<V: Data> Combiner<V, Vec<V>> {
    /// All values of a key.
    pub(crate) fn grouping() -> Self {
        let add = |mut values: Vec<V>, value| {
            values.push(value);
            values
        };
        let merge = |mut one: Vec<V>, other: Vec<V>| {
            one.extend(other);
            one
        };
        Self::new(|value| vec![value], add, merge)
    }
}

/// Adds to what a key has; `first` makes it of the first.
fn add<C, V>(cell: &mut Option<C>, value: V, first: impl Fn(V) -> C, more: impl Fn(C, V) -> C) {
    *cell = Some(match cell.take() {
        Some(combined) => more(combined, value),
        None => first(value),
    });
}

fn settled<K: Key, C>(groups: Groups<K, Option<C>>) -> Vec<(K, C)> {
    groups.into_rows().into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

impl<K: Key, V: Data> Rdd<(K, V)> {
    /// The same rows in the partitions of their keys.
    pub fn partition_by_key(&self, partitions: usize) -> Self {
        self.shuffle(partitions, |_, _, (key, _)| hash_of(key))
    }

    /// The values of each key, combined, first within each partition.
    pub fn combine_by_key<C: Data>(&self, combiner: &Combiner<V, C>, partitions: usize) -> Rdd<(K, C)> {
        let (within, between) = (combiner.clone(), combiner.clone());
        let partly = self.narrow(move |_, rows| {
            let mut groups = Groups::<K, Option<C>>::new();
            for (key, value) in rows.iter().cloned() {
                add(groups.of(key), value, &*within.create, &*within.merge_value);
            }
            Ok(settled(groups))
        });
        partly.partition_by_key(partitions).narrow(move |_, rows| {
            let mut groups = Groups::<K, Option<C>>::new();
            for (key, value) in rows.iter().cloned() {
                add(groups.of(key), value, |value| value, &*between.merge_combiners);
            }
            Ok(settled(groups))
        })
    }

    /// The values of each key, reduced by an associative and commutative function.
    pub fn reduce_by_key(&self, f: impl Fn(V, V) -> V + Send + Sync + 'static, partitions: usize) -> Self {
        self.combine_by_key(&Combiner::reducing(f), partitions)
    }

    /// All values of each key.
    pub fn group_by_key(&self, partitions: usize) -> Rdd<(K, Vec<V>)> {
        self.partition_by_key(partitions).narrow(|_, rows| {
            let mut groups = Groups::<K, Vec<V>>::new();
            rows.iter().cloned().for_each(|(key, value)| groups.of(key).push(value));
            Ok(groups.into_rows())
        })
    }

    /// Each value by a function.
    pub fn map_values<W: Data>(&self, f: impl Fn(V) -> W + Send + Sync + 'static) -> Rdd<(K, W)> {
        self.map(move |(key, value)| (key, f(value)))
    }

    /// Each value by a function that gives any number of values.
    pub fn flat_map_values<W: Data, I: IntoIterator<Item = W>>(
        &self,
        f: impl Fn(V) -> I + Send + Sync + 'static,
    ) -> Rdd<(K, W)> {
        self.flat_map(move |(key, value)| {
            let with_key = |value| (key.clone(), value);
            f(value).into_iter().map(with_key).collect::<Vec<_>>()
        })
    }

    /// The keys, as often as they are there.
    pub fn keys(&self) -> Rdd<K> {
        self.map(|(key, _)| key)
    }

    /// The values.
    pub fn values(&self) -> Rdd<V> {
        self.map(|(_, value)| value)
    }
}
