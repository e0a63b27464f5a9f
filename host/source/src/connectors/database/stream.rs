//! A stream of the changes of a table: positions in a log, and the transactions between them.
//!
//! What is the same for every product is here: how a stream begins, what a batch takes, what is kept until it is asked for.
//! A [`ChangeLog`] knows one product's log.

use super::{ChangeColumns, SnapshotFiles, Transaction, admitted};
use crate::{Offset, Source, SourceContext, SourceError, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;

/// What is to be done about a log that is not what it was.
pub(crate) const WAY_OUT: &str = "start a new checkpoint: its snapshot has all rows";

/// How a stream began.
#[derive(Debug, Clone)]
pub(crate) struct Began<P> {
    /// Where in the log.
    pub(crate) position: P,
    /// The rows that were there, if they come first.
    pub(crate) snapshot: Option<Taken>,
}

/// A snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// When, in microseconds since 1970.
    pub(crate) taken_us: i64,
    /// How many files of rows it has.
    pub(crate) pieces: u64,
}

/// What a reading of the log gave.
#[derive(Debug)]
pub(crate) struct Fetched<P> {
    /// The transactions of the table, in order.
    pub(crate) transactions: Vec<Transaction<P>>,
    /// Up to where the log has been read.
    pub(crate) reached: P,
}

/// The log of a server, for one table.
pub(crate) trait ChangeLog: Send {
    /// A position in it, shown as its server writes it.
    type Position: Ord + Clone + Display + Send;

    /// A position as an offset.
    fn offset(position: &Self::Position) -> Value;

    /// The position in an offset, if it is one of this log.
    fn position(offset: &Value) -> Option<Self::Position>;

    /// Whether so much of the log has nothing of the table that it is worth a batch without rows: what is released need
    /// not be kept.
    fn is_far(from: &Self::Position, to: &Self::Position) -> bool;

    /// How the stream began; it begins now if it has not.
    fn begin(&mut self) -> Result<Began<Self::Position>, SourceError>;

    /// The end of the log now; with `from`, when all behind that is still there.
    fn end(&mut self, from: Option<&Self::Position>) -> Result<Self::Position, SourceError>;

    /// The transactions behind `from` up to `to`: all, or from the first on about as many as have `limit` changes.
    fn fetch(
        &mut self,
        from: &Self::Position,
        to: &Self::Position,
        limit: Option<u64>,
    ) -> Result<Fetched<Self::Position>, SourceError>;

    /// Lets the server forget what is before a position.
    fn release(&mut self, to: &Self::Position) -> Result<(), SourceError> {
        let _ = to;
        Ok(())
    }

    /// Nobody comes back: what the server keeps for the stream goes.
    fn abandon(&mut self) {}

    /// Ends connections.
    fn close(&mut self);
}

/// Transactions that were read and not yet asked for.
struct Cached<P> {
    from: P,
    to: P,
    transactions: Vec<Transaction<P>>,
}

/// A stream over a log.
pub(crate) struct ChangeStream<L: ChangeLog> {
    name: String,
    description: String,
    max_rows: u64,
    columns: ChangeColumns,
    files: SnapshotFiles,
    log: L,
    cached: Option<Cached<L::Position>>,
    /// Up to where the log behind a position has nothing of this table.
    passed: Option<(L::Position, L::Position)>,
    /// Where the log ended when nothing was found in it.
    quiet_at: Option<L::Position>,
    /// Where everything available ends, once it is fixed.
    frozen: Option<L::Position>,
}

impl<L: ChangeLog> ChangeStream<L> {
    /// The stream of the changes of a table with these columns, whose name for people is `place`.
    pub(crate) fn new(
        spec: &SourceSpec,
        (place, max_rows): (String, u64),
        table: &SchemaRef,
        files: SnapshotFiles,
        log: L,
    ) -> Result<Self, SourceError> {
        Ok(Self {
            name: spec.name.clone(),
            description: format!("DatabaseChanges[{place}]"),
            max_rows,
            columns: change_columns(spec, table)?,
            files,
            log,
            cached: None,
            passed: None,
            quiet_at: None,
            frozen: None,
        })
    }

