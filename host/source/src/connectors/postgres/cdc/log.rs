//! The write-ahead log of a server, read through a logical slot.

use super::super::columns::schema;
use super::beginning::{Beginning, Names, Seen, begin, names, position};
use super::bounded::EmptyLog;
use super::catalog::{Said, ask};
use super::config::{CdcConfig, literal};
use super::pgoutput::{Message, parse};
use super::relation::Columns;
use crate::connectors::attempt::patiently;
use crate::connectors::database::{
    Began, Change, ChangeLog, ChangeStream, Fetched, Link, SnapshotFiles, Taken, Transaction, WAY_OUT, change_columns,
    check_there, failed, files,
};
use crate::{Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::database::Product;
use millstream_client::postgres::{Connection, parse_lsn};
use millstream_common::{StopSignal, describe_chain};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// How much log without a change of this table makes a batch without rows: the server must not keep it for ever for a
/// stream that is quiet.
const QUIET: u64 = 16 * 1024 * 1024;

/// Makes streams of the changes of tables.
#[derive(Debug, Clone, Copy)]
pub struct PostgresCdcFactory;

/// The columns of the stream that are the table's, and what the server says of the table.
fn table(spec: &SourceSpec, config: &CdcConfig, stop: &StopSignal) -> Result<(SchemaRef, Said), SourceError> {
    let said = Connection::open(&config.shared.address, "millstream columns", stop)
        .and_then(|mut connection| ask(config, &mut connection))
        .map_err(failed(&spec.name, "ask for the columns of the table"))?;
    match &spec.schema {
        Some(declared) => Ok((Arc::clone(declared), said)),
        None => Ok((schema(&said.columns), said)),
    }
}

/// The same, from a server that may be away for a moment; it has the columns that a user declares.
fn awaited_table(spec: &SourceSpec, config: &CdcConfig, stop: &StopSignal) -> Result<(SchemaRef, Said), SourceError> {
    let (columns, said) = patiently(&spec.name, stop, || table(spec, config, stop))?;
    check_there(spec, &config.shared.shown(), said.columns.iter().map(|column| column.name.as_str()))?;
    Ok((columns, said))
}

impl SourceFactory for PostgresCdcFactory {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        let config = CdcConfig::new(spec)?;
        let table = match &spec.schema {
            Some(declared) => Arc::clone(declared),
            None => table(spec, &config, &StopSignal::new())?.0,
        };
        Ok(Arc::clone(change_columns(spec, &table)?.schema()))
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        CdcConfig::new(spec).ok().map(|config| place(&config))
    }

    fn can_be_read_twice(&self) -> bool {
        // What is released is gone from the log.
        false
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let (table, said) = awaited_table(spec, &config, &context.stop)?;
        let files = files(spec, &context);
        let mut log = PostgresLog {
            columns: Columns::new(&table, &said, spec.schema.is_none()),
            said,
            table: Arc::clone(&table),
            files: files.clone(),
            begun: None,
            link: Link::new(&spec.name, &config.shared.address, context.stop),
            counts: Vec::new(),
            released: 0,
            config,
        };
        if let Some(beginning) = files.state::<Beginning>()? {
            let names = names(&spec.name, &log.config, &files)?;
            log.set_begun(names, beginning)?;
        }
        let shown = (place(&log.config), log.config.shared.max_rows);
        Ok(Box::new(ChangeStream::new(spec, shown, &table, files, log)?))
    }

    /// A batch query has the rows that are there, and leaves nothing on the server.
    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = CdcConfig::new(spec)?;
        let (table, said) = awaited_table(spec, &config, &context.stop)?;
        let (files, shown) = (files(spec, &context), (place(&config), config.shared.max_rows));
        let log = EmptyLog {
            name: spec.name.clone(),
            config,
            table: Arc::clone(&table),
            files: files.clone(),
            stop: context.stop,
            position: Lsn(said.position),
            began: None,
        };
        Ok(Box::new(ChangeStream::new(spec, shown, &table, files, log)?))
    }
}

fn place(config: &CdcConfig) -> String {
    format!("{}/{}", config.shared.address.place(), config.shared.shown())
}

/// A position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lsn(u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// How the stream began, understood.
struct Begun {
    names: Names,
    began: Began<Lsn>,
    seen: Option<Seen>,
}

/// The log, through a slot.
pub(super) struct PostgresLog {
    config: CdcConfig,
    said: Said,
    table: SchemaRef,
    columns: Columns,
    files: SnapshotFiles,
    begun: Option<Begun>,
    link: Link<Connection>,
    /// How many messages of the log the transactions have that were read last, by their ends.
    counts: Vec<(u64, usize)>,
    released: u64,
}

