//! A reading of the binary log, cut into the transactions of one table.

use super::super::columns::of_table;
use super::columns::Columns;
use super::config::CdcConfig;
use super::name::LoggedName;
use super::position::Position;
use super::statement::{Said, said};
use crate::SourceError;
use crate::connectors::database::{Change, Fetched, Op, Transaction, failed, updated};
use millstream_client::database::DatabaseError;
use millstream_client::mysql::{Binlog, BinlogRow, Connection, EventData, RowsEventData, TableMapEvent};
use millstream_common::StopSignal;
use std::ops::RangeInclusive;

/// The kinds of events in which MariaDB compresses statements and rows.
const COMPRESSED: RangeInclusive<u8> = 165..=171;

/// The kinds of events that only MariaDB has and that have no rows: annotations, checkpoints, GTIDs, encryption.
const OF_MARIADB: RangeInclusive<u8> = 160..=164;

/// Who reads what.
pub(super) struct Reader<'a> {
    pub(super) name: &'a str,
    pub(super) config: &'a CdcConfig,
    pub(super) table: &'a LoggedName,
    /// By which number the server knows this reader.
    pub(super) number: u32,
    pub(super) stop: &'a StopSignal,
}

impl Reader<'_> {
    /// Reads behind `from`: up to `to`, or until there are `limit` changes.
    pub(super) fn read(
        &self,
        columns: &Columns,
        (from, to): (&Position, &Position),
        limit: u64,
    ) -> Result<Fetched<Position>, SourceError> {
        let reading = failed(self.name, "read the log");
        let begin = (from.file.as_str(), from.position);
        let mut log = Binlog::open(&self.config.shared.address, self.stop, self.number, begin).map_err(&reading)?;
        let (mut progress, mut rows) = (Progress::new(from), 0_u64);
        while let Some(event) = log.next_event().map_err(&reading)? {
            let at = Position { file: progress.file.clone(), position: event.header().log_pos().into() };
            let kind = event.header().event_type_raw();
            if OF_MARIADB.contains(&kind) {
                continue;
            }
            if COMPRESSED.contains(&kind) {
                return Err(self.malformed(&at, "it is compressed; set `log_bin_compress` of the server to OFF"));
            }
            let data = event.read_data().map_err(|error| self.malformed(&at, &error.to_string()))?;
            let ends = match data {
                Some(EventData::RotateEvent(rotate)) => {
                    if progress.goes_on_in(&rotate.name(), rotate.position(), to) {
                        break;
                    }
                    false
                }
                Some(EventData::RowsEvent(data)) => {
                    let table = log.table(data.table_id());
                    if let Some(table) = table.filter(|table| is_named(table, self.table)) {
                        for row in data.rows(table) {
                            let row = row.map_err(|error| self.malformed(&at, &error.to_string()))?;
                            let changes = changes(columns, &data, row, at > columns.asked_at);
                            progress.open.extend(changes.map_err(|problem| match problem {
                                Problem::Table(reason) => self.changed(&at, &reason),
                                Problem::Value(reason) => self.malformed(&at, &reason),
                            })?);
                        }
                    }
                    false
                }
                Some(EventData::TransactionPayloadEvent(_)) => {
                    let reason = "it is compressed; set `binlog_transaction_compression` of the server to OFF";
                    return Err(self.malformed(&at, reason));
                }
                Some(EventData::XaPrepareLogEvent(_)) if !progress.open.is_empty() => {
                    return Err(self.malformed(&at, "changes of XA transactions are not read"));
                }
                Some(EventData::XidEvent(_)) => true,
                Some(EventData::QueryEvent(query)) => match said(&query.query(), &query.schema(), self.table) {
                    Said::Begin => false,
                    Said::Rollback => {
                        progress.open.clear();
                        true
                    }
                    Said::Truncate => {
                        progress.open.push(columns.truncate());
                        true
                    }
                    Said::Alter => {
                        if at > columns.asked_at && at <= *to {
                            self.look_again(columns, &at)?;
                        }
                        true
                    }
                    Said::Other => true,
                },
                _ => false,
            };
            if !ends {
                continue;
            }
            if at > *to {
                break;
            }
            if at.file == progress.reached.file && at.position < progress.reached.position && !progress.open.is_empty()
            {
                // Positions have 32 bits, and a file grows beyond that by a single transaction only.
                return Err(self.malformed(&at, "a file of the log is larger than 4 GiB"));
            }
            if at > *from {
                progress.reached = at.clone();
                if !progress.open.is_empty() {
                    rows += progress.open.len() as u64;
                    let committed_us = i64::from(event.header().timestamp()) * 1_000_000;
                    let changes = std::mem::take(&mut progress.open);
                    progress.transactions.push(Transaction {
                        position: at.to_string(),
                        end: at,
                        committed_us,
                        changes,
                    });
                }
            }
            progress.open.clear();
            if rows >= limit || *to == progress.reached {
                break;
            }
        }
        Ok(Fetched { transactions: progress.transactions, reached: progress.reached })
    }

    fn malformed(&self, at: &Position, reason: &str) -> SourceError {
        SourceError::Malformed { name: self.name.to_owned(), place: at.to_string(), reason: reason.to_owned() }
    }

    fn changed(&self, at: &Position, reason: &str) -> SourceError {
        SourceError::TableChanged {
            name: self.name.to_owned(),
            table: self.config.shown(),
            reason: format!("{reason} (at {at})"),
        }
    }

    /// Since a statement has changed the table its columns must still be those of the stream.
    fn look_again(&self, columns: &Columns, at: &Position) -> Result<(), SourceError> {
        let connection = Connection::open(&self.config.shared.address, "millstream columns", self.stop);
        match connection.and_then(|mut connection| of_table(&mut connection, &self.config.shared.table)) {
            Ok(now) => columns.difference(&now.columns).map_or(Ok(()), |reason| Err(self.changed(at, &reason))),
            Err(DatabaseError::Missing { .. }) => Err(self.changed(at, "it is gone")),
            Err(error) => Err(failed(self.name, "ask for the columns of the table")(error)),
        }
    }
}

