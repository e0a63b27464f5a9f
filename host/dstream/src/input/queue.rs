//! A queue of the program: for tests, and for trying out.

use super::{Input, Opening, Slot, counted};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::{DStreamError, Data, Time};
use millstream_checkpoint::{ConnectorPin, OffsetRange};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// A queue of rows for batches. Clones share it; it may be filled while the context runs.
#[derive(Debug)]
pub struct RddQueue<T>(Arc<Mutex<VecDeque<Rdd<T>>>>);

impl<T> Clone for RddQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for RddQueue<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Data> RddQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    fn rdds(&self) -> MutexGuard<'_, VecDeque<Rdd<T>>> {
        locked(&self.0)
    }

    /// Adds rows, in one partition.
    pub fn push(&self, rows: Vec<T>) {
        self.push_rdd(Rdd::from_partitions(vec![rows]));
    }

    /// Adds rows in their partitions.
    pub fn push_rdd(&self, rows: Rdd<T>) {
        self.rdds().push_back(rows);
    }
}

/// The input over a queue.
pub(crate) struct QueueInput<T> {
    name: String,
    queue: RddQueue<T>,
    one_at_a_time: bool,
    default: Option<Rdd<T>>,
    slot: Arc<Slot<T>>,
    /// How many were taken out, and how many batches were cut of.
    taken: Mutex<(u64, u64)>,
}

impl<T: Data> QueueInput<T> {
    pub(crate) fn new(name: String, queue: RddQueue<T>, one_at_a_time: bool, default: Option<Rdd<T>>) -> Self {
        Self { name, queue, one_at_a_time, default, slot: Arc::default(), taken: Mutex::default() }
    }

    pub(crate) fn slot(&self) -> Arc<Slot<T>> {
        Arc::clone(&self.slot)
    }

    fn taken(&self) -> MutexGuard<'_, (u64, u64)> {
        locked(&self.taken)
    }
}

impl<T: Data> Input for QueueInput<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn pin(&self) -> Result<ConnectorPin, DStreamError> {
        Ok(ConnectorPin { format: "queue".into(), place: None })
    }

    fn is_checkpointable(&self) -> bool {
        false
    }

    fn open(&self, _opening: Opening) -> Result<(), DStreamError> {
        Ok(())
    }

    fn cut(&self) -> Result<OffsetRange, DStreamError> {
        let mut taken = self.taken();
        let (out, cut) = *taken;
        let waiting = (self.queue.rdds().len() as u64).saturating_sub(cut - out);
        let end = cut + if self.one_at_a_time { waiting.min(1) } else { waiting };
        taken.1 = end;
        Ok(counted(cut, end))
    }

    fn load(&self, time: Time, range: &OffsetRange, _again: bool) -> Result<u64, DStreamError> {
        let number =
            |value: &Option<serde_json::Value>| value.as_ref().and_then(serde_json::Value::as_u64).unwrap_or(0);
        let mut rdds: Vec<Rdd<T>> = {
            let mut queue = self.queue.rdds();
            let wanted = usize::try_from(number(&range.end) - number(&range.start)).unwrap_or(usize::MAX);
            let most = wanted.min(queue.len());
            queue.drain(..most).collect()
        };
        self.taken().0 = number(&range.end);
        if rdds.is_empty() {
            rdds.extend(self.default.clone());
        }
        let rows = Rdd::union_all(&rdds);
        let count = rows.count().map_err(|source| DStreamError::Job {
            time,
            place: format!("the rows of queue `{}`", self.name),
            source,
        })?;
        self.slot.put(time, rows);
        Ok(count)
    }
}
