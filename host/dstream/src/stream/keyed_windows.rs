//! Windows by key.

use super::windows::does_not_fit;
use super::{DStream, NewStream, Role};
use crate::item::type_name;
use crate::rdd::Combiner;
use crate::state::{Identity, Inverse, ReducedWindow, Stateful};
use crate::time::millis;
use crate::{Item, Key};
use std::sync::Arc;
use std::time::Duration;

type Reduce<V> = Arc<dyn Fn(V, V) -> V + Send + Sync>;
type Filter<K, V> = Arc<dyn Fn(&K, &V) -> bool + Send + Sync>;

impl<K: Key + Item, V: Item> DStream<(K, V)> {
    /// All values of each key in a window.
    pub fn group_by_key_and_window(&self, length: Duration, slide: Duration) -> DStream<(K, Vec<V>)> {
        let grouped = self.combined("group_by_key_and_window", Combiner::grouping(), None);
        let merged = Combiner::reducing(|mut one: Vec<V>, other: Vec<V>| {
            one.extend(other);
            one
        });
        let windowed = grouped.windowed("group_by_key_and_window", length, slide);
        windowed.combined("group_by_key_and_window", merged, None)
    }

    /// The values of each key in a window, reduced by an associative and commutative function.
    pub fn reduce_by_key_and_window(
        &self,
        f: impl Fn(V, V) -> V + Send + Sync + 'static,
        length: Duration,
        slide: Duration,
    ) -> Self {
        let combiner = Combiner::reducing(f);
        let reduced = self.combined("reduce_by_key_and_window", combiner.clone(), None);
        let windowed = reduced.windowed("reduce_by_key_and_window", length, slide);
        windowed.combined("reduce_by_key_and_window", combiner, None)
    }

    /// As `reduce_by_key_and_window`, going on from the window before: `inverse` takes off what leaves. Needs a checkpoint.
    /// A key whose values have all left stays, with what `inverse` made of the last.
    pub fn reduce_by_key_and_window_inverse(
        &self,
        f: impl Fn(V, V) -> V + Send + Sync + 'static,
        inverse: impl Fn(V, V) -> V + Send + Sync + 'static,
        length: Duration,
        slide: Duration,
    ) -> Self {
        let functions: (Reduce<V>, Reduce<V>, _) = (Arc::new(f), Arc::new(inverse), None);
        self.inverse_windowed("reduce_by_key_and_window", functions, (length, slide), None)
    }

    /// As `reduce_by_key_and_window_inverse`; a key that `filter` does not want leaves the window.
    pub fn reduce_by_key_and_window_filtered(
        &self,
        f: impl Fn(V, V) -> V + Send + Sync + 'static,
        inverse: impl Fn(V, V) -> V + Send + Sync + 'static,
        (length, slide): (Duration, Duration),
        filter: impl Fn(&K, &V) -> bool + Send + Sync + 'static,
    ) -> Self {
        let filter: Filter<K, V> = Arc::new(filter);
        let functions: (Reduce<V>, Reduce<V>, _) = (Arc::new(f), Arc::new(inverse), Some(filter));
        self.inverse_windowed("reduce_by_key_and_window", functions, (length, slide), None)
    }

    pub(super) fn inverse_windowed(
        &self,
        operation: &'static str,
        (reduce, inverse, filter): (Reduce<V>, Reduce<V>, Option<Filter<K, V>>),
        (length, slide): (Duration, Duration),
        partitions: Option<usize>,
    ) -> Self {
        let within = Arc::clone(&reduce);
        let reduced = self.combined(operation, Combiner::reducing(move |a, b| within(a, b)), partitions);
        let (length_ms, slide_ms) = (millis(length), millis(slide));
        let (key, value) = (type_name::<K>(), type_name::<V>());
        let schema = format!("{operation}: key {key}, value {value}, {length_ms} ms every {slide_ms} ms");
        let refusal = does_not_fit(operation, (length_ms, slide_ms), self.slide());
        let slide_ms = if refusal.is_some() { self.slide() } else { slide_ms };
        let window = Arc::new(ReducedWindow::new(
            Identity::new(operation, schema, true, partitions),
            Arc::clone(&reduced.core),
            Inverse { reduce, inverse, filter },
            (length_ms, slide_ms),
        ));
        let stateful: Arc<dyn Stateful> = Arc::clone(&window) as Arc<dyn Stateful>;
        let new = NewStream {
            operation,
            slide_ms,
            parents: vec![reduced.any()],
            role: Role::Stateful(stateful),
            refusal,
            compute: Box::new(move |time| Ok(window.rows(time))),
        };
        Self::new(&self.core.frame, &self.outputs, new)
    }
}
