//! The sink of a database: one transaction per batch, with the batch's id in the book.

use super::book::{Book, Entry};
use super::columns;
use super::config::DatabaseConfig;
use super::dialect::{Dialect, Load, LoadError, Session};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_client::database::DatabaseError;
use millstream_common::{OutputMode, QueryId};
use std::sync::Arc;
use std::time::Duration;

/// Makes sinks of one kind of database.
#[derive(Clone)]
pub(crate) struct DatabaseSinkFactory {
    dialect: Arc<dyn Dialect>,
}

impl DatabaseSinkFactory {
    pub(crate) fn new(dialect: Arc<dyn Dialect>) -> Self {
        Self { dialect }
    }

    pub(crate) fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        DatabaseConfig::new(self.dialect.as_ref(), spec).map(drop)
    }

    pub(crate) fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let config = DatabaseConfig::new(self.dialect.as_ref(), spec)?;
        check_schema(&config, schema).map_err(|reason| self.misfit(reason)).map(drop)
    }

    fn misfit(&self, reason: String) -> SinkError {
        SinkError::Schema { sink: self.dialect.format().to_owned(), reason }
    }

    pub(crate) fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = DatabaseConfig::new(self.dialect.as_ref(), spec)?;
        let mut sink = DatabaseSink {
            dialect: Arc::clone(&self.dialect),
            book: Book::new(self.dialect.as_ref(), &config.table, context.query),
            query: context.query,
            config,
            fence: 0,
            session: None,
            load: None,
        };
        sink.patiently("open", |sink| {
            let dialect = Arc::clone(&sink.dialect);
            let (table, query) = (sink.config.table.clone(), sink.query);
            let (book, entry) = Book::claim(dialect.as_ref(), sink.session()?, &table, query)?;
            (sink.book, sink.fence) = (book, entry.fence);
            Ok(())
        })?;
        Ok(Box::new(sink))
    }
}

impl SinkFactory for DatabaseSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Self::check(self, spec)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        Self::check_columns(self, spec, schema)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        Self::open(self, spec, context)
    }
}

/// Whether the columns can be written at all; answers where the column of changes is.
fn check_schema(config: &DatabaseConfig, schema: &Schema) -> Result<Option<usize>, String> {
    columns::check_types(schema)?;
    config.check_key(schema)?;
    config.change_index(schema)
}

struct DatabaseSink {
    dialect: Arc<dyn Dialect>,
    config: DatabaseConfig,
    query: QueryId,
    book: Book,
    /// The number of this run.
    fence: i64,
    session: Option<Box<dyn Session>>,
    /// How rows are loaded; known once the columns are compared with the table's.
    load: Option<Load>,
}

/// Why an attempt failed.
enum Failure {
    Database(DatabaseError),
    Sink(SinkError),
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<SinkError> for Failure {
    fn from(error: SinkError) -> Self {
        Self::Sink(error)
    }
}

/// How long to wait before the next attempt.
fn delay(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(4)).min(Duration::from_secs(1))
}

