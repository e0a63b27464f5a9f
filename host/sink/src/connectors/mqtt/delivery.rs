//! Which messages of a batch are under way, and which the broker has.
//!
//! ```text
//!   next ──► under way, by the number of its packet ──► the broker has it
//!     ▲                        │ the connection broke
//!     └────────────────────────┘
//! ```
//!
//! Pure: it sends nothing.

/// A message: which rows, and which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) batch: usize,
    pub(super) row: usize,
}

/// How far a batch has gone out.
#[derive(Debug)]
pub(super) struct Delivery {
    /// How many rows each part of the batch has.
    lengths: Vec<usize>,
    /// The next message that was never sent.
    next: At,
    /// What was under way when a connection broke.
    again: Vec<At>,
    /// What is under way, by the number of its packet.
    under_way: Vec<Option<At>>,
    /// Numbers that no packet has.
    free: Vec<u16>,
}

impl Delivery {
    /// Nothing is sent yet of parts with so many rows.
    pub(super) fn new(lengths: Vec<usize>) -> Self {
        Self { lengths, next: At { batch: 0, row: 0 }, again: Vec::new(), under_way: Vec::new(), free: Vec::new() }
    }

    /// Over a new connection, which takes so many messages at a time: what had no answer goes again.
    pub(super) fn restart(&mut self, most: u16) {
        self.again.extend(self.under_way.drain(..).flatten());
        // The last is sent first.
        self.again.sort_unstable_by_key(|at| std::cmp::Reverse((at.batch, at.row)));
        self.under_way = vec![None; usize::from(most) + 1];
        self.free = (1..=most).rev().collect();
    }

    /// All goes again, where nobody answers for a single message.
    pub(super) fn begin_again(&mut self) {
        *self = Self::new(std::mem::take(&mut self.lengths));
    }

    /// The next message to send, without an answer to wait for.
    pub(super) fn take(&mut self) -> Option<At> {
        if let Some(at) = self.again.pop() {
            return Some(at);
        }
        while *self.lengths.get(self.next.batch)? <= self.next.row {
            self.next = At { batch: self.next.batch + 1, row: 0 };
        }
        let at = self.next;
        self.next.row += 1;
        Some(at)
    }

    /// The next message to send, and the number of its packet; `None` when all were sent, or when no number is free.
    pub(super) fn send(&mut self) -> Option<(At, u16)> {
        let packet = *self.free.last()?;
        let at = self.take()?;
        self.free.pop();
        *self.under_way.get_mut(usize::from(packet))? = Some(at);
        Some((at, packet))
    }

    /// The message of a packet that is under way.
    pub(super) fn get(&self, packet: u16) -> Option<At> {
        *self.under_way.get(usize::from(packet))?
    }

    /// The broker has the message of a packet; answers which, if it was under way.
    pub(super) fn finish(&mut self, packet: u16) -> Option<At> {
        let at = self.under_way.get_mut(usize::from(packet))?.take()?;
        self.free.push(packet);
        Some(at)
    }

    /// Whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.free.len() + 1 >= self.under_way.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(batch: usize, row: usize) -> At {
        At { batch, row }
    }

    #[test]
    fn no_more_go_at_a_time_than_numbers_and_what_had_no_answer_goes_again() {
        let mut delivery = Delivery::new(vec![0, 2, 0, 3]);
        assert_eq!(delivery.send(), None, "there is no connection");
        delivery.restart(3);
        let sent: Vec<_> = std::iter::from_fn(|| delivery.send()).collect();
        assert_eq!(sent, [(at(1, 0), 1), (at(1, 1), 2), (at(3, 0), 3)]);
        assert_eq!((delivery.finish(2), delivery.finish(2), delivery.finish(9)), (Some(at(1, 1)), None, None));
        assert_eq!(delivery.send(), Some((at(3, 1), 2)));
        assert!(!delivery.is_quiet());
        delivery.restart(2);
        assert_eq!((delivery.send(), delivery.send()), (Some((at(1, 0), 1)), Some((at(3, 0), 2))));
        assert_eq!((delivery.get(1), delivery.finish(1)), (Some(at(1, 0)), Some(at(1, 0))));
        assert_eq!(delivery.send(), Some((at(3, 1), 1)));
        delivery.finish(1);
        delivery.finish(2);
        assert_eq!(delivery.send(), Some((at(3, 2), 2)));
        delivery.finish(2);
        assert_eq!((delivery.send(), delivery.is_quiet(), delivery.take()), (None, true, None));
        delivery.begin_again();
        assert_eq!((delivery.is_quiet(), delivery.take()), (true, Some(at(1, 0))));
    }
}
