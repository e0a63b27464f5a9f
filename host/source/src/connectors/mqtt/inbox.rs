//! What has come from the broker and is in no file yet.

use super::rows::{Columns, TopicIsNoText};
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use millstream_client::mqtt::packets::{Publish, QoS};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A file has about so many bytes at most.
const FILE_BYTES: usize = 8 << 20;
/// A message counts as so many bytes more than it has.
const OVERHEAD: usize = 64;

/// Messages and releases that wait for a file.
pub(super) struct Inbox {
    columns: Columns,
    /// Packets of quality 1, to be acknowledged.
    received: Vec<u16>,
    /// Packets of quality 2, to be confirmed.
    promised: BTreeSet<u16>,
    /// Packets of quality 2 that the broker releases.
    released: BTreeSet<u16>,
    bytes: usize,
    /// When the first came.
    since: Option<Instant>,
}

/// What goes into one file, and what the broker is told when it is there.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) rows: RecordBatch,
    /// Packets of quality 1.
    pub(super) received: Vec<u16>,
    /// Packets of quality 2 that are in `rows`.
    pub(super) promised: BTreeSet<u16>,
    /// Packets of quality 2 of which the broker needs to hear no more.
    pub(super) released: BTreeSet<u16>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            columns: Columns::new(),
            received: Vec::new(),
            promised: BTreeSet::new(),
            released: BTreeSet::new(),
            bytes: 0,
            since: None,
        }
    }

    /// Adds a message that came at a time, in microseconds since 1970.
    pub(super) fn add(&mut self, message: &Publish, micros: i64) -> Result<(), TopicIsNoText> {
        self.bytes += self.columns.append(message, micros)? + OVERHEAD;
        match message.qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => self.received.push(message.pkid),
            QoS::ExactlyOnce => {
                self.promised.insert(message.pkid);
            }
        }
        self.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Adds that the broker releases a packet of quality 2.
    pub(super) fn release(&mut self, packet: u16) {
        self.released.insert(packet);
        self.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.since.is_none()
    }

    /// How long it may still wait; `None` when nothing is there.
    pub(super) fn due_in(&self, interval: Duration) -> Option<Duration> {
        self.since.map(|since| interval.saturating_sub(since.elapsed()))
    }

    /// Whether it must not wait for more: it is large, or the broker sends no more before it hears of these.
    pub(super) fn is_full(&self, max_inflight: u16) -> bool {
        let unacknowledged = self.received.len() + self.promised.len() + self.released.len();
        self.bytes >= FILE_BYTES || unacknowledged >= usize::from(max_inflight)
    }

    /// Takes all out.
    pub(super) fn take(&mut self) -> Result<Batch, ArrowError> {
        self.bytes = 0;
        self.since = None;
        Ok(Batch {
            rows: self.columns.finish()?,
            received: std::mem::take(&mut self.received),
            promised: std::mem::take(&mut self.promised),
            released: std::mem::take(&mut self.released),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(qos: QoS, packet: u16) -> Publish {
        Publish { pkid: packet, ..Publish::new("t", qos, "x", None) }
    }

    #[test]
    fn what_has_come_waits_for_its_file_and_no_longer_than_it_may() {
        let mut inbox = Inbox::new();
        assert_eq!((inbox.is_empty(), inbox.due_in(Duration::ZERO)), (true, None));
        inbox.add(&message(QoS::AtMostOnce, 0), 0).unwrap();
        inbox.add(&message(QoS::AtLeastOnce, 5), 0).unwrap();
        inbox.add(&message(QoS::ExactlyOnce, 6), 0).unwrap();
        inbox.release(4);
        assert_eq!(inbox.due_in(Duration::ZERO), Some(Duration::ZERO));
        assert!(inbox.due_in(Duration::from_secs(60)).unwrap() > Duration::from_secs(30));
        assert!(!inbox.is_full(4) && inbox.is_full(3));
        let batch = inbox.take().unwrap();
        assert_eq!((batch.rows.num_rows(), batch.received), (3, vec![5]));
        assert_eq!((batch.promised, batch.released), (BTreeSet::from([6]), BTreeSet::from([4])));
        assert!(inbox.is_empty() && !inbox.is_full(1));
    }
}
