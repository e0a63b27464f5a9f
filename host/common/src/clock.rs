//! Time as a parameter.
//!
//! The loop, the sources and the triggers ask a [`Clock`]; nobody reads the wall clock on their own, so a
//! test can drive a whole query with a [`ManualClock`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the host gets its time from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
    /// Waits for about `duration`. A manual clock moves itself forward instead of waiting.
    fn sleep(&self, duration: Duration);
}

/// The machine's clock. `now_ms` never goes back within one process: when the machine's clock is set
/// back, the last value stands until it is passed again.
#[derive(Debug, Default)]
pub struct SystemClock {
    last_ms: AtomicI64,
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        self.last_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that moves only when told to: for tests and for replay.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn at(now_ms: i64) -> Self {
        Self { now_ms: AtomicI64::new(now_ms) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration.max(Duration::from_millis(1)));
    }
}