    fn position(&self, offset: &Offset) -> Result<L::Position, SourceError> {
        L::position(&offset.0)
            .ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn ends_before(&self, from: &L::Position, to: &L::Position, end: &L::Position) -> SourceError {
        SourceError::Lost {
            name: self.name.clone(),
            range: format!("({from}, {to}]"),
            reason: format!("the log of the server ends before, at {end}: it was reset, or is another one; {WAY_OUT}"),
        }
    }
}

/// The columns of the stream of a table's changes.
pub(crate) fn change_columns(spec: &SourceSpec, table: &SchemaRef) -> Result<ChangeColumns, SourceError> {
    ChangeColumns::new(table).map_err(|reason| SourceError::Schema { name: spec.name.clone(), reason })
}

/// The snapshot files of a source.
pub(crate) fn files(spec: &SourceSpec, context: &SourceContext) -> SnapshotFiles {
    SnapshotFiles::new(&spec.name, Arc::clone(&context.files))
}

/// Whether the table has the columns that a user declares.
pub(crate) fn check_there<'a>(
    spec: &SourceSpec,
    shown: &str,
    found: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), SourceError> {
    let Some(declared) = &spec.schema else { return Ok(()) };
    match declared.fields().iter().find(|field| !found.clone().any(|name| name == field.name())) {
        None => Ok(()),
        Some(field) => Err(SourceError::Schema {
            name: spec.name.clone(),
            reason: format!(
                "table `{shown}` has no column `{}`; it has {}",
                field.name(),
                found.collect::<Vec<_>>().join(", ")
            ),
        }),
    }
}

impl<L: ChangeLog> Source for ChangeStream<L> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.schema())
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn read_limit(&self) -> ReadLimit {
        ReadLimit::MaxRows(self.max_rows)
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let began = self.log.begin()?;
        let from = match start {
            Some(start) => self.position(start)?,
            None if began.snapshot.is_some() => return Ok(Some(Offset(L::offset(&began.position)))),
            None => began.position,
        };
        let limit = match limit {
            ReadLimit::AllAvailable => None,
            ReadLimit::MaxRows(rows) => Some(rows),
            // A log has neither files nor bytes of rows.
            ReadLimit::MaxFiles(_) | ReadLimit::MaxBytes(_) => Some(self.max_rows),
        };
        let end = self.log.end(Some(&from))?;
        if end < from {
            return Err(self.ends_before(&from, &from, &end));
        }
        let until = self.frozen.clone().map_or(end.clone(), |frozen| frozen.min(end.clone()));
        if self.quiet_at.as_ref() == Some(&end) || until <= from {
            return Ok(start.cloned());
        }
        // What was passed over once need not be read again.
        let begin = match &self.passed {
            Some((after, to)) if *after == from && *to <= until => to.clone(),
            _ => from.clone(),
        };
        let Fetched { mut transactions, reached } = self.log.fetch(&begin, &until, limit)?;
        transactions.truncate(admitted(&transactions, limit.unwrap_or(u64::MAX)));
        let to = match transactions.last() {
            Some(last) => last.end.clone(),
            None if L::is_far(&from, &reached) => reached,
            None => {
                self.passed = Some((from, reached));
                self.quiet_at = Some(end);
                return Ok(start.cloned());
            }
        };
        let offset = Offset(L::offset(&to));
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
        let began = self.log.begin()?;
        let to = self.position(end)?;
        if let Some(taken) = began.snapshot.filter(|_| start.is_none() && to == began.position) {
            let (columns, position) = ((self.columns.width(), projection), began.position.to_string());
            let rows = self.files.read(taken.pieces, self.columns.schema(), columns, (taken.taken_us, &position))?;
            return Ok(vec![rows]);
        }
        let from = match start {
            Some(start) => self.position(start)?,
            None => began.position,
        };
        let is_cached = self.cached.as_ref().is_some_and(|cached| cached.from == from && cached.to == to);
        if !is_cached {
            let end = self.log.end(Some(&from))?;
            if end < to {
                return Err(self.ends_before(&from, &to, &end));
            }
            let Fetched { transactions, reached } = self.log.fetch(&from, &to, None)?;
            if reached < to {
                return Err(self.ends_before(&from, &to, &reached));
            }
            self.cached = Some(Cached { from, to, transactions });
        }
        let transactions = self.cached.as_ref().map_or(&[][..], |cached| &cached.transactions);
        self.columns.rows(&self.name, transactions, projection).map(|rows| vec![rows])
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let end = self.position(end)?;
        self.log.release(&end)
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.log.begin()?;
        self.frozen = Some(self.log.end(None)?);
        Ok(())
    }

    fn abandon(&mut self) {
        self.log.abandon();
    }

    fn stop(&mut self) {
        self.log.close();
    }
}
