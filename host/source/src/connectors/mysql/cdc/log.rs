//! The binary log, cut into the transactions of one table.

use super::super::columns::MysqlColumn;
use super::config::CdcConfig;
use super::values::ColumnKind;
use crate::SourceError;
use crate::connectors::database::{Change, Op, Raw, Transaction, failed};
use arrow::datatypes::Schema;
use millstream_client::mysql::{Binlog, BinlogRow, EventData, RowsEventData};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A position in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The file.
    pub(super) file: String,
    /// Where in it.
    pub(super) position: u64,
}

impl Position {
    /// Files are numbered behind their last point.
    fn number(&self) -> u64 {
        self.file.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.number(), self.position, &self.file).cmp(&(other.number(), other.position, &other.file))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// The columns of the stream, and where in the rows of the log they are.
#[derive(Debug)]
pub(super) struct Columns {
    wanted: Vec<(String, ColumnKind)>,
    /// All columns of the table when the run began, in order.
    all: Vec<String>,
    is_asked: bool,
    has_matched: bool,
}

impl Columns {
    /// Those of the stream, of which the table has all.
    pub(super) fn new(stream: &Schema, table: &[MysqlColumn], is_asked: bool) -> Self {
        let kind = |name: &str| {
            let column = table.iter().find(|column| column.name == name);
            ColumnKind::new(column.map_or("", |column| &column.column_type))
        };
        Self {
            wanted: stream.fields().iter().map(|field| (field.name().clone(), kind(field.name()))).collect(),
            all: table.iter().map(|column| column.name.clone()).collect(),
            is_asked,
            has_matched: false,
        }
    }

    /// Where each column of the stream is in a row of the log, whose columns have these names or, with
    /// `binlog_row_metadata` at its default, only a number.
    fn places(&mut self, names: &[String]) -> Result<Vec<Option<usize>>, String> {
        let is_named = names.iter().all(|name| !name.starts_with('@'));
        if !is_named {
            if names.len() != self.all.len() {
                return Err(format!("it has {} columns in the log, and {} now", names.len(), self.all.len()));
            }
            let place = |wanted: &String| self.all.iter().position(|name| name == wanted);
            return Ok(self.wanted.iter().map(|(name, _)| place(name)).collect());
        }
        let places: Vec<Option<usize>> =
            self.wanted.iter().map(|(name, _)| names.iter().position(|found| found == name)).collect();
        let gone = self.wanted.iter().zip(&places).find(|(_, place)| place.is_none());
        let new = names.iter().find(|name| self.is_asked && !self.wanted.iter().any(|(wanted, _)| wanted == *name));
        match (gone, new) {
            (None, None) => self.has_matched = true,
            (Some(((name, _), _)), _) if self.has_matched => return Err(format!("column `{name}` is gone")),
            (None, Some(name)) if self.has_matched => return Err(format!("column `{name}` is new")),
            // So it was before the run began.
            _ => {}
        }
        Ok(places)
    }

    fn change(&self, op: Op, places: &[Option<usize>], row: &mut BinlogRow) -> Result<Change, String> {
        let mut values = Vec::with_capacity(self.wanted.len());
        for ((name, kind), place) in self.wanted.iter().zip(places) {
            let value = place.and_then(|place| row.take(place)).map(|value| value.into_owned());
            values.push(kind.text(value).map_err(|reason| format!("column `{name}`: {reason}"))?);
        }
        Ok(Change { op, values })
    }

