//! A window: the rows of the batches in (t − length, t], at every slide.
//!
//! ```text
//!   batches   ──1──2──3──4──5──6──►          length 3, slide 2:  at 4 the rows of 2 3 4, at 6 those of 4 5 6
//! ```
//!
//! Every batch of the parent is taken when it is there, also between two slides.

use crate::rdd::Rdd;
use crate::state::{BatchRows, Identity, Stateful, StoreSet};
use crate::stream::StreamCore;
use crate::{DStreamError, Item, Time};
use std::sync::Arc;

/// A window.
pub(crate) struct Window<T> {
    pub(crate) identity: Identity,
    stores: StoreSet,
    parent: Arc<StreamCore<T>>,
    length_ms: i64,
    batches: BatchRows<T>,
}

impl<T: Item> Window<T> {
    pub(crate) fn new(identity: Identity, parent: Arc<StreamCore<T>>, length_ms: i64) -> Self {
        Self { identity, stores: StoreSet::default(), parent, length_ms, batches: BatchRows::new() }
    }

    /// The rows of the window that ends at `time`.
    pub(crate) fn rows(&self, time: Time) -> Rdd<T> {
        Rdd::union_all(&self.batches.between(time.minus(self.length_ms).plus(1), time))
    }

    fn workers(&self) -> usize {
        self.parent.frame.parallelism()
    }
}

impl<T: Item> Stateful for Window<T> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn stores(&self) -> &StoreSet {
        &self.stores
    }

    fn restore(&self, _fresh: bool) -> Result<(), DStreamError> {
        self.batches.restore(&self.identity, &self.stores, self.workers())
    }

    fn advance(&self, time: Time) -> Result<(), DStreamError> {
        // The earliest window to come ends at this batch.
        self.batches.drop_through(&self.identity, &self.stores, time.minus(self.length_ms))?;
        let Some(rows) = self.parent.rows(time)? else { return Ok(()) };
        self.batches.add((&self.identity, &self.stores), time, rows, self.workers())
    }
}
