//! The end of whoever reads what a program prints.

use crate::fault::find_cause;
use std::io;

/// Nobody reads standard output any more: a good end for a program that is asked for the first lines only.
///
/// It is told apart from other broken pipes, such as a connection to a server that breaks while something is written.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub struct ClosedOutput;

impl ClosedOutput {
    /// The error of a write to standard output, as this where it is this.
    pub fn or(error: io::Error) -> Box<dyn std::error::Error + Send + Sync> {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Box::new(Self),
            _ => Box::new(error),
        }
    }

    /// Whether it stands behind an error.
    pub fn is_behind(error: &(dyn std::error::Error + 'static)) -> bool {
        find_cause::<Self>(error).is_some()
    }
}
