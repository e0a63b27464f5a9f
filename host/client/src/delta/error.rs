//! What can go wrong with a Delta table.

use delta_kernel::KernelError;

/// A Delta table could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The location is no place of a table.
    #[error("`{place}` is no place for a Delta table: {reason}")]
    Location {
        /// What was given.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The kernel refused or failed.
    #[error("cannot {action} the Delta table `{place}`")]
    Kernel {
        /// `open`, `read the log of`, `write`, …
        action: &'static str,
        /// The table.
        place: String,
        /// What it said.
        #[source]
        source: Box<KernelError>,
    },
    /// The kernel panicked, which it must not.
    #[error("cannot {action} the Delta table `{place}`: its kernel panicked")]
    Panicked {
        /// What was tried.
        action: &'static str,
        /// The table.
        place: String,
    },
    /// There is no table.
    #[error("`{place}` holds no Delta table")]
    Missing {
        /// Where it was looked for.
        place: String,
    },
}

impl DeltaError {
    /// Whether another attempt may do better: the network, a disk.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Kernel { source, .. } => is_io(source),
            Self::Panicked { .. } | Self::Missing { .. } => true,
            Self::Location { .. } => false,
        }
    }

    /// Whether the table asks for what is not known here: a feature, a version of the protocol.
    pub fn is_unsupported(&self) -> bool {
        let Self::Kernel { source, .. } = self else { return false };
        matches!(source.without_backtrace(), KernelError::Unsupported(_))
    }
}

fn is_io(error: &KernelError) -> bool {
    match error {
        KernelError::Backtraced { source, .. } => is_io(source),
        KernelError::IOError(_)
        | KernelError::ObjectStore(_)
        | KernelError::Reqwest(_)
        | KernelError::JoinFailure(_) => true,
        _ => false,
    }
}
