//! The binary log of a server, as the log of a stream.

use super::super::columns::{MysqlColumn, of_table, schema};
use super::beginning::{Beginning, begin, end_of_log};
use super::columns::Columns;
use super::config::CdcConfig;
use super::position::Position;
use super::reading::Reader;
use crate::connectors::database::{
    Began, ChangeLog, ChangeStream, Fetched, Link, SnapshotFiles, Taken, WAY_OUT, change_columns, check_there, failed,
    files, patiently,
};
use crate::{Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_client::mysql::Connection;
use millstream_common::StopSignal;
use serde_json::{Value, json};
use std::sync::Arc;

/// The server's error for a file or a position that its log does not have.
const NOT_IN_THE_LOG: &str = "1236";

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
                stream_of(spec, &ask(spec, &config, &StopSignal::new(), table)?)
            }
        };
        Ok(Arc::clone(change_columns(spec, &table)?.schema()))
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        CdcConfig::new(spec).ok().map(|config| place(&config))
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let (asked_at, found) = ask(spec, &config, &context.stop, |connection| {
            Ok((end_of_log(connection)?, of_table(connection, &config.shared.table)?))
        })?;
        check_there(spec, &config.shown(), found.iter().map(|column| column.name.as_str()))?;
        let table = stream_of(spec, &found);
        let files = files(spec, &context);
        let columns = Columns::new(&table, found, spec.schema.is_none(), asked_at);
        let log = MysqlLog {
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

fn place(config: &CdcConfig) -> String {
    format!("{}/{}", config.shared.address.place(), config.shown())
}

struct MysqlLog {
    config: CdcConfig,
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
            None => begin(&self.link.name, &self.config, &self.table, &self.files, &self.link.stop)?,
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
        let number = self.begun()?.reader;
        let reader = Reader { name: &self.link.name, config: &self.config, number, stop: &self.link.stop };
        let limit = limit.unwrap_or(u64::MAX);
        let result = patiently(&self.link.stop, || reader.read(&self.columns, (from, to), limit));
        result.map_err(|error| match error {
            SourceError::Database { name, source, .. }
                if matches!(&*source, DatabaseError::Refused { code, .. } if code.starts_with(NOT_IN_THE_LOG)) =>
            {
                SourceError::Lost { name, range: format!("from {from}"), reason: format!("{source}; {WAY_OUT}") }
            }
            other => other,
        })
    }

    fn close(&mut self) {
        self.link.close();
    }
}
