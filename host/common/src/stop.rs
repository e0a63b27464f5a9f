//! The wish to stop: set once, seen by every loop that may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often who waits looks whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// A flag that says "stop at the next border"; clones share it.
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// A signal that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody who looks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether stopping was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits in real time, as for a server that is away; answers whether nobody asked to stop meanwhile.
    pub fn has_paused(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
        false
    }
}