    fn truncate(&self) -> Change {
        Change { op: Op::Truncate, values: vec![Raw::Null; self.wanted.len()] }
    }
}

/// What one reading of the log gave.
pub(super) struct Read {
    /// The transactions of the table.
    pub(super) transactions: Vec<Transaction<Position>>,
    /// The end of the last transaction of any table.
    pub(super) reached: Position,
}

/// Reads behind `from`: up to `to`, or to the end of the log, or until there are `limit` changes.
pub(super) fn read(
    name: &str,
    config: &CdcConfig,
    columns: &mut Columns,
    reader: u32,
    (from, to): (&Position, Option<&Position>),
    limit: u64,
) -> Result<Read, SourceError> {
    let reading = failed(name, "read the log");
    let mut log =
        Binlog::open(&config.address, &millstream_common::StopSignal::new(), reader, (&from.file, from.position))
            .map_err(&reading)?;
    let mut read = Read { transactions: Vec::new(), reached: from.clone() };
    let (mut file, mut open, mut rows) = (from.file.clone(), Vec::new(), 0_u64);
    while let Some(event) = log.next_event().map_err(&reading)? {
        let at = Position { file: file.clone(), position: event.header().log_pos().into() };
        let malformed =
            |reason: String| SourceError::Malformed { name: name.to_owned(), place: at.to_string(), reason };
        // Kinds that only one of the two servers has carry no rows.
        let Ok(Some(data)) = event.read_data() else { continue };
        let ends = match data {
            EventData::RotateEvent(rotate) => {
                // The first one comes before it is known that events end with a checksum, which stands behind the name then.
                let name = rotate.name();
                if !name.starts_with(&file) {
                    file = name.into_owned();
                }
                false
            }
            EventData::RowsEvent(data) => {
                let table = log.table(data.table_id());
                let (database, wanted) = config.names();
                if let Some(table) =
                    table.filter(|table| table.table_name() == wanted && table.database_name() == database)
                {
                    for row in data.rows(table) {
                        let row = row.map_err(|error| malformed(error.to_string()))?;
                        add(columns, &data, row, &mut open).map_err(|problem| match problem {
                            Problem::Table(reason) => SourceError::TableChanged {
                                name: name.to_owned(),
                                table: config.shown(),
                                reason: format!("{reason} (at {at})"),
                            },
                            Problem::Value(reason) => malformed(reason),
                        })?;
                    }
                }
                false
            }
            EventData::XidEvent(_) => true,
            EventData::QueryEvent(query) => match said(&query.query(), &query.schema(), config.names()) {
                Said::Begin => false,
                Said::Rollback => {
                    open.clear();
                    true
                }
                Said::Truncate => {
                    open.push(columns.truncate());
                    true
                }
                Said::Other => true,
            },
            _ => false,
        };
        if !ends {
            continue;
        }
        if to.is_some_and(|to| at > *to) {
            break;
        }
        if at > *from {
            read.reached = at.clone();
            if !open.is_empty() {
                rows += open.len() as u64;
                let committed_us = i64::from(event.header().timestamp()) * 1_000_000;
                let changes = std::mem::take(&mut open);
                read.transactions.push(Transaction { position: at.to_string(), end: at, committed_us, changes });
            }
        }
        open.clear();
        if rows >= limit || to == Some(&read.reached) {
            break;
        }
    }
    Ok(read)
}

/// What a row of the log can have wrong.
enum Problem {
    Table(String),
    Value(String),
}

fn add(
    columns: &mut Columns,
    data: &RowsEventData<'_>,
    (before, after): (Option<BinlogRow>, Option<BinlogRow>),
    open: &mut Vec<Change>,
) -> Result<(), Problem> {
    let Some(any) = after.as_ref().or(before.as_ref()) else { return Ok(()) };
    let names: Vec<String> = any.columns_ref().iter().map(|column| column.name_str().into_owned()).collect();
    let places = columns.places(&names).map_err(Problem::Table)?;
    if any.len() as u64 != data.num_columns() {
        let reason = "the log does not have all columns of a row; set `binlog_row_image` of the server to FULL";
        return Err(Problem::Value(reason.to_owned()));
    }
    let (op, row) = match (before, after) {
        (Some(_), Some(after)) => (Op::Update, after),
        (None, Some(after)) => (Op::Insert, after),
        (Some(before), None) => (Op::Delete, before),
        (None, None) => return Ok(()),
    };
    let mut row = row;
    open.push(columns.change(op, &places, &mut row).map_err(Problem::Value)?);
    Ok(())
}

/// What a statement in the log is.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Begin,
    Rollback,
    Truncate,
    Other,
}

fn said(query: &str, schema: &str, (database, table): (&str, &str)) -> Said {
    let mut words = query.split_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "BEGIN" | "START" | "XA" | "SAVEPOINT" | "RELEASE" => Said::Begin,
        "ROLLBACK" if words.next().is_some_and(|word| word.eq_ignore_ascii_case("TO")) => Said::Begin,
        "ROLLBACK" => Said::Rollback,
        "TRUNCATE" => {
            let mut name = words.next().unwrap_or_default();
            if name.eq_ignore_ascii_case("TABLE") {
                name = words.next().unwrap_or_default();
            }
            let plain = name.trim_end_matches(';').replace('`', "");
            let (of, name) = plain.split_once('.').unwrap_or((schema, plain.as_str()));
            if of == database && name == table { Said::Truncate } else { Said::Other }
        }
        _ => Said::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_the_order_of_the_log() {
        let position = |file: &str, position| Position { file: file.into(), position };
        assert!(position("binlog.000009", 900) < position("binlog.000010", 4));
        assert!(position("binlog.999999", 4) < position("binlog.1000000", 4));
        assert!(position("binlog.000010", 4) < position("binlog.000010", 5));
    }

    #[test]
    fn statements_that_end_a_transaction_or_empty_the_table_are_known() {
        let names = ("shop", "items");
        assert_eq!(said("BEGIN", "shop", names), Said::Begin);
        assert_eq!(said("ROLLBACK TO `x`", "shop", names), Said::Begin);
        assert_eq!(said("TRUNCATE TABLE items", "shop", names), Said::Truncate);
        assert_eq!(said("truncate `shop`.`items`;", "other", names), Said::Truncate);
        assert_eq!(said("TRUNCATE items", "other", names), Said::Other);
        assert_eq!(said("COMMIT", "shop", names), Said::Other);
    }

    #[test]
    fn columns_that_change_in_the_middle_are_named() {
        let table: Vec<MysqlColumn> =
            ["a", "b"].map(|name| MysqlColumn { name: name.into(), column_type: "int".into() }).to_vec();
        let mut columns = Columns::new(&super::super::super::columns::schema(&table), &table, true);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(columns.places(&names(&["b"])), Ok(vec![None, Some(0)]), "a is not there yet");
        assert_eq!(columns.places(&names(&["b", "a"])), Ok(vec![Some(1), Some(0)]));
        assert_eq!(columns.places(&names(&["b", "a", "c"])), Err("column `c` is new".to_owned()));
        assert_eq!(columns.places(&names(&["b"])), Err("column `a` is gone".to_owned()));
        assert!(columns.places(&names(&["@0"])).is_err());
    }
}
