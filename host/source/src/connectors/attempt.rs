//! An attempt at a server that comes and goes, as the sources of databases, Redis and NATS make it.

use crate::SourceError;
use millstream_client::patience::{self, Transient};
use millstream_common::StopSignal;
use std::time::Duration;

/// For how long it is tried again in all.
const PATIENCE: Duration = Duration::from_secs(30);

impl Transient for SourceError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Database { source, .. } => source.is_transient(),
            Self::Redis { source, .. } => source.is_transient(),
            Self::Nats { source, .. } => source.is_transient(),
            _ => false,
        }
    }
}

/// Tries as [`patience::patiently`] does.
pub(super) fn patiently<T>(
    name: &str,
    stop: &StopSignal,
    attempt: impl FnMut() -> Result<T, SourceError>,
) -> Result<T, SourceError> {
    patience::patiently(name, (stop, PATIENCE), attempt)
}
