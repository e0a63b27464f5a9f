//! Any function of the rows of a batch.

use super::{DStream, NewStream, Role, cannot_combine};
use crate::rdd::{Rdd, guarded};
use crate::{DStreamError, Data, JobError, Time};
use std::sync::Arc;

/// A function of the program, called while a batch is planned.
pub(crate) fn planned<R>(operation: &str, time: Time, f: impl FnOnce() -> R) -> Result<R, DStreamError> {
    guarded(|| Ok(f())).map_err(|source: JobError| DStreamError::Job { time, place: format!("`{operation}`"), source })
}

impl<T: Data> DStream<T> {
    /// The rows of each batch by a function of them all. It is called once per batch.
    pub fn transform<U: Data>(&self, f: impl Fn(&Rdd<T>) -> Rdd<U> + Send + Sync + 'static) -> DStream<U> {
        self.transform_at(move |rows, _| f(rows))
    }

    /// As `transform`, with the time of the batch.
    pub fn transform_at<U: Data>(&self, f: impl Fn(&Rdd<T>, Time) -> Rdd<U> + Send + Sync + 'static) -> DStream<U> {
        self.derive("transform", move |time, rows| planned("transform", time, || f(rows, time)))
    }

    /// The rows of this stream and another by a function of both. The slides must be the same.
    pub fn transform_with<W: Data, U: Data>(
        &self,
        other: &DStream<W>,
        f: impl Fn(&Rdd<T>, &Rdd<W>, Time) -> Rdd<U> + Send + Sync + 'static,
    ) -> DStream<U> {
        self.derive_with("transform_with", other, move |time, one, two| {
            planned("transform_with", time, || f(one, two, time))
        })
    }

    /// The rows of many streams by a function of them all; there is one stream at least.
    pub(crate) fn transform_all<U: Data>(
        streams: &[Self],
        f: impl Fn(&[Rdd<T>], Time) -> Rdd<U> + Send + Sync + 'static,
    ) -> DStream<U> {
        let first = &streams[0];
        let frames: Vec<_> = streams.iter().map(|stream| (&stream.core.frame, stream.slide())).collect();
        let cores: Vec<_> = streams.iter().map(|stream| Arc::clone(&stream.core)).collect();
        let new = NewStream {
            operation: "transform",
            slide_ms: first.slide(),
            parents: streams.iter().map(Self::any).collect(),
            role: Role::Plain,
            refusal: cannot_combine("transform", &frames),
            compute: Box::new(move |time| {
                let rows = cores.iter().map(|core| core.rows(time)).collect::<Result<Vec<_>, _>>()?;
                let rows: Option<Vec<Rdd<T>>> = rows.into_iter().collect();
                rows.map(|rows| planned("transform", time, || f(&rows, time))).transpose()
            }),
        };
        DStream::new(&first.core.frame, &first.outputs, new)
    }
}