impl PostgresLog {
    fn set_begun(&mut self, names: Names, beginning: Beginning) -> Result<&Begun, SourceError> {
        let name = &self.link.name;
        let seen = match &beginning.seen {
            None => None,
            Some(text) => Some(Seen::parse(text).ok_or_else(|| SourceError::Damaged {
                name: name.clone(),
                place: "state".to_owned(),
                reason: format!("`{text}` is no snapshot"),
            })?),
        };
        let taken = Taken { taken_us: beginning.taken_us, pieces: beginning.pieces };
        let began = Began { position: Lsn(position(name, &beginning.lsn)?), snapshot: seen.is_some().then_some(taken) };
        Ok(self.begun.insert(Begun { names, began, seen }))
    }

    /// How the stream began; it begins now if it has not.
    fn begun(&mut self) -> Result<&Begun, SourceError> {
        if self.begun.is_none() {
            let names = names(&self.link.name, &self.config, &self.files)?;
            let beginning = match self.files.state::<Beginning>()? {
                Some(beginning) => beginning,
                None => {
                    let (what, Link { name, stop, .. }) = ((&names, &self.table), &self.link);
                    patiently(name, stop, || begin(name, &self.config, what, &self.files, stop))?
                }
            };
            self.set_begun(names, beginning)?;
        }
        self.begun.as_ref().ok_or_else(|| SourceError::Damaged {
            name: self.link.name.clone(),
            place: "state".to_owned(),
            reason: "the stream has no beginning".to_owned(),
        })
    }

    fn lost(&self, range: String, reason: String) -> SourceError {
        SourceError::Lost { name: self.link.name.clone(), range, reason: format!("{reason}; {WAY_OUT}") }
    }

