//! What SQL expressions must know of the session and of the batch they run in.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The time of the running batch: what `current_timestamp` answers. Clones share it.
///
/// The runtime sets it from the offset log before a batch runs, so a replayed batch sees the same time.
#[derive(Debug, Clone, Default)]
pub struct BatchTime(Arc<AtomicI64>);

impl BatchTime {
    /// Sets the time, in milliseconds since 1970.
    pub fn set_ms(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// The time, in milliseconds since 1970.
    pub fn get_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The settings that SQL expressions depend on. The time zone is always UTC.
#[derive(Debug, Clone)]
pub struct SqlSettings {
    /// `spark.sql.ansi.enabled`: errors instead of nulls and wrap-around. On by default.
    pub ansi: bool,
    /// The time of the running batch.
    pub batch_time: BatchTime,
}

impl Default for SqlSettings {
    fn default() -> Self {
        Self { ansi: true, batch_time: BatchTime::default() }
    }
}
