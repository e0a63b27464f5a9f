//! The server of a sink: a connection when there is one, and patience when there is none.

use super::config::DatabaseConfig;
use super::dialect::{Dialect, Session};
use crate::connectors::attempt::{Failure, patiently};
use crate::{SinkError, SinkSpec};
use millstream_client::database::DatabaseError;
use millstream_common::StopSignal;
use std::sync::Arc;

/// Where rows go.
pub(super) struct Server {
    pub(super) dialect: Arc<dyn Dialect>,
    pub(super) config: DatabaseConfig,
    stop: StopSignal,
    session: Option<Box<dyn Session>>,
}

impl Server {
    /// Checks the options; connects when it is asked something.
    pub(super) fn new(dialect: &Arc<dyn Dialect>, spec: &SinkSpec, stop: StopSignal) -> Result<Self, SinkError> {
        let config = DatabaseConfig::new(dialect.as_ref(), spec)?;
        Ok(Self { dialect: Arc::clone(dialect), config, stop, session: None })
    }

    /// The connection, which is opened if there is none.
    pub(super) fn session(&mut self) -> Result<&mut dyn Session, DatabaseError> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.dialect.connect(&self.config.address, &self.stop)?,
        };
        Ok(self.session.insert(session).as_mut())
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.session = None;
    }

    /// Database and table, for people.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.config.address.place(), self.config.table.shown())
    }

    /// An error that says why columns do not fit.
    pub(super) fn misfit(&self, reasons: &[String]) -> SinkError {
        SinkError::Schema { sink: self.dialect.format().to_owned(), reason: reasons.join("; ") }
    }

    /// Tries until it goes well, or fails in a way that waiting does not mend, or has taken long enough, or nobody wants it any
    /// more. Each attempt begins with whatever connection is left; a failed one leaves none.
    pub(super) fn patiently<T>(
        &mut self,
        action: &'static str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, Failure<DatabaseError>>,
    ) -> Result<T, SinkError> {
        let (sink, place, stop) = (self.dialect.format().to_owned(), self.place(), self.stop.clone());
        let waiting = (&stop, self.config.retry);
        let attempt = || attempt(self).inspect_err(|_| self.session = None);
        patiently(&sink, waiting, attempt, |source| SinkError::Database { sink: sink.clone(), action, place, source })
    }
}
