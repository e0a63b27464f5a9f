//! Operations on the rows of one batch.

use super::{DStream, NewStream, Role, cannot_combine};
use crate::rdd::Rdd;
use crate::{Data, Key};
use std::sync::Arc;

impl<T: Data> DStream<T> {
    /// Each row by a function.
    pub fn map<U: Data>(&self, f: impl Fn(T) -> U + Send + Sync + 'static) -> DStream<U> {
        let f = Arc::new(f);
        self.derive("map", move |_, rows| {
            let f = Arc::clone(&f);
            Ok(rows.map(move |row| f(row)))
        })
    }

    /// Each row by a function that gives any number of rows.
    pub fn flat_map<U: Data, I: IntoIterator<Item = U> + 'static>(
        &self,
        f: impl Fn(T) -> I + Send + Sync + 'static,
    ) -> DStream<U> {
        let f = Arc::new(f);
        self.derive("flat_map", move |_, rows| {
            let f = Arc::clone(&f);
            Ok(rows.flat_map(move |row| f(row)))
        })
    }

    /// The rows that a function wants.
    pub fn filter(&self, f: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        let f = Arc::new(f);
        self.derive("filter", move |_, rows| {
            let f = Arc::clone(&f);
            Ok(rows.filter(move |row| f(row)))
        })
    }

    /// Each partition by a function.
    pub fn map_partitions<U: Data, I: IntoIterator<Item = U> + 'static>(
        &self,
        f: impl Fn(Vec<T>) -> I + Send + Sync + 'static,
    ) -> DStream<U> {
        let f = Arc::new(f);
        self.derive("map_partitions", move |_, rows| {
            let f = Arc::clone(&f);
            Ok(rows.map_partitions(move |part| f(part)))
        })
    }

    /// Each partition as one row.
    pub fn glom(&self) -> DStream<Vec<T>> {
        self.derive("glom", |_, rows| Ok(rows.glom()))
    }

    /// The same rows in another number of partitions.
    pub fn repartition(&self, partitions: usize) -> Self {
        self.derive("repartition", move |_, rows| Ok(rows.repartition(partitions)))
    }

    /// The rows of both streams, whose slides must be the same.
    pub fn union(&self, other: &Self) -> Self {
        Self::union_all("union", &[self.clone(), other.clone()])
    }

    /// The rows of all; there is one at least.
    pub(crate) fn union_all(operation: &'static str, streams: &[Self]) -> Self {
        let first = &streams[0];
        let frames: Vec<_> = streams.iter().map(|stream| (&stream.core.frame, stream.slide())).collect();
        let cores: Vec<_> = streams.iter().map(|stream| Arc::clone(&stream.core)).collect();
        let new = NewStream {
            operation,
            slide_ms: first.slide(),
            parents: streams.iter().map(Self::any).collect(),
            role: Role::Plain,
            refusal: cannot_combine(operation, &frames),
            compute: Box::new(move |time| {
                let rows = cores.iter().map(|core| core.rows(time));
                let rows: Vec<Rdd<T>> = rows.filter_map(Result::transpose).collect::<Result<_, _>>()?;
                Ok(if rows.is_empty() { None } else { Some(Rdd::union_all(&rows)) })
            }),
        };
        Self::new(&first.core.frame, &first.outputs, new)
    }

    /// How many rows a batch has, as its one row.
    pub fn count(&self) -> DStream<i64> {
        self.derive("count", |_, rows| {
            let counted = rows.map_partitions(|part| [((), part.len() as i64)]);
            let zero = Rdd::from_partitions(vec![vec![((), 0)]]);
            Ok(counted.union(&zero).reduce_by_key(|a, b| a + b, 1).values())
        })
    }

    /// All rows of a batch reduced to one by an associative and commutative function; no row for a batch without rows.
    pub fn reduce(&self, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let f = Arc::new(f);
        self.derive("reduce", move |_, rows| {
            let f = Arc::clone(&f);
            Ok(rows.map(|row| ((), row)).reduce_by_key(move |a, b| f(a, b), 1).values())
        })
    }
}

impl<T: Key> DStream<T> {
    /// Each row with how often the batch has it.
    pub fn count_by_value(&self) -> DStream<(T, i64)> {
        self.map(|row| (row, 1)).reduce_by_key(|a, b| a + b)
    }
}
