//! Who is told what a context does.
//!
//! Rule of its life: in order, from the threads of the context, and never two at a time. A listener that panics is
//! logged; the context goes on.

use crate::Time;
use crate::lock::locked;
use crate::rdd::guarded;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A batch, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchInfo {
    /// The time of the batch.
    pub batch_time: Time,
    /// When it was cut and put in the queue.
    pub submission_time_ms: i64,
    /// When its work began.
    pub processing_start_ms: Option<i64>,
    /// When its work ended.
    pub processing_end_ms: Option<i64>,
    /// How many records each input has in it; known when its work begins.
    pub records: BTreeMap<String, u64>,
}

impl BatchInfo {
    /// How long it waited in the queue, in milliseconds.
    pub fn scheduling_delay(&self) -> Option<i64> {
        Some(self.processing_start_ms? - self.submission_time_ms)
    }

    /// How long its work took, in milliseconds.
    pub fn processing_delay(&self) -> Option<i64> {
        Some(self.processing_end_ms? - self.processing_start_ms?)
    }

    /// How long it took from the cut to the end, in milliseconds.
    pub fn total_delay(&self) -> Option<i64> {
        Some(self.processing_end_ms? - self.submission_time_ms)
    }

    /// The records of all inputs.
    pub fn num_records(&self) -> u64 {
        self.records.values().sum()
    }
}

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverInfo {
    /// The name of its input.
    pub input: String,
    /// Whether it runs.
    pub active: bool,
    /// What it reported last; empty when nothing.
    pub last_error: String,
}

/// The job of an output operation in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOperationInfo {
    /// The time of the batch.
    pub batch_time: Time,
    /// Its number, from 0 in the order of the program.
    pub id: usize,
    /// What it is: `print 0`.
    pub description: String,
    /// When it began.
    pub start_ms: i64,
    /// When it ended.
    pub end_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// What a context tells. Every method does nothing unless it is written.
pub trait StreamingListener: Send + Sync {
    /// The context has been started.
    fn on_streaming_started(&self, _time_ms: i64) {}
    /// A batch has been cut.
    fn on_batch_submitted(&self, _batch: &BatchInfo) {}
    /// The work of a batch begins.
    fn on_batch_started(&self, _batch: &BatchInfo) {}
    /// A batch is done.
    fn on_batch_completed(&self, _batch: &BatchInfo) {}
    /// A receiver runs.
    fn on_receiver_started(&self, _receiver: &ReceiverInfo) {}
    /// A receiver reported an error.
    fn on_receiver_error(&self, _receiver: &ReceiverInfo) {}
    /// A receiver has been stopped.
    fn on_receiver_stopped(&self, _receiver: &ReceiverInfo) {}
    /// An output operation begins its job.
    fn on_output_operation_started(&self, _operation: &OutputOperationInfo) {}
    /// An output operation has ended its job, or failed.
    fn on_output_operation_completed(&self, _operation: &OutputOperationInfo) {}
}

/// All listeners of a context.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Arc<dyn StreamingListener>>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    pub(crate) fn add(&self, listener: Arc<dyn StreamingListener>) {
        locked(&self.0).push(listener);
    }

    pub(crate) fn tell(&self, what: impl Fn(&dyn StreamingListener)) {
        for listener in &*locked(&self.0) {
            let told = guarded(|| {
                what(&**listener);
                Ok(())
            });
            if let Err(error) = told {
                tracing::error!(%error, "a streaming listener failed");
            }
        }
    }
}