    fn transactions(
        &mut self,
        (from, to): (Lsn, Lsn),
        messages: Vec<(u64, Vec<u8>)>,
    ) -> Result<Vec<Transaction<Lsn>>, SourceError> {
        let mut transactions = Vec::new();
        let mut open: Option<(i64, u32, Vec<Change>)> = None;
        self.counts.clear();
        let mut count = 0;
        let (name, table) = (&self.link.name, self.config.shared.shown());
        for (at, bytes) in messages {
            let malformed =
                |reason: String| SourceError::Malformed { name: name.clone(), place: Lsn(at).to_string(), reason };
            count += 1;
            match parse(&bytes).map_err(malformed)? {
                Message::Begin { committed_us, xid } => open = Some((committed_us, xid, Vec::new())),
                Message::Commit { end } => {
                    self.counts.push((end, std::mem::take(&mut count)));
                    let (end, seen) = (Lsn(end), self.begun.as_ref().and_then(|begun| begun.seen.as_ref()));
                    if let Some((committed_us, xid, changes)) = open.take()
                        && end > from
                        && end <= to
                        && !changes.is_empty()
                        && !seen.is_some_and(|seen| seen.has(xid))
                    {
                        transactions.push(Transaction { end, position: end.to_string(), committed_us, changes });
                    }
                }
                Message::Relation(relation) => {
                    let is_since = at >= self.said.position;
                    self.columns.meet(&relation, is_since).map_err(|reason| SourceError::TableChanged {
                        name: name.clone(),
                        table: table.clone(),
                        reason: format!("{reason} (at {})", Lsn(at)),
                    })?;
                }
                message => {
                    let changes = self.columns.changes(message).map_err(|column| {
                        malformed(format!(
                            "a large value of column `{column}` was left as it was, so the log of table `{table}` does not \
                             have it; set REPLICA IDENTITY FULL for the table, and start a new checkpoint"
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

impl ChangeLog for PostgresLog {
    type Position = Lsn;

    fn offset(position: &Lsn) -> Value {
        json!({ "lsn": position.to_string() })
    }

    fn position(offset: &Value) -> Option<Lsn> {
        offset.get("lsn").and_then(Value::as_str).and_then(parse_lsn).map(Lsn)
    }

    fn is_far(from: &Lsn, to: &Lsn) -> bool {
        to.0.saturating_sub(from.0) >= QUIET
    }

    fn begin(&mut self) -> Result<Began<Lsn>, SourceError> {
        Ok(self.begun()?.began.clone())
    }

    fn end(&mut self, from: Option<&Lsn>) -> Result<Lsn, SourceError> {
        let Names { slot, publication } = self.begun()?.names.clone();
        let table = self.config.looked_up();
        let sql = format!(
            "SELECT pg_current_wal_flush_lsn()::text, s.confirmed_flush_lsn::text, s.wal_status, ({table}::oid)::text, \
               EXISTS (SELECT FROM pg_publication_tables p WHERE p.pubname = {} \
                 AND to_regclass(quote_ident(p.schemaname) || '.' || quote_ident(p.tablename)) = {table})::text \
             FROM (SELECT 1) AS one LEFT JOIN pg_replication_slots s \
             ON s.slot_name = {} AND s.database = current_database()",
            literal(&publication),
            literal(&slot)
        );
        let row = self.link.ask("look at the log", |connection| connection.texts(&sql))?.into_iter().next();
        let row = row.unwrap_or_default();
        let text = |at: usize| row.get(at).and_then(|text| text.as_deref());
        let shown = self.config.shared.shown();
        if text(3).and_then(|number| number.parse().ok()) != Some(self.said.table) {
            return Err(SourceError::TableChanged {
                name: self.link.name.clone(),
                table: shown,
                reason: format!("it was dropped, and its changes have ended; {WAY_OUT}"),
            });
        }
        let range = from.map_or_else(String::new, |from| format!("from {from}"));
        if text(2) == Some("lost") {
            return Err(self.lost(range, format!("the server has given up the log of replication slot `{slot}`")));
        }
        match text(1).and_then(parse_lsn) {
            None => return Err(self.lost(range, format!("the server has no replication slot `{slot}` any more"))),
            Some(confirmed) if from.is_some_and(|from| confirmed > from.0) => {
                let reason = format!("replication slot `{slot}` was moved to {} by somebody else", Lsn(confirmed));
                return Err(self.lost(range, reason));
            }
            Some(_) => {}
        }
        if text(4) != Some("true") {
            return Err(self.lost(range, format!("publication `{publication}` does not have table `{shown}`")));
        }
        let end = text(0).and_then(parse_lsn).map(Lsn);
        end.ok_or_else(|| self.lost(range, "the server does not say where its log ends".to_owned()))
    }

    fn fetch(&mut self, from: &Lsn, to: &Lsn, limit: Option<u64>) -> Result<Fetched<Lsn>, SourceError> {
        let Names { slot, publication } = self.begun()?.names.clone();
        let (publication, upto) = (Product::Postgres.quote(&publication), to.to_string());
        // The slot begins where the last release was: what was read since then comes once more.
        let is_behind = |end: u64| end > self.released && end <= from.0;
        let behind: usize = self.counts.iter().filter(|(end, _)| is_behind(*end)).map(|(_, count)| count).sum();
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut most = limit.map(|limit| behind.saturating_add(limit).saturating_add(2));
        loop {
            let upto_count = most.map(|most| i32::try_from(most).unwrap_or(i32::MAX));
            let messages = self.link.ask("read the log", |connection| {
                connection.peek_changes(&slot, &publication, Some(&upto), upto_count)
            })?;
            let is_all = most.is_none_or(|most| messages.len() < most);
            let transactions = self.transactions((*from, *to), messages)?;
            if is_all || !transactions.is_empty() {
                return Ok(Fetched { transactions, reached: *to });
            }
            most = most.map(|most| most.saturating_mul(2));
        }
    }

    /// Lets the server forget the log up to a position.
    fn release(&mut self, to: &Lsn) -> Result<(), SourceError> {
        if to.0 <= self.released {
            return Ok(());
        }
        let slot = literal(&self.begun()?.names.slot);
        let sql = format!(
            "SELECT pg_replication_slot_advance(slot_name, '{to}') FROM pg_replication_slots \
             WHERE slot_name = {slot} AND confirmed_flush_lsn < '{to}'"
        );
        self.link.ask("release the log", |connection| connection.run(&sql))?;
        self.released = to.0;
        Ok(())
    }

    /// Drops slot and publication, unless the user has named them.
    fn abandon(&mut self) {
        let Some(Begun { names, .. }) = &self.begun else { return };
        let mut statements = Vec::new();
        if self.config.slot.is_none() {
            let slot = literal(&names.slot);
            statements.push(format!(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = {slot}"
            ));
        }
        if self.config.publication.is_none() {
            let publication = Product::Postgres.quote(&names.publication);
            statements.push(format!("DROP PUBLICATION IF EXISTS {publication}"));
        }
        // The query is to stop, and this is part of it.
        let dropped = Connection::open(&self.config.shared.address, "millstream end", &StopSignal::new())
            .and_then(|mut connection| statements.iter().try_for_each(|sql| connection.run(sql)));
        if let Err(error) = dropped {
            tracing::warn!(
                source = self.link.name,
                slot = names.slot,
                error = describe_chain(&error),
                "the replication slot stays, and holds the log of the server; drop it there"
            );
        }
    }

    fn close(&mut self) {
        self.link.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_written_as_postgresql_writes_it() {
        assert_eq!(Lsn(0x16_B374_D848).to_string(), "16/B374D848");
        assert_eq!(PostgresLog::position(&PostgresLog::offset(&Lsn(7))), Some(Lsn(7)));
        assert_eq!(PostgresLog::position(&json!({"file": "x"})), None);
    }
}
