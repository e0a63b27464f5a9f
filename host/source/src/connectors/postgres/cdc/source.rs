//! The stream of changes: positions in the log, and the rows between them.

use super::super::columns::{literal, quote, schema};
use super::beginning::{Beginning, Names, Seen, begin, names, one, position};
use super::config::CdcConfig;
use super::pgoutput::{Message, parse};
use super::relation::Columns;
use crate::connectors::database::{Change, ChangeColumns, Op, SnapshotFiles, Transaction, failed, patiently};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_client::postgres::{ColumnType, Connection, parse_lsn};
use millstream_common::{ReadLimit, StopSignal};
use serde_json::json;
use std::sync::Arc;

/// How much log without a change of this table makes a batch without rows: the server must not keep it for ever for a
/// stream that is quiet.
const QUIET: u64 = 16 * 1024 * 1024;

/// Makes streams of the changes of tables.
#[derive(Debug, Clone, Copy)]
pub struct PostgresCdcFactory;

/// The columns of the table and their numbers in the catalog. The server is asked for those that no user declares.
fn table_columns(spec: &SourceSpec, config: &CdcConfig) -> Result<(SchemaRef, Vec<ColumnType>), SourceError> {
    let ask = || {
        let mut connection = Connection::open(&config.address, "millstream columns", &StopSignal::new())?;
        // The log has no columns that are computed from others.
        let names = connection.rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped \
             AND attgenerated = '' ORDER BY attnum",
            literal(&config.table)
        ))?;
        let names: Vec<String> = names.iter().filter_map(|row| row.get(0)).map(quote).collect();
        let names = if names.is_empty() { "*".to_owned() } else { names.join(", ") };
        connection.describe(&format!("SELECT {names} FROM {}", config.table))
    };
    let found = ask().map_err(failed(&spec.name, "ask for the columns of the table"))?;
    match &spec.schema {
        Some(declared) => Ok((Arc::clone(declared), found)),
        None => Ok((schema(&found), found)),
    }
}

impl SourceFactory for PostgresCdcFactory {
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

    fn can_be_read_twice(&self) -> bool {
        // What is released is gone from the log.
        false
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let misfit = |reason: String| SourceError::Schema { name: spec.name.clone(), reason };
        let (table, found) = table_columns(spec, &config)?;
        let mut type_ids = Vec::new();
        for field in table.fields() {
            let column = found.iter().find(|column| column.name == *field.name());
            let there = || found.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
            type_ids.push(
                column
                    .ok_or_else(|| {
                        misfit(format!("table `{}` has no column `{}`; it has {}", config.shown, field.name(), there()))
                    })?
                    .type_id,
            );
        }
        let change_columns = ChangeColumns::new(&table).map_err(misfit)?;
        let files = SnapshotFiles::new(&spec.name, context.files);
        let beginning = files.state::<Beginning>()?;
        let names = match &beginning {
            Some(_) => Some(names(&spec.name, &config, &files)?),
            None => None,
        };
        let mut source = PostgresCdc {
            name: spec.name.clone(),
            stop: context.stop,
            columns: Columns::new(&table, type_ids, spec.schema.is_none()),
            change_columns,
            table,
            files,
            names,
            beginning: None,
            connection: None,
            cached: None,
            counts: Vec::new(),
            released: 0,
            quiet_at: None,
            frozen: None,
            config,
        };
        if let Some(beginning) = beginning {
            source.set_beginning(beginning)?;
        }
        Ok(Box::new(source))
    }
}

/// How the stream began, understood.
struct Begun {
    beginning: Beginning,
    position: u64,
    seen: Option<Seen>,
}

/// Transactions that were read and not yet asked for.
struct Cached {
    from: u64,
    to: u64,
    transactions: Vec<Transaction<u64>>,
}

struct PostgresCdc {
    name: String,
    stop: StopSignal,
    config: CdcConfig,
    table: SchemaRef,
    change_columns: ChangeColumns,
    columns: Columns,
    files: SnapshotFiles,
    names: Option<Names>,
    beginning: Option<Begun>,
    connection: Option<Connection>,
    cached: Option<Cached>,
    /// How many messages of the log the transactions have that were read last, by their ends.
    counts: Vec<(u64, usize)>,
    released: u64,
    /// Where the log ended when nothing was found in it.
    quiet_at: Option<String>,
    /// Where everything available ends, once it is fixed.
    frozen: Option<u64>,
}

fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}

