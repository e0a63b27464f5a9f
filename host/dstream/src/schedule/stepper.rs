//! A context without threads: the program says when.

use crate::{DStreamError, StreamingContext};
use std::sync::Arc;

/// A context that runs batches when it is told to, on the thread that tells it: for tests over a clock of their own, and for
/// programs that have a loop.
///
/// When it goes, the context is stopped.
#[derive(Debug)]
pub struct Stepper(pub(crate) StreamingContext);

impl Stepper {
    /// Cuts and runs every batch whose time has come; how many ran.
    ///
    /// # Errors
    /// When a batch fails; the context has been stopped then.
    pub fn run_due(&self) -> Result<usize, Arc<DStreamError>> {
        self.0.step()
    }

    /// Stops the context, as [`StreamingContext::stop`].
    pub fn stop(&self, graceful: bool) {
        self.0.stop(graceful);
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.0.stop(false);
    }
}
