//! The binary log of MySQL and MariaDB, read from a position to its present end.

use super::Connection;
use super::error;
use crate::database::{Address, DatabaseError, Driver, Unanswered};
use futures::StreamExt;
use millstream_common::StopSignal;
use mysql_async::binlog::events::{Event, TableMapEvent};
use mysql_async::{BinlogStream, BinlogStreamRequest};
use std::time::Duration;

/// How long the server may take for the next event where no limit is set; it does not wait for new ones.
const EVENT: Duration = Duration::from_secs(60);

/// A reading of the log.
pub struct Binlog {
    stream: BinlogStream,
    driver: Driver,
    address: Address,
}

impl Binlog {
    /// Begins to read at a position. `reader` must be no server's number and no other reader's: the server
    /// keeps the newest reader of a number.
    ///
    /// # Errors
    /// When the server cannot be reached or does not let the user read its log.
    pub fn open(
        address: &Address,
        stop: &StopSignal,
        reader: u32,
        (file, position): (&str, u64),
    ) -> Result<Self, DatabaseError> {
        let lost = || DatabaseError::Lost { place: address.place(), source: "it is closed".into() };
        let (conn, driver, address_of_stream) = Connection::open(address, "millstream changes", stop)?.into_parts();
        let conn = conn.ok_or_else(lost)?;
        let request =
            BinlogStreamRequest::new(reader).with_non_blocking().with_filename(file.as_bytes()).with_pos(position);
        let stream = driver.wait(Some(EVENT), conn.get_binlog_stream(request)).map_err(|_| lost())?;
        let stream = stream.map_err(|source| error::of_statement(address, source))?;
        Ok(Self { stream, driver, address: address_of_stream })
    }

    /// The next event; `None` at the end of the log.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn next_event(&mut self) -> Result<Option<Event>, DatabaseError> {
        let limit = self.address.query_timeout.unwrap_or(EVENT);
        match self.driver.wait(Some(limit), self.stream.next()) {
            Ok(None) => Ok(None),
            Ok(Some(Ok(event))) => Ok(Some(event)),
            Ok(Some(Err(source))) => Err(error::of_statement(&self.address, source)),
            Err(Unanswered::Stopped) => Err(DatabaseError::Stopped { place: self.address.place() }),
            Err(Unanswered::Late) => {
                Err(DatabaseError::Timeout { place: self.address.place(), seconds: limit.as_secs() })
            }
        }
    }

    /// The table that rows of the log are of.
    pub fn table(&self, id: u64) -> Option<&TableMapEvent<'static>> {
        self.stream.get_tme(id)
    }
}
