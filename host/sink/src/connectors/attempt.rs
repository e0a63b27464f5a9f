//! An attempt at a server that comes and goes, as the sinks of databases, Redis, NATS and MQTT make it.

use crate::SinkError;
use millstream_client::patience::{self, Transient};
use millstream_common::StopSignal;
use std::time::Duration;

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure<E: Transient> {
    /// What the client says of the server.
    #[error(transparent)]
    Server(E),
    /// What no other attempt changes.
    #[error(transparent)]
    Sink(SinkError),
}

impl<E: Transient> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Server(error)
    }
}

impl<E: Transient> From<SinkError> for Failure<E> {
    fn from(error: SinkError) -> Self {
        Self::Sink(error)
    }
}

impl<E: Transient> Transient for Failure<E> {
    fn is_transient(&self) -> bool {
        match self {
            Self::Server(error) => error.is_transient(),
            Self::Sink(_) => false,
        }
    }
}

/// Tries as [`patience::patiently`] does; `of_server` makes the error of the sink.
pub(super) fn patiently<T, E: Transient>(
    sink: &str,
    waiting: (&StopSignal, Duration),
    attempt: impl FnMut() -> Result<T, Failure<E>>,
    of_server: impl FnOnce(Box<E>) -> SinkError,
) -> Result<T, SinkError> {
    patience::patiently(sink, waiting, attempt).map_err(|failure| match failure {
        Failure::Server(error) => of_server(Box::new(error)),
        Failure::Sink(error) => error,
    })
}
