//! The wish to stop: set once, seen by every loop that may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
}
