//! The sink of a database: one transaction per batch, with the batch's id in the book.

use super::book::{Book, Entry};
use super::dialect::{Dialect, Load, LoadError};
use super::fit::{Fit, check_keys, check_schema, compare, create, create_table};
use super::server::Server;
use crate::connectors::attempt::Failure;
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_common::{OutputMode, StopSignal};
use std::sync::Arc;

/// Makes sinks of one kind of database.
#[derive(Clone)]
pub(crate) struct DatabaseSinkFactory {
    dialect: Arc<dyn Dialect>,
}

impl DatabaseSinkFactory {
    pub(crate) fn new(dialect: impl Dialect + 'static) -> Self {
        Self { dialect: Arc::new(dialect) }
    }

    fn sink(&self, spec: &SinkSpec, context: &SinkContext) -> Result<DatabaseSink, SinkError> {
        let server = Server::new(&self.dialect, spec, context.stop.clone())?;
        let book = Book::new(self.dialect.as_ref(), &server.config.table, context.query);
        Ok(DatabaseSink { server, book, fence: 0, load: None })
    }
}

impl SinkFactory for DatabaseSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Server::new(&self.dialect, spec, StopSignal::new()).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let server = Server::new(&self.dialect, spec, StopSignal::new())?;
        let (_, wrong) = check_schema(&server.config, schema);
        if wrong.is_empty() { Ok(()) } else { Err(server.misfit(&wrong)) }
    }

    fn check_place(&self, spec: &SinkSpec, schema: &SchemaRef, stop: &StopSignal) -> Result<(), SinkError> {
        let mut server = Server::new(&self.dialect, spec, stop.clone())?;
        server.patiently("look at", |server| {
            let (dialect, config) = (Arc::clone(&server.dialect), server.config.clone());
            match compare(dialect.as_ref(), &config, schema, server.session()?)? {
                Fit::Unfit(reasons) => Err(server.misfit(&reasons).into()),
                Fit::Fits(_) | Fit::IsMissing => Ok(()),
            }
        })
    }

    fn open_idle(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.sink(spec, &context)?))
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let mut sink = self.sink(spec, &context)?;
        let (book, entry) = sink.server.patiently("open", |server| {
            let (dialect, table) = (Arc::clone(&server.dialect), server.config.table.clone());
            Ok(Book::claim(dialect.as_ref(), server.session()?, &table, context.query)?)
        })?;
        (sink.book, sink.fence) = (book, entry.fence);
        Ok(Box::new(sink))
    }
}

struct DatabaseSink {
    server: Server,
    book: Book,
    /// The number of this run.
    fence: i64,
    /// How rows are loaded; known once the columns are compared with the table's.
    load: Option<Load>,
}

/// Compares the columns with the table's, which is created if it is missing and that is wanted.
fn prepare(server: &mut Server, batch: &SinkBatch<'_>) -> Result<Load, Failure<DatabaseError>> {
    let (dialect, config) = (Arc::clone(&server.dialect), server.config.clone());
    let session = server.session()?;
    let mut found = compare(dialect.as_ref(), &config, batch.schema, session)?;
    if matches!(found, Fit::IsMissing) {
        create(session, &config.table, &create_table(dialect.as_ref(), &config, batch.schema))?;
        found = compare(dialect.as_ref(), &config, batch.schema, session)?;
    }
    match found {
        Fit::Fits(load) => Ok(load),
        Fit::Unfit(reasons) => Err(server.misfit(&reasons).into()),
        Fit::IsMissing => {
            let message = format!("the table `{}`, which was just made", config.table.shown());
            Err(DatabaseError::Missing { place: config.address.place(), message }.into())
        }
    }
}

/// One transaction; answers whether it wrote the rows now.
fn transact(
    server: &mut Server,
    batch: &SinkBatch<'_>,
    load: &Load,
    (book, fence): (&Book, i64),
) -> Result<bool, Failure<DatabaseError>> {
    let (dialect, place) = (Arc::clone(&server.dialect), server.place());
    let sink = || dialect.format().to_owned();
    let unfit = |reason: String| SinkError::Rows { sink: sink(), place: place.clone(), batch: batch.id, reason };
    check_keys(load, batch.rows).map_err(unfit)?;
    let session = server.session()?;
    session.begin()?;
    match book.lock(dialect.as_ref(), session)? {
        Some(Entry { fence: found, batch: newest }) if found == fence => {
            if newest >= Some(batch.id) {
                session.run("ROLLBACK")?;
                return Ok(false);
            }
        }
        Some(_) => return Err(SinkError::Fenced { sink: sink(), place, batch: batch.id }.into()),
        None => return Err(book.is_missing(&place).into()),
    }
    if batch.mode == OutputMode::Complete {
        session.run(&format!("DELETE FROM {}", load.table))?;
    }
    session.load(load, batch.rows).map_err(|error| match error {
        LoadError::Database(error) => Failure::Server(error),
        LoadError::Rows(reason) => Failure::Sink(unfit(reason)),
    })?;
    session.run(&book.add(dialect.as_ref(), batch.id))?;
    // When this fails nobody knows whether it was done: the next attempt looks into the book.
    session.run("COMMIT")?;
    Ok(true)
}

impl Sink for DatabaseSink {
    fn description(&self) -> String {
        format!("DatabaseSink[{}]", self.server.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, mode: OutputMode) -> bool {
        mode != OutputMode::Update || !self.server.config.key.is_empty()
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        if !self.supports(batch.mode) {
            let known = "append and complete; with option `key`, update too".to_owned();
            let sink = self.server.dialect.format().to_owned();
            return Err(SinkError::Mode { sink, mode: batch.mode, known });
        }
        let rows: usize = batch.rows.iter().map(RecordBatch::num_rows).sum();
        let mut tried = false;
        let Self { server, book, fence, load } = self;
        let written = server.patiently("write", |server| {
            let load = match load {
                Some(load) => &*load,
                None => load.insert(prepare(server, batch)?),
            };
            if rows == 0 && batch.mode != OutputMode::Complete {
                // Nothing to write: it is only looked whether it could be.
                return Ok(true);
            }
            // What an earlier attempt of this call may have written is of this call.
            let again = std::mem::replace(&mut tried, true);
            Ok(transact(server, batch, load, (book, *fence))? || again)
        })?;
        Ok(SinkReport { rows: if written { rows as u64 } else { 0 } })
    }

    fn stop(&mut self) {
        self.server.close();
    }
}
