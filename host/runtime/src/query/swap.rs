//! Hot swap: another component takes a plugin's place at the border between two batches.
//!
//! ```text
//!   asked ──► checked (loaded, compared) ──► waits ──► border: stored in the checkpoint, put in place
//!                 │ refused: says why                     ──► next batch: its offset entry names the digest ──► taken
//! ```
//! A refused swap changes nothing. A crash before the offset entry: the old code goes on; after it: the new.

use super::open::RunningPlugin;
use crate::RuntimeError;
use bytes::Bytes;
use millstream_checkpoint::Checkpoint;
use millstream_common::{BatchId, Digest};
use millstream_wasm::Component;
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A swap that took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapped {
    /// The first batch of the new component.
    pub batch: BatchId,
    /// The component that ran before.
    pub from: Digest,
    /// The component that runs now.
    pub to: Digest,
}

/// A checked swap on its way to the border.
pub struct SwapRequest {
    pub(super) plugin: String,
    pub(super) component: Arc<Component>,
    pub(super) bytes: Vec<u8>,
    pub(super) reply: Sender<Result<Swapped, String>>,
}

/// The swaps that wait for the next border.
#[derive(Clone, Default)]
pub(super) struct SwapQueue(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<SwapRequest>,
    /// Why no border comes any more.
    closed: Option<String>,
}

impl SwapQueue {
    /// Adds one; answers it at once when the query is over.
    pub(super) fn push(&self, request: SwapRequest) {
        let mut waiting = self.lock();
        match &waiting.closed {
            None => waiting.requests.push_back(request),
            Some(reason) => answer(&request.reply, Err(reason.clone())),
        }
    }

    fn take_all(&self) -> VecDeque<SwapRequest> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Answers everybody who still waits, and everybody who asks from now on: the query is over.
    pub(super) fn close(&self, reason: &str) {
        self.lock().closed = Some(reason.to_owned());
        for request in self.take_all() {
            answer(&request.reply, Err(reason.to_owned()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A swap that is in place and is told of once the offset log names it.
pub(super) struct Unlogged {
    from: Digest,
    to: Digest,
    reply: Sender<Result<Swapped, String>>,
}

impl Unlogged {
    /// The offset entry of `batch` names the digest.
    pub(super) fn logged(self, batch: BatchId) {
        answer(&self.reply, Ok(Swapped { batch, from: self.from, to: self.to }));
    }
}

/// Puts the waiting swaps in place; between batches only. A swap that fails leaves the old component running and its
/// reason in the plugin's progress.
pub(super) fn take_waiting(queue: &SwapQueue, plugins: &mut [RunningPlugin], checkpoint: &Checkpoint) -> Vec<Unlogged> {
    let mut unlogged = Vec::new();
    for request in queue.take_all() {
        let Some(plugin) = plugins.iter_mut().find(|plugin| plugin.slot.name() == request.plugin) else {
            answer(&request.reply, Err(format!("the query has no plugin `{}`", request.plugin)));
            continue;
        };
        match put_in_place(plugin, &request, checkpoint) {
            Ok(from) => {
                let to = request.component.digest();
                tracing::info!(plugin = %request.plugin, from = %from.short(), to = %to.short(), "swapped");
                plugin.swap_refused = None;
                unlogged.push(Unlogged { from, to, reply: request.reply });
            }
            Err(error) => {
                let reason = millstream_common::describe_chain(&error);
                tracing::warn!(plugin = %request.plugin, "swap refused: {reason}");
                plugin.swap_refused = Some(reason.clone());
                answer(&request.reply, Err(reason));
            }
        }
    }
    unlogged
}

fn put_in_place(
    plugin: &RunningPlugin,
    request: &SwapRequest,
    checkpoint: &Checkpoint,
) -> Result<Digest, RuntimeError> {
    let from = plugin.slot.digest();
    plugin.slot.check_swap(&request.component)?;
    checkpoint.plugins().put(&request.component.digest(), Bytes::copy_from_slice(&request.bytes))?;
    plugin.slot.swap(Arc::clone(&request.component))?;
    Ok(from)
}

fn answer(reply: &Sender<Result<Swapped, String>>, answer: Result<Swapped, String>) {
    if reply.send(answer).is_err() {
        tracing::debug!("nobody waits for the answer to a swap any more");
    }
}
