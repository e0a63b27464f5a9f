//! The stream of changes: positions in the log, and the rows between them.

use super::super::columns::{MysqlColumn, of_table, schema};
use super::beginning::{Beginning, begin, end_of_log};
use super::config::CdcConfig;
use super::log::{Columns, Position, Read, read};
use crate::connectors::database::{ChangeColumns, SnapshotFiles, Transaction, failed, patiently};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_client::mysql::Connection;
use millstream_common::{ReadLimit, StopSignal};
use std::sync::Arc;

/// The server's error for a file or a position that its log does not have.
const NOT_IN_THE_LOG: &str = "1236";

/// Makes streams of the changes of tables.
#[derive(Debug, Clone, Copy)]
pub struct MysqlCdcFactory;

/// The columns of the stream that are the table's, and all of the table. The server is asked for those that no user declares.
fn table_columns(spec: &SourceSpec, config: &CdcConfig) -> Result<(SchemaRef, Vec<MysqlColumn>), SourceError> {
    let ask =
        || of_table(&mut Connection::open(&config.address, "millstream columns", &StopSignal::new())?, &config.table);
    let found = ask().map_err(failed(&spec.name, "ask for the columns of the table"))?;
    match &spec.schema {
        Some(declared) => Ok((Arc::clone(declared), found)),
        None => Ok((schema(&found), found)),
    }
}

impl SourceFactory for MysqlCdcFactory {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        let config = CdcConfig::new(spec)?;
        let table = match &spec.schema {
            Some(declared) => Arc::clone(declared),
            None => table_columns(spec, &config)?.0,
        };
        let columns = ChangeColumns::new(&table);
        let columns = columns.map_err(|reason| SourceError::Schema { name: spec.name.clone(), reason })?;
        Ok(Arc::clone(columns.schema()))
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let config = CdcConfig::new(spec).ok()?;
        Some(format!("{}/{}", config.address.place(), config.shown()))
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let misfit = |reason: String| SourceError::Schema { name: spec.name.clone(), reason };
        let (table, found) = table_columns(spec, &config)?;
        for field in table.fields() {
            if !found.iter().any(|column| column.name == *field.name()) {
                let there: Vec<&str> = found.iter().map(|column| column.name.as_str()).collect();
                let there = there.join(", ");
                return Err(misfit(format!(
                    "table `{}` has no column `{}`; it has {there}",
                    config.shown(),
                    field.name()
                )));
            }
        }
        let files = SnapshotFiles::new(&spec.name, context.files);
        Ok(Box::new(MysqlCdc {
            name: spec.name.clone(),
            stop: context.stop,
            columns: Columns::new(&table, &found, spec.schema.is_none()),
            change_columns: ChangeColumns::new(&table).map_err(misfit)?,
            table,
            beginning: files.state::<Beginning>()?,
            files,
            connection: None,
            cached: None,
            passed: None,
            quiet_at: None,
            frozen: None,
            config,
        }))
    }
}

/// Transactions that were read and not yet asked for.
struct Cached {
    from: Position,
    to: Position,
    transactions: Vec<Transaction<Position>>,
}

struct MysqlCdc {
    name: String,
    stop: StopSignal,
    config: CdcConfig,
    table: SchemaRef,
    change_columns: ChangeColumns,
    columns: Columns,
    files: SnapshotFiles,
    beginning: Option<Beginning>,
    connection: Option<Connection>,
    cached: Option<Cached>,
    /// Up to where the log behind a position has nothing of this table.
    passed: Option<(Position, Position)>,
    /// Where the log ended when nothing was found in it.
    quiet_at: Option<Position>,
    /// Where everything available ends, once it is fixed.
    frozen: Option<Position>,
}

