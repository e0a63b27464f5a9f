//! The binary log of a server, as the log of a stream.

use super::super::columns::{MysqlColumn, of_table, schema};
use super::beginning::{Beginning, begin, end_of_log, one};
use super::columns::Columns;
use super::config::CdcConfig;
use super::name::{Case, LoggedName};
use super::position::Position;
use super::reading::Reader;
use crate::connectors::attempt::patiently;
use crate::connectors::database::{
    Began, ChangeLog, ChangeStream, Fetched, Link, SnapshotFiles, Taken, WAY_OUT, change_columns, check_there, failed,
    files,
};
use crate::{Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_client::mysql::Connection;
use millstream_common::StopSignal;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

/// The server's error for what goes wrong with its log.
const OF_THE_LOG: &str = "1236";

/// What it says then of a file or a position that its log does not have.
const GONE: [&str; 3] = ["could not find first log file", "could not find next log", "to start replication from"];

/// Makes streams of the changes of tables.
#[derive(Debug, Clone, Copy)]
pub struct MysqlCdcFactory;

/// What the server says of the table, if there is a server.
fn ask<T>(
    spec: &SourceSpec,
    config: &CdcConfig,
    stop: &StopSignal,
    question: impl FnOnce(&mut Connection) -> Result<T, DatabaseError>,
) -> Result<T, SourceError> {
    let connection = Connection::open(&config.shared.address, "millstream columns", stop);
    let answer = connection.and_then(|mut connection| question(&mut connection));
    answer.map_err(failed(&spec.name, "ask for the columns of the table"))
}

fn stream_of(spec: &SourceSpec, found: &[MysqlColumn]) -> SchemaRef {
    spec.schema.as_ref().map_or_else(|| schema(found), Arc::clone)
}

impl SourceFactory for MysqlCdcFactory {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        let config = CdcConfig::new(spec)?;
        let table = match &spec.schema {
            Some(declared) => Arc::clone(declared),
            None => {
                let table = |connection: &mut Connection| of_table(connection, &config.shared.table);
                stream_of(spec, &ask(spec, &config, &StopSignal::new(), table)?.columns)
            }
        };
        Ok(Arc::clone(change_columns(spec, &table)?.schema()))
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        CdcConfig::new(spec).ok().map(|config| place(&config))
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let (asked_at, found, case) = ask(spec, &config, &context.stop, |connection| {
            let case = Case::of(&one(connection, "SELECT @@lower_case_table_names")?.pop().unwrap_or_default());
            Ok((end_of_log(connection)?, of_table(connection, &config.shared.table)?, case))
        })?;
        check_there(spec, &config.shown(), found.columns.iter().map(|column| column.name.as_str()))?;
        let table = stream_of(spec, &found.columns);
        let files = files(spec, &context);
        let name = LoggedName::new(&found.database, &found.name, case);
        let columns = Columns::new(&table, found.columns, spec.schema.is_none(), asked_at);
        let log = MysqlLog {
            number: config.server_id.unwrap_or_else(any_number),
            name,
            columns: columns.map_err(|reason| SourceError::Schema { name: spec.name.clone(), reason })?,
            table: Arc::clone(&table),
            beginning: files.state::<Beginning>()?,
            files: files.clone(),
            link: Link::new(&spec.name, &config.shared.address, context.stop),
            config,
        };
        let shown = (place(&log.config), log.config.shared.max_rows);
        Ok(Box::new(ChangeStream::new(spec, shown, &table, files, log)?))
    }
}

/// A number for a reader, of its own for each: a rehearsal of the same stream may run beside it.
fn any_number() -> u32 {
    let random = RandomState::new().build_hasher().finish() as u32;
    // Servers have small ones.
    random | 0x4000_0000
}

/// Whether what the reading of the log needs is there no more; all else may pass, or is to be mended at the server.
fn is_gone(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Refused { code, message, .. } => {
            let message = message.to_lowercase();
            code.starts_with(OF_THE_LOG) && GONE.iter().any(|part| message.contains(part))
        }
        _ => false,
    }
}

fn place(config: &CdcConfig) -> String {
    format!("{}/{}", config.shared.address.place(), config.shown())
}

struct MysqlLog {
    config: CdcConfig,
    /// By which number the server knows this reader.
    number: u32,
    name: LoggedName,
    table: SchemaRef,
    columns: Columns,
    files: SnapshotFiles,
    beginning: Option<Beginning>,
    link: Link<Connection>,
}

impl MysqlLog {
    /// How the stream began; it begins now if it has not.
    fn begun(&mut self) -> Result<&Beginning, SourceError> {
        let beginning = match self.beginning.take() {
            Some(beginning) => beginning,
            None => {
                let Link { name, stop, .. } = &self.link;
                patiently(name, stop, || begin(name, &self.config, &self.table, &self.files, stop))?
            }
        };
        Ok(self.beginning.insert(beginning))
    }
}

impl ChangeLog for MysqlLog {
    type Position = Position;

    fn offset(position: &Position) -> Value {
        json!({ "file": position.file, "position": position.position })
    }

    fn position(offset: &Value) -> Option<Position> {
        serde_json::from_value(offset.clone()).ok()
    }

    /// The server throws old files away, whoever has not read them.
    fn is_far(from: &Position, to: &Position) -> bool {
        from.file != to.file
    }

    fn begin(&mut self) -> Result<Began<Position>, SourceError> {
        let beginning = self.begun()?;
        let taken = Taken { taken_us: beginning.taken_us, pieces: beginning.pieces };
        Ok(Began { position: beginning.position.clone(), snapshot: beginning.snapshot.then_some(taken) })
    }

    fn end(&mut self, _: Option<&Position>) -> Result<Position, SourceError> {
        self.link.ask("look at the log", end_of_log)
    }

    fn fetch(&mut self, from: &Position, to: &Position, limit: Option<u64>) -> Result<Fetched<Position>, SourceError> {
        let Link { name, stop, .. } = &self.link;
        let reader = Reader { name, config: &self.config, table: &self.name, number: self.number, stop };
        let limit = limit.unwrap_or(u64::MAX);
        let result = patiently(name, stop, || reader.read(&self.columns, (from, to), limit));
        result.map_err(|error| match error {
            SourceError::Database { name, source, .. } if is_gone(&source) => {
                SourceError::Lost { name, range: format!("from {from}"), reason: format!("{source}; {WAY_OUT}") }
            }
            other => other,
        })
    }

    fn close(&mut self) {
        self.link.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_lost_only_when_a_file_or_a_position_is_gone() {
        let error = |message: &str| DatabaseError::Refused {
            place: "db".to_owned(),
            code: "1236 (HY000)".to_owned(),
            message: message.to_owned(),
        };
        for message in [
            "Could not find first log file name in binary log index file",
            "could not find next log; the first event 'binlog.000001' at 4",
            "Client requested source to start replication from position > file size",
            "Client requested master to start replication from impossible position; the first event 'binlog.000001' at 9",
        ] {
            assert!(is_gone(&error(message)), "{message}");
        }
        for message in [
            "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master",
            "Binary log is not open",
            "Misconfigured master - server id was not set",
        ] {
            assert!(!is_gone(&error(message)), "{message}");
        }
    }

    #[test]
    fn each_reader_has_a_number_of_its_own() {
        let numbers: Vec<u32> = (0..8).map(|_| any_number()).collect();
        assert!(numbers.iter().all(|number| *number > 0x3fff_ffff));
        assert!(numbers.iter().any(|number| *number != numbers[0]), "{numbers:?}");
    }
}