fn offset(position: u64) -> Offset {
    Offset(json!({ "lsn": lsn(position) }))
}

impl PostgresCdc {
    fn number(&self, offset: &Offset) -> Result<u64, SourceError> {
        let position = offset.0.get("lsn").and_then(serde_json::Value::as_str).and_then(parse_lsn);
        position.ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn set_beginning(&mut self, beginning: Beginning) -> Result<&Begun, SourceError> {
        let position = position(&self.name, &beginning.lsn)?;
        let seen = match &beginning.seen {
            None => None,
            Some(text) => Some(Seen::parse(text).ok_or_else(|| SourceError::Damaged {
                name: self.name.clone(),
                place: "state".to_owned(),
                reason: format!("`{text}` is no snapshot"),
            })?),
        };
        Ok(self.beginning.insert(Begun { beginning, position, seen }))
    }

    /// How the stream began; it begins now if it has not.
    fn begun(&mut self) -> Result<(u64, bool), SourceError> {
        if self.beginning.is_none() {
            let names = names(&self.name, &self.config, &self.files)?;
            let beginning = match self.files.state::<Beginning>()? {
                Some(beginning) => beginning,
                None => begin(&self.name, &self.config, &names, &self.table, &self.files)?,
            };
            self.names = Some(names);
            self.set_beginning(beginning)?;
        }
        let begun = self.beginning.as_ref();
        Ok(begun.map_or((0, false), |begun| (begun.position, begun.seen.is_some())))
    }

    /// Asks the server; after an error the connection is of no more use, and the next attempt opens another.
    fn ask<T>(
        &mut self,
        action: &'static str,
        mut question: impl FnMut(&mut Connection) -> Result<T, DatabaseError>,
    ) -> Result<T, SourceError> {
        let (stop, name) = (self.stop.clone(), self.name.clone());
        patiently(&stop, || {
            let opened = match self.connection.take().filter(|connection| !connection.is_broken()) {
                Some(connection) => Ok(connection),
                None => Connection::open(&self.config.address, "millstream changes", &stop),
            };
            let answer = opened.and_then(|mut connection| {
                let answer = question(&mut connection)?;
                self.connection = Some(connection);
                Ok(answer)
            });
            answer.map_err(failed(&name, action))
        })
    }

    fn lost(&self, range: String, reason: String) -> SourceError {
        SourceError::Lost { name: self.name.clone(), range, reason }
    }

    /// The end of the log, and whether the slot still has everything behind `from`.
    fn look(&mut self, from: u64) -> Result<String, SourceError> {
        let slot = self.names.as_ref().map(|names| names.slot.clone()).unwrap_or_default();
        let sql = format!(
            "SELECT pg_current_wal_flush_lsn()::text, s.confirmed_flush_lsn::text, s.wal_status \
             FROM (SELECT 1) AS one LEFT JOIN pg_replication_slots s \
             ON s.slot_name = {} AND s.database = current_database()",
            literal(&slot)
        );
        let rows = self.ask("look at the log", |connection| connection.rows(&sql))?;
        let text = |at: usize| rows.first().and_then(|row| row.get(at)).map(str::to_owned);
        let range = format!("from {}", lsn(from));
        let way_out = "start a new checkpoint: its snapshot has all rows";
        match (text(1).as_deref().and_then(parse_lsn), text(2).as_deref()) {
            (_, Some("lost")) => {
                let reason = format!("the server has given up the log of replication slot `{slot}`; {way_out}");
                Err(self.lost(range, reason))
            }
            (None, _) => {
                Err(self.lost(range, format!("the server has no replication slot `{slot}` any more; {way_out}")))
            }
            (Some(confirmed), _) if confirmed > from => {
                let reason =
                    format!("replication slot `{slot}` was moved to {} by somebody else; {way_out}", lsn(confirmed));
                Err(self.lost(range, reason))
            }
            _ => Ok(text(0).unwrap_or_default()),
        }
    }

    /// The transactions behind `from`, and how many messages of the log were read.
    fn fetch(
        &mut self,
        from: u64,
        to: Option<u64>,
        most: Option<usize>,
    ) -> Result<(Vec<Transaction<u64>>, usize), SourceError> {
        let names = self.names.clone();
        let (slot, publication) = names.map(|names| (names.slot, quote(&names.publication))).unwrap_or_default();
        let (upto, most) = (to.map(lsn), most.map(|most| i32::try_from(most).unwrap_or(i32::MAX)));
        let messages =
            self.ask("read the log", |connection| connection.peek_changes(&slot, &publication, upto.as_deref(), most))?;
        let count = messages.len();
        let transactions = self.transactions(from, to, messages)?;
        Ok((transactions, count))
    }

    fn transactions(
        &mut self,
        from: u64,
        to: Option<u64>,
        messages: Vec<(u64, Vec<u8>)>,
    ) -> Result<Vec<Transaction<u64>>, SourceError> {
        let mut transactions = Vec::new();
        let mut open: Option<(i64, u32, Vec<Change>)> = None;
        self.counts.clear();
        let mut count = 0;
        for (at, bytes) in messages {
            let malformed = |reason: String| SourceError::Malformed { name: self.name.clone(), place: lsn(at), reason };
            count += 1;
            match parse(&bytes).map_err(malformed)? {
                Message::Begin { committed_us, xid } => open = Some((committed_us, xid, Vec::new())),
                Message::Commit { end } => {
                    self.counts.push((end, std::mem::take(&mut count)));
                    let seen = self.beginning.as_ref().and_then(|begun| begun.seen.as_ref());
                    if let Some((committed_us, xid, changes)) = open.take()
                        && end > from
                        && to.is_none_or(|to| end <= to)
                        && !changes.is_empty()
                        && !seen.is_some_and(|seen| seen.has(xid))
                    {
                        transactions.push(Transaction { end, position: lsn(end), committed_us, changes });
                    }
                }
                Message::Relation(relation) => {
                    self.columns.meet(&relation).map_err(|reason| SourceError::TableChanged {
                        name: self.name.clone(),
                        table: self.config.shown.clone(),
                        reason: format!("{reason} (at {})", lsn(at)),
                    })?;
                }
                message => {
                    let changes = changes(&self.columns, message).map_err(|column| {
                        malformed(format!(
                            "a large value of column `{column}` was left as it was, so the log of table `{}` does not have it; \
                             set REPLICA IDENTITY FULL for the table",
                            self.config.shown
                        ))
                    })?;
                    if let Some((_, _, open)) = &mut open {
                        open.extend(changes);
                    }
                }
            }
        }
        Ok(transactions)
    }
}

/// The changes that a message tells; answers the column whose value is missing.
fn changes(columns: &Columns, message: Message) -> Result<Vec<Change>, String> {
    Ok(match message {
        Message::Insert { relation, new } if columns.is_of(relation) => vec![columns.change(Op::Insert, &new, None)?],
        Message::Update { relation, old, new } if columns.is_of(relation) => {
            let key_changed = old.as_ref().is_some_and(|old| !old.is_whole);
            match &old {
                // Another key is another row.
                Some(key) if key_changed => {
                    let gone = columns.change(Op::Delete, &key.values, None)?;
                    vec![gone, columns.change(Op::Insert, &new, old.as_ref())?]
                }
                _ => vec![columns.change(Op::Update, &new, old.as_ref())?],
            }
        }
        Message::Delete { relation, old } if columns.is_of(relation) => {
            vec![columns.change(Op::Delete, &old.values, None)?]
        }
        Message::Truncate { relations } if relations.iter().any(|relation| columns.is_of(*relation)) => {
            vec![columns.truncate()]
        }
        _ => Vec::new(),
    })
}

/// How many of the transactions a batch takes: whole ones, up to about `limit` changes, but at least one.
fn admitted(transactions: &[Transaction<u64>], limit: u64) -> usize {
    let mut rows = 0_u64;
    for (at, transaction) in transactions.iter().enumerate() {
        rows = rows.saturating_add(transaction.changes.len() as u64);
        if rows > limit && at > 0 {
            return at;
        }
    }
    transactions.len()
}

impl Source for PostgresCdc {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.change_columns.schema())
    }

    fn description(&self) -> String {
        format!("PostgresChanges[{}/{}]", self.config.address.place(), self.config.shown)
    }

    fn read_limit(&self) -> ReadLimit {
        ReadLimit::MaxRows(self.config.max_rows)
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let (first, has_snapshot) = self.begun()?;
        let from = match start {
            Some(start) => self.number(start)?,
            None if has_snapshot => return Ok(Some(offset(first))),
            None => first,
        };
        let limit = match limit {
            ReadLimit::MaxRows(rows) => rows,
            _ => self.config.max_rows,
        };
        let end = self.look(from)?;
        if self.quiet_at.as_ref() == Some(&end) || self.frozen.is_some_and(|frozen| frozen <= from) {
            return Ok(start.cloned());
        }
        // The slot begins where the last release was: what was read since then comes once more.
        let behind: usize =
            self.counts.iter().filter(|(end, _)| *end > self.released && *end <= from).map(|(_, count)| count).sum();
        let mut most = behind.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).saturating_add(2);
        let transactions = loop {
            let (transactions, read) = self.fetch(from, self.frozen, Some(most))?;
            if !transactions.is_empty() || read < most {
                break transactions;
            }
            most = most.saturating_mul(2);
        };
        let count = admitted(&transactions, limit);
        let to = match transactions[..count].last() {
            Some(last) => last.end,
            None => match parse_lsn(&end).filter(|end| self.frozen.is_none() && end.saturating_sub(from) >= QUIET) {
                Some(end) => end,
                None => {
                    self.quiet_at = Some(end);
                    return Ok(start.cloned());
                }
            },
        };
        let mut transactions = transactions;
        transactions.truncate(count);
        self.cached = Some(Cached { from, to, transactions });
        self.quiet_at = None;
        Ok(Some(offset(to)))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (first, has_snapshot) = self.begun()?;
        let to = self.number(end)?;
        if start.is_none() && has_snapshot && to == first {
            return self.snapshot(projection).map(|rows| vec![rows]);
        }
        let from = match start {
            Some(start) => self.number(start)?,
            None => first,
        };
        let is_cached = self.cached.as_ref().is_some_and(|cached| cached.from == from && cached.to == to);
        if !is_cached {
            let end = self.look(from)?;
            let (transactions, _) = self.fetch(from, Some(to), None)?;
            if parse_lsn(&end).is_none_or(|end| end < to) {
                let range = format!("({}, {}]", lsn(from), lsn(to));
                return Err(self.lost(range, "the log of the server ends before".to_owned()));
            }
            self.cached = Some(Cached { from, to, transactions });
        }
        let transactions = self.cached.as_ref().map_or(&[][..], |cached| &cached.transactions);
        self.change_columns.rows(&self.name, transactions, projection).map(|rows| vec![rows])
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let end = self.number(end)?;
        if end <= self.released {
            return Ok(());
        }
        self.advance(end)?;
        self.released = end;
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.begun()?;
        let end =
            self.ask("look at the log", |connection| one(connection, "SELECT pg_current_wal_flush_lsn()::text"))?;
        self.frozen = end.as_deref().and_then(parse_lsn);
        Ok(())
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}

