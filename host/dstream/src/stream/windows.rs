//! Windows over the rows of a stream. Length and slide are multiples of the stream's own slide.

use super::{DStream, NewStream, Role};
use crate::item::type_name;
use crate::state::{Identity, Stateful, Window};
use crate::time::millis;
use crate::{Data, Item, Key, Refusal};
use std::sync::Arc;
use std::time::Duration;

/// Why a window does not fit, if so.
pub(super) fn does_not_fit(operation: &'static str, (length_ms, slide_ms): (i64, i64), of_ms: i64) -> Option<Refusal> {
    [("window length", length_ms), ("slide", slide_ms)].into_iter().find_map(|(what, found_ms)| {
        let fits = found_ms > 0 && found_ms % of_ms == 0;
        (!fits).then_some(Refusal::NotMultiple { operation, what, found_ms, of_ms })
    })
}

impl<T: Item> DStream<T> {
    /// The rows of the batches in (t − length, t], at every `slide`.
    pub fn window(&self, length: Duration, slide: Duration) -> Self {
        self.windowed("window", length, slide)
    }

    pub(super) fn windowed(&self, operation: &'static str, length: Duration, slide: Duration) -> Self {
        let (length_ms, slide_ms) = (millis(length), millis(slide));
        let schema = format!("{operation}: rows {}, {length_ms} ms every {slide_ms} ms", type_name::<T>());
        let identity = Identity::new(operation, schema, false, Some(1));
        let window = Arc::new(Window::new(identity, Arc::clone(&self.core), length_ms));
        let refusal = does_not_fit(operation, (length_ms, slide_ms), self.slide());
        let stateful: Arc<dyn Stateful> = Arc::clone(&window) as Arc<dyn Stateful>;
        let new = NewStream {
            operation,
            slide_ms: if refusal.is_some() { self.slide() } else { slide_ms },
            parents: vec![self.any()],
            role: Role::Stateful(stateful),
            refusal,
            compute: Box::new(move |time| Ok(Some(window.rows(time)))),
        };
        Self::new(&self.core.frame, &self.outputs, new)
    }

    /// The rows of a window reduced to one by an associative and commutative function; no row for a window without rows.
    pub fn reduce_by_window(
        &self,
        f: impl Fn(T, T) -> T + Send + Sync + 'static,
        length: Duration,
        slide: Duration,
    ) -> Self {
        let f = Arc::new(f);
        let within = Arc::clone(&f);
        let reduced = self.reduce(move |a, b| within(a, b));
        reduced.windowed("reduce_by_window", length, slide).reduce(move |a, b| f(a, b))
    }

    /// As `reduce_by_window`, going on from the window before: `inverse` takes off what leaves. Needs a checkpoint. A
    /// window whose rows have all left gives what `inverse` made of the last.
    pub fn reduce_by_window_inverse(
        &self,
        f: impl Fn(T, T) -> T + Send + Sync + 'static,
        inverse: impl Fn(T, T) -> T + Send + Sync + 'static,
        length: Duration,
        slide: Duration,
    ) -> Self {
        self.map(|row| ((), row))
            .inverse_windowed("reduce_by_window", (Arc::new(f), Arc::new(inverse), None), (length, slide), Some(1))
            .map(|((), row)| row)
    }
}

impl<T: Data> DStream<T> {
    /// How many rows a window has, as its one row; none before the first row came. Needs a checkpoint.
    pub fn count_by_window(&self, length: Duration, slide: Duration) -> DStream<i64> {
        let ones = self.map_partitions(|rows| (!rows.is_empty()).then_some(((), rows.len() as i64)));
        ones.inverse_windowed(
            "count_by_window",
            (Arc::new(|a, b| a + b), Arc::new(|a, b| a - b), None),
            (length, slide),
            Some(1),
        )
        .map(|((), count)| count)
    }
}

impl<T: Key + Item> DStream<T> {
    /// Each row with how often the window has it. Needs a checkpoint.
    pub fn count_by_value_and_window(&self, length: Duration, slide: Duration) -> DStream<(T, i64)> {
        self.map(|row| (row, 1)).inverse_windowed(
            "count_by_value_and_window",
            (Arc::new(|a, b| a + b), Arc::new(|a, b| a - b), Some(Arc::new(|_, count| *count != 0))),
            (length, slide),
            None,
        )
    }
}
