//! When a call happens: the batch and the place in it, instead of a clock and dice.
//!
//! The runtime stamps each slot before a batch; every call carries the stamp into its instance, where clocks and random
//! numbers are made of it. So a batch that is run again shows its plugins the same time and the same numbers.
//!
//! Rule of its life: a value. Two calls of one batch never have the same stamp, unless one repeats the other.
//!
//! It does not decide who may see it; what a component imports and was granted does.

use millstream_common::{BatchId, Digest, QueryId};

/// The batch that calls belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchStamp {
    /// The query; none outside of a query, as when a component is described.
    pub query: Option<QueryId>,
    /// The batch.
    pub batch: Option<BatchId>,
    /// The time of the batch, in milliseconds since 1970.
    pub time_ms: i64,
}

/// One call of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallStamp {
    pub(crate) batch: BatchStamp,
    /// The partition that the rows belong to; 0 where rows are not partitioned.
    pub(crate) partition: u32,
    /// How many invocations of the plugin the batch had before.
    pub(crate) invocation: u64,
    /// The first row of the call within its invocation.
    pub(crate) row: u64,
}

impl CallStamp {
    /// What random numbers of plugin `plugin` grow from during this call.
    pub(crate) fn seed(&self, plugin: &str) -> Digest {
        let mut text = Vec::with_capacity(64 + plugin.len());
        text.extend_from_slice(b"millstream random numbers 1\0");
        text.extend_from_slice(self.batch.query.map(|id| id.0.into_bytes()).unwrap_or_default().as_slice());
        for number in
            [self.batch.batch.map_or(u64::MAX, |batch| batch.0), u64::from(self.partition), self.invocation, self.row]
        {
            text.extend_from_slice(&number.to_le_bytes());
        }
        text.extend_from_slice(plugin.as_bytes());
        Digest::of(&text)
    }

    /// The time of the batch in nanoseconds since 1970, none before.
    pub(crate) fn time_ns(&self) -> u64 {
        u64::try_from(self.batch.time_ms).unwrap_or(0).saturating_mul(1_000_000)
    }
}
