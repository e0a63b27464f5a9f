//! Lets somebody beside a running query see its batches: what each read, and what it gave.
//!
//! Between the loop and a shadow: rows are shared, not copied, and only while somebody looks. Whoever looks and falls
//! behind is let go, so that the query waits for nobody.

use arrow::array::RecordBatch;
use millstream_checkpoint::OffsetEntry;
use millstream_plan::SourceSlot;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Batches that may wait for whoever looks.
const WAITING: usize = 32;

/// A batch that a running query has done.
pub(crate) struct LiveBatch {
    /// Its definition.
    pub(crate) entry: OffsetEntry,
    /// Where its rows entered.
    pub(crate) slots: Vec<SourceSlot>,
    /// The rows that it read, slot by slot.
    pub(crate) inputs: Vec<Vec<RecordBatch>>,
    /// What it gave, and how long it was in each plugin.
    pub(crate) ran: super::Ran,
}

/// The place where somebody may look. Clones are the same place.
#[derive(Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Option<SyncSender<LiveBatch>>>>);

impl Tap {
    /// From the next batch on they come here, until the receiver is dropped or falls behind, or another one looks.
    pub(super) fn open(&self) -> Receiver<LiveBatch> {
        let (sender, receiver) = sync_channel(WAITING);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Whether somebody looks.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Shows a batch. Somebody who is gone, or behind, is let go.
    pub(super) fn show(&self, batch: LiveBatch) {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.as_ref().is_some_and(|sender| sender.try_send(batch).is_err()) {
            *sender = None;
        }
    }
}