/// What a reading has found so far.
struct Progress {
    /// The file that is read.
    file: String,
    /// Up to where all transactions are found.
    reached: Position,
    transactions: Vec<Transaction<Position>>,
    /// The changes of the transaction that has not ended.
    open: Vec<Change>,
}

impl Progress {
    fn new(from: &Position) -> Self {
        Self { file: from.file.clone(), reached: from.clone(), transactions: Vec::new(), open: Vec::new() }
    }

    /// The log says in which file it goes on, and where there; answers whether all up to `to` is read.
    fn goes_on_in(&mut self, name: &str, begin: u64, to: &Position) -> bool {
        // The first time it is not yet known that events end with a checksum, which stands behind the name then.
        if name.starts_with(&self.file) {
            return false;
        }
        self.file = name.to_owned();
        // A transaction is in one file: what has not ended there, the server has not done.
        self.open.clear();
        let begin = Position { file: self.file.clone(), position: begin };
        // A server where nothing happens throws the file before away, too: it is not needed any more.
        if begin <= *to {
            self.reached = begin.clone();
        }
        begin >= *to
    }
}

fn is_named(table: &TableMapEvent<'_>, name: &LoggedName) -> bool {
    name.is(&table.database_name(), &table.table_name())
}

/// What a row of the log can have wrong.
enum Problem {
    Table(String),
    Value(String),
}

fn changes(
    columns: &Columns,
    data: &RowsEventData<'_>,
    (before, after): (Option<BinlogRow>, Option<BinlogRow>),
    is_since: bool,
) -> Result<Vec<Change>, Problem> {
    let Some(any) = after.as_ref().or(before.as_ref()) else { return Ok(Vec::new()) };
    let names: Vec<String> = any.columns_ref().iter().map(|column| column.name_str().into_owned()).collect();
    let places = columns.places(&names, is_since).map_err(Problem::Table)?;
    if any.len() as u64 != data.num_columns() {
        let reason = "the log does not have all columns of a row; set `binlog_row_image` of the server to FULL";
        return Err(Problem::Value(reason.to_owned()));
    }
    let change = |op, mut row: BinlogRow| columns.change(op, &places, &mut row).map_err(Problem::Value);
    Ok(match (before, after) {
        (Some(before), Some(after)) => updated(&columns.key, change(Op::Update, before)?, change(Op::Update, after)?),
        (None, Some(after)) => vec![change(Op::Insert, after)?],
        (Some(before), None) => vec![change(Op::Delete, before)?],
        (None, None) => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(file: &str, position: u64) -> Position {
        Position { file: file.to_owned(), position }
    }

    #[test]
    fn a_file_that_ends_is_not_needed_any_more_whether_or_not_something_was_in_it() {
        let to = position("binlog.000003", 157);
        let mut progress = Progress::new(&position("binlog.000001", 700));
        assert!(!progress.goes_on_in("binlog.000001\u{1}\u{2}", 700, &to), "it begins");
        assert_eq!(progress.reached, position("binlog.000001", 700));
        progress.open.push(Change { op: Op::Truncate, values: Vec::new() });
        assert!(!progress.goes_on_in("binlog.000002", 4, &to));
        assert_eq!((&progress.reached, progress.open.len()), (&position("binlog.000002", 4), 0));
        assert!(!progress.goes_on_in("binlog.000003", 4, &to));
        assert_eq!(progress.reached, position("binlog.000003", 4));
        assert!(progress.goes_on_in("binlog.000004", 4, &to), "all is read");
        assert_eq!(progress.reached, position("binlog.000003", 4), "no further than was asked for");
    }

    #[test]
    fn a_reading_may_end_where_a_file_begins() {
        let to = position("binlog.000002", 4);
        let mut progress = Progress::new(&position("binlog.000001", 700));
        assert!(progress.goes_on_in("binlog.000002", 4, &to));
        assert_eq!(progress.reached, to);
    }
}
