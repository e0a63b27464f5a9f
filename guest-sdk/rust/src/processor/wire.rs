//! A call and its answer in the form in which they cross the boundary.

use crate::call::Batch;

/// Rows of one state variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries {
    /// For each entry its key: 32-bit little-endian, ascending.
    pub key_of_entry: Vec<u8>,
    /// The map keys of a map.
    pub map_keys: Batch,
    /// The columns.
    pub columns: Batch,
}

/// Timers of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timers {
    /// For each timer its key: 32-bit little-endian, ascending.
    pub key_of_timer: Vec<u8>,
    /// When it is due: 64-bit little-endian.
    pub due_ms: Vec<u8>,
}

/// The keys of a call and everything that is known about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The keys.
    pub keys: Batch,
    /// For each row its key.
    pub key_of_row: Vec<u8>,
    /// The rows.
    pub rows: Batch,
    /// For each variable its entries.
    pub state: Vec<Entries>,
    /// The timers.
    pub timers: Timers,
    /// The time of the batch.
    pub batch_time_ms: i64,
    /// The watermark.
    pub watermark_ms: Option<i64>,
}

/// What becomes of one variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableChanges {
    /// Keys that lose all their entries.
    pub cleared: Vec<u8>,
    /// For each map key to remove its key.
    pub key_of_removed: Vec<u8>,
    /// The map keys to remove.
    pub removed: Batch,
    /// Entries to write.
    pub put: Entries,
}

/// What a call makes of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The output rows.
    pub rows: Batch,
    /// For each output row its key.
    pub key_of_row: Vec<u8>,
    /// For each variable what changes.
    pub changes: Vec<VariableChanges>,
    /// Timers to delete.
    pub deleted_timers: Timers,
    /// Timers to register.
    pub registered_timers: Timers,
    /// The keys that failed.
    pub key_errors: Vec<(u32, String)>,
}

/// What a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Initial rows.
    Initialise,
    /// Rows of a batch.
    Process,
    /// Timers that are due.
    Expire(Timers),
}

impl Timers {
    /// Appends a timer.
    pub(super) fn push(&mut self, key: u32, due_ms: i64) {
        self.key_of_timer.extend(key.to_le_bytes());
        self.due_ms.extend(due_ms.to_le_bytes());
    }

    /// The times, key by key.
    pub(super) fn by_key(&self) -> ByKey<i64> {
        ByKey::new(&self.key_of_timer, self.iter().map(|(_, due)| due).collect())
    }

    /// All timers: key and time.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, i64)> {
        let due = self.due_ms.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
        numbers(&self.key_of_timer).zip(due)
    }
}

/// The numbers in a buffer.
pub(super) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Things by their keys, which are ascending: those of one key after the other.
pub(super) struct ByKey<T> {
    things: std::iter::Peekable<std::vec::IntoIter<(u32, T)>>,
}

impl<T> ByKey<T> {
    pub(super) fn new(keys: &[u8], things: Vec<T>) -> Self {
        Self { things: numbers(keys).zip(things).collect::<Vec<_>>().into_iter().peekable() }
    }

    /// Those of `key`; keys are asked for in ascending order.
    pub(super) fn take(&mut self, key: u32) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some((of, thing)) = self.things.next_if(|(of, _)| *of <= key) {
            if of == key {
                taken.push(thing);
            }
        }
        taken
    }
}

impl<T> Default for ByKey<T> {
    fn default() -> Self {
        Self { things: Vec::new().into_iter().peekable() }
    }
}
