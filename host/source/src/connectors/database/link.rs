//! A connection that is opened again while a server comes and goes, as long as nobody wants to stop.

use super::failed;
use crate::SourceError;
use millstream_client::database::{Address, DatabaseError};
use millstream_client::patience::Patience;
use millstream_client::{mysql, postgres};
use millstream_common::StopSignal;
use std::time::Duration;

/// For how long it is tried again in all.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection of either client.
pub(crate) trait Connect: Sized {
    /// Opens one.
    fn open(address: &Address, name: &str, stop: &StopSignal) -> Result<Self, DatabaseError>;

    /// Whether it is known to be of no more use.
    fn is_broken(&self) -> bool {
        false
    }
}

impl Connect for postgres::Connection {
    fn open(address: &Address, name: &str, stop: &StopSignal) -> Result<Self, DatabaseError> {
        Self::open(address, name, stop)
    }

    fn is_broken(&self) -> bool {
        Self::is_broken(self)
    }
}

impl Connect for mysql::Connection {
    fn open(address: &Address, name: &str, stop: &StopSignal) -> Result<Self, DatabaseError> {
        Self::open(address, name, stop)
    }
}

/// The connection of a stream.
pub(crate) struct Link<C> {
    /// The stream.
    pub(crate) name: String,
    /// Where it leads.
    pub(crate) address: Address,
    /// Set when nothing is to be waited for any more.
    pub(crate) stop: StopSignal,
    connection: Option<C>,
}

impl<C: Connect> Link<C> {
    /// One that connects when it is asked something.
    pub(crate) fn new(name: &str, address: &Address, stop: StopSignal) -> Self {
        Self { name: name.to_owned(), address: address.clone(), stop, connection: None }
    }

    /// Asks the server; after an error the connection is of no more use, and the next attempt opens another.
    pub(crate) fn ask<T>(
        &mut self,
        action: &'static str,
        mut question: impl FnMut(&mut C) -> Result<T, DatabaseError>,
    ) -> Result<T, SourceError> {
        let Self { name, address, stop, connection } = self;
        patiently(stop, || {
            let opened = match connection.take().filter(|connection| !connection.is_broken()) {
                Some(connection) => Ok(connection),
                None => C::open(address, "millstream changes", stop),
            };
            let answer = opened.and_then(|mut open| {
                let answer = question(&mut open)?;
                *connection = Some(open);
                Ok(answer)
            });
            answer.map_err(failed(name, action))
        })
    }

    /// Ends the connection.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }
}

/// Tries until it goes well, or fails in a way that waiting does not mend, or has taken long enough.
pub(crate) fn patiently<T>(
    stop: &StopSignal,
    mut attempt: impl FnMut() -> Result<T, SourceError>,
) -> Result<T, SourceError> {
    let mut patience = Patience::new(stop, PATIENCE);
    loop {
        let error = match attempt() {
            Err(error) => error,
            done => return done,
        };
        let warn =
            || tracing::warn!(error = millstream_common::describe_chain(&error), "the server is away; trying again");
        if !patience.has_more(is_transient(&error), warn) {
            return Err(error);
        }
    }
}

fn is_transient(error: &SourceError) -> bool {
    match error {
        SourceError::Database { source, .. } => source.is_transient(),
        SourceError::Redis { source, .. } => source.is_transient(),
        SourceError::Nats { source, .. } => source.is_transient(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(is_transient: bool) -> SourceError {
        let (place, message) = ("db".to_owned(), "no".to_owned());
        let source = match is_transient {
            true => DatabaseError::Busy { place, message },
            false => DatabaseError::Missing { place, message },
        };
        SourceError::Database { name: "s".into(), action: "read the log", source: Box::new(source) }
    }

    #[test]
    fn only_what_waiting_may_mend_is_tried_again() {
        let mut attempts = 0;
        let mut failing = |times: u32, is_transient: bool, stop: &StopSignal| {
            attempts = 0;
            let result = patiently(stop, || {
                attempts += 1;
                if attempts <= times { Err(error(is_transient)) } else { Ok(()) }
            });
            (result.is_ok(), attempts)
        };
        let (going, stopping) = (StopSignal::new(), StopSignal::new());
        stopping.set();
        assert_eq!(failing(1, true, &going), (true, 2));
        assert_eq!(failing(1, false, &going), (false, 1));
        assert_eq!(failing(1, true, &stopping), (false, 1));
    }
}
