//! What a batch query reads: the rows that are there.
//!
//! A slot would hold the log of the server for a reader that never comes back, so none is made, and no publication; from the
//! log itself nothing is read.

use super::beginning::take_rows;
use super::config::CdcConfig;
use super::log::{Lsn, PostgresLog};
use crate::SourceError;
use crate::connectors::attempt::patiently;
use crate::connectors::database::{Began, ChangeLog, Fetched, SnapshotFiles, Taken};
use arrow::datatypes::SchemaRef;
use millstream_common::StopSignal;
use serde_json::Value;

/// A log that ends where it begins.
pub(super) struct EmptyLog {
    pub(super) name: String,
    pub(super) config: CdcConfig,
    pub(super) table: SchemaRef,
    pub(super) files: SnapshotFiles,
    pub(super) stop: StopSignal,
    /// Where the log of the server ended before the rows are read.
    pub(super) position: Lsn,
    pub(super) began: Option<Began<Lsn>>,
}

impl ChangeLog for EmptyLog {
    type Position = Lsn;

    fn offset(position: &Lsn) -> Value {
        PostgresLog::offset(position)
    }

    fn position(offset: &Value) -> Option<Lsn> {
        PostgresLog::position(offset)
    }

    fn is_far(_: &Lsn, _: &Lsn) -> bool {
        false
    }

    fn begin(&mut self) -> Result<Began<Lsn>, SourceError> {
        if let Some(began) = &self.began {
            return Ok(began.clone());
        }
        let Self { name, config, table, files, stop, position, .. } = &*self;
        let taken = match config.shared.snapshot {
            true => Some(patiently(name, stop, || take_rows(name, config, table, files, stop))?),
            false => None,
        };
        let snapshot = taken.map(|taken| Taken { taken_us: taken.taken_us, pieces: taken.pieces });
        let began = Began { position: *position, snapshot };
        Ok(self.began.insert(began).clone())
    }

    fn end(&mut self, _: Option<&Lsn>) -> Result<Lsn, SourceError> {
        Ok(self.position)
    }

    fn fetch(&mut self, _: &Lsn, to: &Lsn, _: Option<u64>) -> Result<Fetched<Lsn>, SourceError> {
        Ok(Fetched { transactions: Vec::new(), reached: *to })
    }

    fn close(&mut self) {}
}
