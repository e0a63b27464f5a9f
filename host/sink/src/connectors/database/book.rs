//! The book of batches: a table beside the one that is written, with the newest batch of each query.
//!
//! Its row for a query and a table is the lock under which batches are written. The number `fence` grows with each run:
//! a run that finds a greater one has been replaced.

use super::{Dialect, Session, create};
use millstream_client::database::{DatabaseError, TableName};
use millstream_common::{BatchId, QueryId};

/// The name of the table.
pub(super) const BOOK: &str = "millstream_batches";

/// The row of one query and one table.
#[derive(Debug, Clone)]
pub(super) struct Book {
    table: String,
    matching: String,
}

/// What the row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the run that may write.
    pub(super) fence: i64,
    /// The newest batch that is written.
    pub(super) batch: Option<BatchId>,
}

impl Book {
    /// The row for a query in a table; the book is in the table's schema.
    pub(super) fn new(dialect: &dyn Dialect, target: &TableName, query: QueryId) -> Self {
        let quote = |name: &str| dialect.quote(name);
        let table = target.sibling(BOOK).quoted(dialect.product());
        let matching = format!(
            "{} = {} AND {} = {}",
            quote("query_id"),
            dialect.literal(&query.to_string()),
            quote("target"),
            dialect.literal(&target.shown())
        );
        Self { table, matching }
    }

    /// Makes the book if there is none, and takes the row for this run.
    pub(super) fn claim(
        dialect: &dyn Dialect,
        session: &mut dyn Session,
        target: &TableName,
        query: QueryId,
    ) -> Result<(Self, Entry), DatabaseError> {
        let book = Self::new(dialect, target, query);
        let quote = |name: &str| dialect.quote(name);
        if session.columns(&target.sibling(BOOK))?.is_none() {
            let sql = format!(
                "CREATE TABLE IF NOT EXISTS {} ({} varchar(36) NOT NULL, {} varchar(255) NOT NULL, {} bigint NOT NULL, \
                 {} bigint, PRIMARY KEY ({}, {})){}",
                book.table,
                quote("query_id"),
                quote("target"),
                quote("fence"),
                quote("batch_id"),
                quote("query_id"),
                quote("target"),
                dialect.table_options()
            );
            create(session, &target.sibling(BOOK), &sql)?;
        }
        let values = [dialect.literal(&query.to_string()), dialect.literal(&target.shown())];
        session.begin()?;
        session.run(&dialect.count_up(&book.table, ["query_id", "target", "fence"], [&values[0], &values[1]]))?;
        let entry = book.lock(dialect, session)?;
        session.run("COMMIT")?;
        match entry {
            Some(entry) => Ok((book, entry)),
            None => Err(book.is_missing(&target.shown())),
        }
    }

    /// What the row says; it is locked until the end of the transaction.
    pub(super) fn lock(
        &self,
        dialect: &dyn Dialect,
        session: &mut dyn Session,
    ) -> Result<Option<Entry>, DatabaseError> {
        let sql = format!(
            "SELECT {}, {} FROM {} WHERE {} FOR UPDATE",
            dialect.quote("fence"),
            dialect.quote("batch_id"),
            self.table,
            self.matching
        );
        let rows = session.rows(&sql)?;
        let Some(row) = rows.first() else { return Ok(None) };
        let number = |at: usize| row.get(at).and_then(|text| text.as_deref()).and_then(|text| text.parse::<i64>().ok());
        Ok(number(0)
            .map(|fence| Entry { fence, batch: number(1).and_then(|batch| u64::try_from(batch).ok()).map(BatchId) }))
    }

    /// The error when the row is not there.
    pub(super) fn is_missing(&self, place: &str) -> DatabaseError {
        DatabaseError::Missing { place: place.to_owned(), message: format!("the row of this query in `{BOOK}`") }
    }

    /// The statement that writes a batch into the row.
    pub(super) fn add(&self, dialect: &dyn Dialect, batch: BatchId) -> String {
        format!("UPDATE {} SET {} = {batch} WHERE {}", self.table, dialect.quote("batch_id"), self.matching)
    }
}
