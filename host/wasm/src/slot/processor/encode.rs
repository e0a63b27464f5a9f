//! A call as buffers.

use crate::call::Failure;
use crate::processor::{Entries, Invocation, Timers};
use crate::slot::columns::{Encoded, numbers};
use crate::wire::BatchRef;
use crate::wire::processor::{EntriesRef, InvocationRef, TimersRef};

/// Timers as bytes.
pub(super) struct EncodedTimers {
    keys: Vec<u8>,
    due: Vec<u8>,
}

impl EncodedTimers {
    pub(super) fn of(timers: &Timers) -> Self {
        let due = timers.due_ms.iter().flat_map(|due| due.to_le_bytes()).collect();
        Self { keys: numbers(&timers.key_of_timer), due }
    }

    pub(super) fn wire(&self) -> TimersRef<'_> {
        TimersRef { key_of_timer: &self.keys, due_ms: &self.due }
    }
}

/// Entries as bytes.
struct EncodedEntries {
    keys: Vec<u8>,
    map_keys: Encoded,
    columns: Encoded,
}

/// A call as bytes.
pub(super) struct EncodedInvocation {
    keys: Encoded,
    key_of_row: Vec<u8>,
    rows: Encoded,
    state: Vec<EncodedEntries>,
    timers: EncodedTimers,
}

impl EncodedInvocation {
    pub(super) fn of(call: &Invocation) -> Result<Self, Failure> {
        let entries = |entries: &Entries| {
            let count = entries.key_of_entry.len();
            let map_rows = if entries.map_keys.is_empty() { 0 } else { count };
            Ok(EncodedEntries {
                keys: numbers(&entries.key_of_entry),
                map_keys: Encoded::of(&entries.map_keys, map_rows)?,
                columns: Encoded::of(&entries.columns, count)?,
            })
        };
        Ok(Self {
            keys: Encoded::of(&call.keys, call.key_count)?,
            key_of_row: numbers(&call.key_of_row),
            rows: Encoded::of(&call.rows, call.key_of_row.len())?,
            state: call.state.iter().map(entries).collect::<Result<_, Failure>>()?,
            timers: EncodedTimers::of(&call.timers),
        })
    }

    pub(super) fn slices(&self) -> Slices<'_> {
        Slices {
            of: self,
            keys: self.keys.slices(),
            rows: self.rows.slices(),
            state: self.state.iter().map(|entries| (entries.map_keys.slices(), entries.columns.slices())).collect(),
        }
    }
}

type Buffers<'a> = Vec<&'a [u8]>;

/// The lists of buffers that the wire's records point to.
pub(super) struct Slices<'a> {
    of: &'a EncodedInvocation,
    keys: Vec<&'a [u8]>,
    rows: Vec<&'a [u8]>,
    /// Map keys and columns, variable by variable.
    state: Vec<(Buffers<'a>, Buffers<'a>)>,
}

impl Slices<'_> {
    /// The entries of all variables.
    pub(super) fn state(&self) -> Vec<EntriesRef<'_>> {
        let mut state = Vec::with_capacity(self.state.len());
        for (encoded, (map_keys, columns)) in self.of.state.iter().zip(&self.state) {
            state.push(EntriesRef {
                key_of_entry: &encoded.keys,
                map_keys: batch(&encoded.map_keys, map_keys),
                columns: batch(&encoded.columns, columns),
            });
        }
        state
    }

    /// The call, whose state is `state`.
    pub(super) fn call<'a>(&'a self, call: &Invocation, state: &'a [EntriesRef<'a>]) -> InvocationRef<'a> {
        InvocationRef {
            keys: batch(&self.of.keys, &self.keys),
            key_of_row: &self.of.key_of_row,
            rows: batch(&self.of.rows, &self.rows),
            state,
            timers: self.of.timers.wire(),
            batch_time_ms: call.batch_time_ms,
            watermark_ms: call.watermark_ms,
        }
    }
}

fn batch<'a>(encoded: &Encoded, slices: &'a [&'a [u8]]) -> BatchRef<'a> {
    encoded.batch(slices)
}
