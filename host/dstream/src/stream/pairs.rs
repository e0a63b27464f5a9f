//! Operations by key on the rows of one batch.
//!
//! Each has a form with the number of partitions; without one it is `spark.default.parallelism`.

use super::DStream;
use crate::rdd::{Cogrouped, Combiner, OuterJoined, Rdd};
use crate::{Data, Key};
use std::sync::Arc;

impl<K: Key, V: Data> DStream<(K, V)> {
    /// All values of each key.
    pub fn group_by_key(&self) -> DStream<(K, Vec<V>)> {
        let frame = Arc::clone(&self.core.frame);
        self.derive("group_by_key", move |_, rows| Ok(rows.group_by_key(frame.parallelism())))
    }

    /// The values of each key, reduced by an associative and commutative function.
    pub fn reduce_by_key(&self, f: impl Fn(V, V) -> V + Send + Sync + 'static) -> Self {
        self.combined("reduce_by_key", Combiner::reducing(f), None)
    }

    /// As `reduce_by_key`, into that many partitions.
    pub fn reduce_by_key_into(&self, f: impl Fn(V, V) -> V + Send + Sync + 'static, partitions: usize) -> Self {
        self.combined("reduce_by_key", Combiner::reducing(f), Some(partitions))
    }

    /// The values of each key, combined: of the first value, of one more, and of two that were combined apart.
    pub fn combine_by_key<C: Data>(
        &self,
        create: impl Fn(V) -> C + Send + Sync + 'static,
        merge_value: impl Fn(C, V) -> C + Send + Sync + 'static,
        merge_combiners: impl Fn(C, C) -> C + Send + Sync + 'static,
    ) -> DStream<(K, C)> {
        self.combined("combine_by_key", Combiner::new(create, merge_value, merge_combiners), None)
    }

    pub(super) fn combined<C: Data>(
        &self,
        operation: &'static str,
        combiner: Combiner<V, C>,
        partitions: Option<usize>,
    ) -> DStream<(K, C)> {
        let frame = Arc::clone(&self.core.frame);
        self.derive(operation, move |_, rows| {
            Ok(rows.combine_by_key(&combiner, partitions.unwrap_or_else(|| frame.parallelism())))
        })
    }

    /// Each value by a function.
    pub fn map_values<W: Data>(&self, f: impl Fn(V) -> W + Send + Sync + 'static) -> DStream<(K, W)> {
        self.map(move |(key, value)| (key, f(value)))
    }

    /// Each value by a function that gives any number of values.
    pub fn flat_map_values<W: Data, I: IntoIterator<Item = W>>(
        &self,
        f: impl Fn(V) -> I + Send + Sync + 'static,
    ) -> DStream<(K, W)> {
        self.flat_map(move |(key, value)| {
            let with_key = |value| (key.clone(), value);
            f(value).into_iter().map(with_key).collect::<Vec<_>>()
        })
    }

    /// Each pair of values of a key that both streams have in the batch.
    pub fn join<W: Data>(&self, other: &DStream<(K, W)>) -> DStream<(K, (V, W))> {
        self.beside("join", other, |one, other, partitions| one.join(other, partitions))
    }

    /// As `join`, and each row of this stream whose key the other does not have.
    pub fn left_outer_join<W: Data>(&self, other: &DStream<(K, W)>) -> DStream<(K, (V, Option<W>))> {
        self.beside("left_outer_join", other, |one, other, partitions| one.left_outer_join(other, partitions))
    }

    /// As `join`, and each row of the other stream whose key this one does not have.
    pub fn right_outer_join<W: Data>(&self, other: &DStream<(K, W)>) -> DStream<(K, (Option<V>, W))> {
        self.beside("right_outer_join", other, |one, other, partitions| one.right_outer_join(other, partitions))
    }

    /// As `join`, and each row of either stream whose key the other does not have.
    pub fn full_outer_join<W: Data>(&self, other: &DStream<(K, W)>) -> DStream<OuterJoined<K, V, W>> {
        self.beside("full_outer_join", other, |one, other, partitions| one.full_outer_join(other, partitions))
    }

    /// Each key of either stream with its values of both.
    pub fn cogroup<W: Data>(&self, other: &DStream<(K, W)>) -> DStream<Cogrouped<K, V, W>> {
        self.beside("cogroup", other, |one, other, partitions| one.cogroup(other, partitions))
    }

    fn beside<W: Data, U: Data>(
        &self,
        operation: &'static str,
        other: &DStream<(K, W)>,
        work: impl Fn(&Rdd<(K, V)>, &Rdd<(K, W)>, usize) -> Rdd<U> + Send + Sync + 'static,
    ) -> DStream<U> {
        let frame = Arc::clone(&self.core.frame);
        self.derive_with(operation, other, move |_, one, two| Ok(work(one, two, frame.parallelism())))
    }
}
