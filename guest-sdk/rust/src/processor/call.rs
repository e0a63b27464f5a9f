//! What a handler may do beside its state: give out rows, keep timers, know the time.

use super::TimeMode;
use std::collections::BTreeSet;

/// One key in one call.
#[derive(Debug)]
pub struct Call<T> {
    pub(super) out: Vec<T>,
    timers: BTreeSet<i64>,
    before: BTreeSet<i64>,
    time_mode: TimeMode,
    batch_time_ms: i64,
    watermark_ms: Option<i64>,
}

impl<T> Call<T> {
    pub(super) fn new(
        timers: impl Iterator<Item = i64>,
        time_mode: TimeMode,
        batch_time_ms: i64,
        watermark_ms: Option<i64>,
    ) -> Self {
        let before: BTreeSet<i64> = timers.collect();
        Self { out: Vec::new(), timers: before.clone(), before, time_mode, batch_time_ms, watermark_ms }
    }

    /// Gives out a row.
    pub fn emit(&mut self, row: T) {
        self.out.push(row);
    }

    /// Registers a timer of this key, in milliseconds since 1970: it is due when the time of the batch, or the watermark,
    /// reaches it. A timer that is there already is the same timer.
    ///
    /// # Panics
    /// When the processor has no time mode.
    pub fn register_timer(&mut self, due_ms: i64) {
        assert!(self.time_mode != TimeMode::None, "a timer needs a time mode: set TIME_MODE of the processor");
        self.timers.insert(due_ms);
    }

    /// Deletes a timer of this key; one that is not there is no error.
    pub fn delete_timer(&mut self, due_ms: i64) {
        self.timers.remove(&due_ms);
    }

    /// The timers of this key, ascending.
    pub fn timers(&self) -> Vec<i64> {
        self.timers.iter().copied().collect()
    }

    /// The time of the batch, in milliseconds since 1970.
    pub fn processing_time_ms(&self) -> i64 {
        self.batch_time_ms
    }

    /// The watermark, in milliseconds since 1970; 0 before there is one.
    pub fn watermark_ms(&self) -> i64 {
        self.watermark_ms.unwrap_or(0)
    }

    /// The timers that the key lost, and those that it got.
    pub(super) fn timer_changes(&self) -> (Vec<i64>, Vec<i64>) {
        let lost = self.before.difference(&self.timers).copied().collect();
        (lost, self.timers.difference(&self.before).copied().collect())
    }
}
