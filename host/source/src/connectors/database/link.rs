//! A connection that is opened again while a server comes and goes, as long as nobody wants to stop.

use super::failed;
use crate::SourceError;
use crate::connectors::attempt::patiently;
use millstream_client::database::{Address, DatabaseError};
use millstream_client::{mysql, postgres};
use millstream_common::StopSignal;

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
        patiently(name, stop, || {
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