impl PostgresCdc {
    /// The rows that were there when the stream began.
    fn snapshot(&self, projection: &[usize]) -> Result<Vec<RecordBatch>, SourceError> {
        let Some(begun) = &self.beginning else { return Ok(Vec::new()) };
        let told = (begun.beginning.taken_us, begun.beginning.lsn.as_str());
        let width = self.change_columns.width();
        self.files.read(begun.beginning.pieces, self.change_columns.schema(), (width, projection), told)
    }

    /// Lets the server forget the log up to a position.
    fn advance(&mut self, to: u64) -> Result<(), SourceError> {
        let slot = self.names.as_ref().map(|names| names.slot.clone()).unwrap_or_default();
        let sql = format!(
            "SELECT pg_replication_slot_advance(slot_name, '{}') FROM pg_replication_slots \
             WHERE slot_name = {} AND confirmed_flush_lsn < '{}'",
            lsn(to),
            literal(&slot),
            lsn(to)
        );
        self.ask("release the log", |connection| connection.run(&sql))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_whole_transactions_and_at_least_one() {
        let transaction = |end, rows: usize| Transaction {
            end,
            position: lsn(end),
            committed_us: 0,
            changes: vec![Change { op: Op::Insert, values: vec![] }; rows],
        };
        let all = [transaction(1, 3), transaction(2, 2), transaction(3, 1)];
        for (limit, count) in [(1, 1), (3, 1), (4, 1), (5, 2), (6, 3), (100, 3)] {
            assert_eq!(admitted(&all, limit), count, "{limit}");
        }
        assert_eq!(admitted(&[], 1), 0);
    }

    #[test]
    fn a_position_is_written_as_postgresql_writes_it() {
        assert_eq!(lsn(0x16_B374_D848), "16/B374D848");
        assert_eq!(offset(1).to_string(), r#"{"lsn":"0/1"}"#);
    }
}