impl DatabaseSink {
    fn session(&mut self) -> Result<&mut dyn Session, DatabaseError> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.dialect.connect(&self.config.address)?,
        };
        Ok(self.session.insert(session).as_mut())
    }

    /// Tries until it goes well, or fails in a way that waiting does not mend, or has waited long enough. Each attempt begins
    /// with whatever connection is left; a failed one leaves none.
    fn patiently<T>(
        &mut self,
        action: &'static str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, SinkError> {
        let mut waited = Duration::ZERO;
        let mut attempts = 0;
        loop {
            let error = match attempt(self) {
                Ok(value) => return Ok(value),
                Err(Failure::Sink(error)) => {
                    self.session = None;
                    return Err(error);
                }
                Err(Failure::Database(error)) => error,
            };
            self.session = None;
            let pause = delay(attempts);
            if !error.is_transient() || waited + pause > self.config.retry {
                return Err(SinkError::Database {
                    sink: self.dialect.format().to_owned(),
                    action,
                    place: self.place(),
                    source: Box::new(error),
                });
            }
            let said = millstream_common::describe_chain(&error);
            tracing::warn!(sink = self.dialect.format(), error = said, "the database is away; trying again");
            std::thread::sleep(pause);
            waited += pause;
            attempts += 1;
        }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.config.address.place(), self.config.table.shown())
    }

    fn misfit(&self, reason: String) -> SinkError {
        SinkError::Schema { sink: self.dialect.format().to_owned(), reason }
    }

    /// Compares the columns with the table's, which is created if it is missing and that is wanted.
    fn prepare(&mut self, batch: &SinkBatch<'_>) -> Result<Load, Failure> {
        let dialect = Arc::clone(&self.dialect);
        let schema = batch.schema;
        let change = check_schema(&self.config, schema).map_err(|reason| self.misfit(reason))?;
        let config = self.config.clone();
        let session = self.session()?;
        let mut found = session.columns(&config.table)?;
        if found.is_none() && config.create {
            session.run(&create_table(dialect.as_ref(), &config, schema, change))?;
            found = session.columns(&config.table)?;
        }
        let Some(found) = found else {
            let table = config.table.shown();
            let reason = format!("there is no table `{table}`; create it, or leave `createTable` at true");
            return Err(self.misfit(reason).into());
        };
        let unfit = session.check_table(&config.table)?;
        let keys = if config.key.is_empty() { Vec::new() } else { session.unique_keys(&config.table)? };
        if let Some(reason) = unfit {
            return Err(self.misfit(reason).into());
        }
        columns::check_table(schema, change, &found).map_err(|reason| self.misfit(reason))?;
        check_unique(&config, &keys).map_err(|reason| self.misfit(reason))?;
        let indices: Vec<usize> = (0..schema.fields().len()).filter(|at| Some(*at) != change).collect();
        let names: Vec<&str> = indices.iter().map(|at| schema.field(*at).name().as_str()).collect();
        Ok(Load {
            table: config.table.quoted(|name| dialect.quote(name)),
            columns: names.iter().map(|name| dialect.quote(name)).collect(),
            key: config.key.iter().filter_map(|key| names.iter().position(|name| name == key)).collect(),
            indices,
            change,
            batch_size: config.batch_size,
        })
    }

    /// One transaction; answers whether it wrote the rows now.
    fn write(&mut self, batch: &SinkBatch<'_>) -> Result<bool, Failure> {
        let load = match self.load.take() {
            Some(load) => load,
            None => self.prepare(batch)?,
        };
        let written = self.transact(batch, &load);
        self.load = Some(load);
        written
    }

    fn transact(&mut self, batch: &SinkBatch<'_>, load: &Load) -> Result<bool, Failure> {
        let (dialect, book, fence) = (Arc::clone(&self.dialect), self.book.clone(), self.fence);
        let place = self.place();
        let sink = || dialect.format().to_owned();
        let session = self.session()?;
        session.begin()?;
        match book.lock(dialect.as_ref(), session)? {
            Some(Entry { fence: found, batch: newest }) if found == fence => {
                if newest >= Some(batch.id) {
                    session.run("ROLLBACK")?;
                    return Ok(false);
                }
            }
            _ => return Err(SinkError::Fenced { sink: sink(), place, batch: batch.id }.into()),
        }
        if batch.mode == OutputMode::Complete {
            session.run(&format!("DELETE FROM {}", load.table))?;
        }
        session.load(load, batch.rows).map_err(|error| match error {
            LoadError::Database(error) => Failure::Database(error),
            LoadError::Rows(reason) => Failure::Sink(SinkError::Rows { sink: sink(), place, batch: batch.id, reason }),
        })?;
        session.run(&book.add(dialect.as_ref(), batch.id))?;
        // When this fails nobody knows whether it was done: the next attempt looks into the book.
        session.run("COMMIT")?;
        Ok(true)
    }
}

/// The statement that makes the table.
fn create_table(dialect: &dyn Dialect, config: &DatabaseConfig, schema: &Schema, change: Option<usize>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        if Some(at) == change {
            continue;
        }
        let is_key = config.key.contains(field.name());
        let required = if is_key { " NOT NULL" } else { "" };
        parts.push(format!("{} {}{required}", dialect.quote(field.name()), dialect.column_type(field, is_key)));
    }
    if !config.key.is_empty() {
        let key: Vec<String> = config.key.iter().map(|name| dialect.quote(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    let table = config.table.quoted(|name| dialect.quote(name));
    format!("CREATE TABLE IF NOT EXISTS {table} ({}){}", parts.join(", "), dialect.table_options())
}

/// Whether the table keeps one row per key, and no other rule would make rows meet.
fn check_unique(config: &DatabaseConfig, keys: &[Vec<String>]) -> Result<(), String> {
    if config.key.is_empty() {
        return Ok(());
    }
    let is_key = |unique: &&Vec<String>| {
        unique.len() == config.key.len() && config.key.iter().all(|name| unique.iter().any(|other| other == name))
    };
    match keys.iter().find(is_key) {
        Some(_) => Ok(()),
        None => Err(format!(
            "option `key` is `{}`, and table `{}` has no primary key or unique index of exactly these columns; create one",
            config.key.join(", "),
            config.table.shown()
        )),
    }
}

impl Sink for DatabaseSink {
    fn description(&self) -> String {
        format!("DatabaseSink[{}]", self.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, mode: OutputMode) -> bool {
        mode != OutputMode::Update || !self.config.key.is_empty()
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        if !self.supports(batch.mode) {
            let known = "append and complete; with option `key`, update too".to_owned();
            return Err(SinkError::Mode { sink: self.dialect.format().to_owned(), mode: batch.mode, known });
        }
        let rows: usize = batch.rows.iter().map(RecordBatch::num_rows).sum();
        let mut tried = false;
        let written = self.patiently("write", |sink| {
            if rows == 0 && batch.mode != OutputMode::Complete {
                // Nothing to write: it is only looked whether it could be.
                if sink.load.is_none() {
                    sink.load = Some(sink.prepare(batch)?);
                }
                return Ok(true);
            }
            // What an earlier attempt of this call may have written is of this call.
            let again = std::mem::replace(&mut tried, true);
            Ok(sink.write(batch)? || again)
        })?;
        Ok(SinkReport { rows: if written { rows as u64 } else { 0 } })
    }

    fn stop(&mut self) {
        self.session = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_come_slower_and_slower_up_to_a_second() {
        let delays: Vec<u128> = (0..6).map(|attempt| delay(attempt).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
    }
}
