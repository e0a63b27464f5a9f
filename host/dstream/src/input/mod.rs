//! Where rows come from.
//!
//! ```text
//!   cut   at the end of the interval: up to where a batch reads       an offset range
//!   load  when its turn comes: the rows of the range                  received ones are kept in the checkpoint first
//!         the batch is defined ──► defined: what came before may be forgotten
//!         the batch is done    ──► committed: so may what was kept
//! ```
//!
//! Three kinds: a **direct** input is a [`Source`](millstream_source::Source) that can be read again; a **received** one
//! (socket, receiver) cannot, so its rows go into the checkpoint before their batch is defined; a **queue** is of the
//! program, for tests.

mod commits;
mod direct;
mod kept;
mod pid;
mod pressure;
mod queue;
mod receiver;
mod record;
mod source;

pub use commits::{CanCommitOffsets, KafkaOffsetRange};
pub(crate) use commits::{Done, partitions_of};
pub use direct::DirectOptions;
pub(crate) use direct::{record_rows, value_lines};
pub(crate) use pid::Gains;
pub(crate) use pressure::Pressure;
pub(crate) use queue::QueueInput;
pub use queue::RddQueue;
pub(crate) use receiver::ReceiverInput;
pub use receiver::{Receiver, ReceiverHandle};
pub use record::Record;
pub(crate) use source::{Decode, SourceInput, SourceKind};

use crate::listener::Listeners;
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::{BatchInfo, DStreamError, Refusal, Time};
use kept::Kept;
use millstream_checkpoint::{ConnectorPin, OffsetRange};
use millstream_common::{Clock, DurableFiles, StopSignal};
use std::sync::{Arc, Mutex};

/// What an input is opened with.
pub(crate) struct Opening {
    /// The folder of the input in the checkpoint; a folder in memory without one.
    pub(crate) files: Arc<dyn DurableFiles>,
    /// Whether there is a checkpoint.
    pub(crate) durable: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: StopSignal,
    pub(crate) listeners: Arc<Listeners>,
    /// How far batches that are defined have read; `None` when no batch had this input.
    pub(crate) position: Option<serde_json::Value>,
    /// Whether there are batches that had it.
    pub(crate) resumed: bool,
}

/// An input of a context.
pub(crate) trait Input: Send + Sync {
    /// Its name, which the checkpoint knows it by.
    fn name(&self) -> &str;
    /// Connector and place, for the offset log.
    fn pin(&self) -> Result<ConnectorPin, DStreamError>;
    /// Whether a program with a checkpoint may have it.
    fn is_checkpointable(&self) -> bool {
        true
    }
    /// Opens it; once.
    fn open(&self, opening: Opening) -> Result<(), DStreamError>;
    /// Up to where the next batch reads.
    fn cut(&self) -> Result<OffsetRange, DStreamError>;
    /// Makes the rows of a range those of the batch of `time`; how many there are. `again` when the batch is defined and was
    /// not done.
    fn load(&self, time: Time, range: &OffsetRange, again: bool) -> Result<u64, DStreamError>;
    /// The batch that reads this range is defined.
    fn defined(&self, _range: &OffsetRange) -> Result<(), DStreamError> {
        Ok(())
    }
    /// The batch of `time` is done.
    fn committed(&self, _time: Time) {}
    /// How the work of a batch went.
    fn worked(&self, _batch: &BatchInfo) {}
    /// Commits offsets where other programs look for them, some time later.
    fn commit_async(&self, _offsets: serde_json::Value, _done: Done) -> Result<(), DStreamError> {
        Err(Refusal::NoGroups { input: self.name().to_owned() }.into())
    }
    /// Whether rows were received that no batch has been cut of.
    fn has_pending(&self) -> bool {
        false
    }
    /// Receives no more.
    fn stop_receiving(&self) {}
    /// Ends threads and connections.
    fn stop(&self) {}
}

/// The rows of the present batch, between input and stream.
pub(crate) struct Slot<T>(Mutex<Option<(Time, Rdd<T>)>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: crate::Data> Slot<T> {
    pub(crate) fn put(&self, time: Time, rows: Rdd<T>) {
        *locked(&self.0) = Some((time, rows));
    }

    pub(crate) fn rows(&self, time: Time) -> Option<Rdd<T>> {
        let slot = locked(&self.0);
        slot.as_ref().filter(|(at, _)| *at == time).map(|(_, rows)| rows.clone())
    }
}

/// How many rows partitions have.
pub(crate) fn count<T>(partitions: &[Vec<T>]) -> u64 {
    partitions.iter().map(|rows| rows.len() as u64).sum()
}

/// A range of an input that counts.
pub(crate) fn counted(start: u64, end: u64) -> OffsetRange {
    OffsetRange { start: Some(start.into()), end: Some(end.into()) }
}