impl MysqlCdc {
    fn position(&self, offset: &Offset) -> Result<Position, SourceError> {
        serde_json::from_value(offset.0.clone())
            .map_err(|_| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn offset(&self, position: &Position) -> Result<Offset, SourceError> {
        let value = serde_json::to_value(position);
        value.map(Offset).map_err(|error| SourceError::Damaged {
            name: self.name.clone(),
            place: position.to_string(),
            reason: error.to_string(),
        })
    }

    /// How the stream began; it begins now if it has not.
    fn begun(&mut self) -> Result<Beginning, SourceError> {
        if let Some(beginning) = &self.beginning {
            return Ok(beginning.clone());
        }
        let beginning = begin(&self.name, &self.config, &self.table, &self.files)?;
        Ok(self.beginning.insert(beginning).clone())
    }

    /// Where the log ends now. After an error the connection is of no more use, and the next attempt opens another.
    fn end(&mut self) -> Result<Position, SourceError> {
        let (stop, name) = (self.stop.clone(), self.name.clone());
        patiently(&stop, || {
            let opened = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => Connection::open(&self.config.address, "millstream changes", &stop),
            };
            let answer = opened.and_then(|mut connection| {
                let end = end_of_log(&mut connection)?;
                self.connection = Some(connection);
                Ok(end)
            });
            answer.map_err(failed(&name, "look at the log"))
        })
    }

    fn fetch(&mut self, from: &Position, to: Option<&Position>, limit: u64) -> Result<Read, SourceError> {
        let reader = self.begun()?.reader;
        let stop = self.stop.clone();
        let result = patiently(&stop, || read(&self.name, &self.config, &mut self.columns, reader, (from, to), limit));
        result.map_err(|error| match error {
            SourceError::Database { name, source, .. }
                if matches!(&*source, DatabaseError::Refused { code, .. } if code.starts_with(NOT_IN_THE_LOG)) =>
            {
                SourceError::Lost {
                    name,
                    range: format!("from {from}"),
                    reason: format!("{source}; start a new checkpoint: its snapshot has all rows"),
                }
            }
            other => other,
        })
    }
}

/// How many of the transactions a batch takes: whole ones, up to about `limit` changes, but at least one.
fn admitted(transactions: &[Transaction<Position>], limit: u64) -> usize {
    let mut rows = 0_u64;
    for (at, transaction) in transactions.iter().enumerate() {
        rows = rows.saturating_add(transaction.changes.len() as u64);
        if rows > limit && at > 0 {
            return at;
        }
    }
    transactions.len()
}

impl Source for MysqlCdc {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.change_columns.schema())
    }

    fn description(&self) -> String {
        format!("MysqlChanges[{}/{}]", self.config.address.place(), self.config.shown())
    }

    fn read_limit(&self) -> ReadLimit {
        ReadLimit::MaxRows(self.config.max_rows)
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let beginning = self.begun()?;
        let from = match start {
            Some(start) => self.position(start)?,
            None if beginning.snapshot => return self.offset(&beginning.position).map(Some),
            None => beginning.position,
        };
        let limit = match limit {
            ReadLimit::MaxRows(rows) => rows,
            _ => self.config.max_rows,
        };
        let end = self.end()?;
        let until = self.frozen.clone().map_or(end.clone(), |frozen| frozen.min(end.clone()));
        if self.quiet_at.as_ref() == Some(&end) || until <= from {
            return Ok(start.cloned());
        }
        // What was passed over once need not be read again.
        let begin = match &self.passed {
            Some((after, to)) if *after == from && *to <= until => to.clone(),
            _ => from.clone(),
        };
        let Read { mut transactions, reached } = self.fetch(&begin, Some(&until), limit)?;
        transactions.truncate(admitted(&transactions, limit));
        let Some(last) = transactions.last() else {
            self.passed = Some((from, reached));
            self.quiet_at = Some(end);
            return Ok(start.cloned());
        };
        let to = last.end.clone();
        let offset = self.offset(&to)?;
        self.cached = Some(Cached { from, to, transactions });
        self.quiet_at = None;
        Ok(Some(offset))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let beginning = self.begun()?;
        let to = self.position(end)?;
        if start.is_none() && beginning.snapshot && to == beginning.position {
            let told = (beginning.taken_us, beginning.position.to_string());
            let schema = self.change_columns.schema();
            let columns = (self.change_columns.width(), projection);
            let rows = self.files.read(beginning.pieces, schema, columns, (told.0, &told.1))?;
            return Ok(vec![rows]);
        }
        let from = match start {
            Some(start) => self.position(start)?,
            None => beginning.position,
        };
        let is_cached = self.cached.as_ref().is_some_and(|cached| cached.from == from && cached.to == to);
        if !is_cached {
            let Read { transactions, .. } = self.fetch(&from, Some(&to), u64::MAX)?;
            if to > from && transactions.last().is_none_or(|last| last.end != to) {
                return Err(SourceError::Lost {
                    name: self.name.clone(),
                    range: format!("({from}, {to}]"),
                    reason: "the log of the server ends before".to_owned(),
                });
            }
            self.cached = Some(Cached { from, to, transactions });
        }
        let transactions = self.cached.as_ref().map_or(&[][..], |cached| &cached.transactions);
        self.change_columns.rows(&self.name, transactions, projection).map(|rows| vec![rows])
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.begun()?;
        self.frozen = Some(self.end()?);
        Ok(())
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}
