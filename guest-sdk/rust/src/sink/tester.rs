//! Tests of sinks without WebAssembly: the calls that the host makes, in their order.

use super::run::{Session, registered, registered_transactional};
use super::{OutputMode, Sink, SinkRow, Target, TransactionalSink};
use crate::call::Batch;
use crate::error::{CallError, CallResult};
use crate::processor::Columns;
use crate::schema::Field;
use std::marker::PhantomData;

/// Writes partitions of batches through a sink.
#[derive(Debug)]
pub struct SinkTester<S> {
    target: Target,
    mode: OutputMode,
    sink: PhantomData<fn() -> S>,
}

/// What became of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Whether the sink wanted them.
    pub is_wanted: bool,
    /// The rows that it named as failed.
    pub failed: Vec<(u32, String)>,
    /// What `prepare` gave; of a transactional sink that wanted the rows.
    pub token: Option<Vec<u8>>,
}

impl<S: Sink> Default for SinkTester<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Sink> SinkTester<S> {
    /// A query without options in output mode append, and its partition 0.
    pub fn new() -> Self {
        let query_id = "00000000-0000-0000-0000-000000000001".to_owned();
        let target = Target { query_id, partition: 0, batch: 0, options: Vec::new() };
        Self { target, mode: OutputMode::Append, sink: PhantomData }
    }

    /// Gives an option.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.target.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes in another output mode.
    #[must_use]
    pub fn mode(mut self, mode: OutputMode) -> Self {
        self.mode = mode;
        self
    }

    /// Writes another partition.
    #[must_use]
    pub fn partition(mut self, partition: u32) -> Self {
        self.target.partition = partition;
        self
    }

    /// What is written as `batch`.
    pub fn target(&self, batch: u64) -> Target {
        Target { batch, ..self.target.clone() }
    }

    /// Writes a batch: `open`, `process`, `close`.
    ///
    /// # Errors
    /// What fails the batch. A sink that was opened has been closed with it.
    pub fn write(&self, batch: u64, rows: impl IntoIterator<Item = S::Row>) -> CallResult<Written>
    where
        S::Row: Columns,
    {
        let (columns, batch_of_rows) = encoded(rows);
        write((registered::<S>().begin)(), &self.target(batch), self.mode, (columns, batch_of_rows), false)
    }

    /// Writes a batch through a transactional sink: `open`, `process`, `prepare`, `close`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn prepare(&self, batch: u64, rows: impl IntoIterator<Item = S::Row>) -> CallResult<Written>
    where
        S: TransactionalSink,
        S::Row: Columns,
    {
        let begin = registered_transactional::<S>().begin;
        write(begin(), &self.target(batch), self.mode, encoded(rows), true)
    }

    /// Writes rows that have columns which the sink's type does not say, as a query with such a result would.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_as<R: Columns>(&self, batch: u64, rows: impl IntoIterator<Item = R>) -> CallResult<Written> {
        write((registered::<S>().begin)(), &self.target(batch), self.mode, encoded(rows), false)
    }
}

fn encoded<R: Columns>(rows: impl IntoIterator<Item = R>) -> (Vec<Field>, Batch) {
    let mut builder = R::Builder::default();
    let mut count = 0;
    for row in rows {
        row.append(&mut builder);
        count += 1;
    }
    let mut buffers = Vec::new();
    R::finish_columns(builder, &mut buffers);
    (<R as SinkRow>::columns(), Batch { rows: count, buffers })
}

fn write(
    mut session: Box<dyn Session>,
    target: &Target,
    mode: OutputMode,
    (columns, rows): (Vec<Field>, Batch),
    prepares: bool,
) -> CallResult<Written> {
    let is_wanted = session.open(target, mode, columns)?;
    let taken = match is_wanted && rows.rows > 0 {
        true => session.process(&rows),
        false => Ok(Vec::new()),
    };
    let prepared = taken.and_then(|failed| {
        let token = if is_wanted && prepares { Some(session.prepare()?) } else { None };
        Ok((failed, token))
    });
    match prepared {
        Ok((failed, token)) => {
            session.close(None)?;
            Ok(Written { is_wanted, failed, token })
        }
        Err(error) => {
            let (CallError::InvalidInput(text) | CallError::Unavailable(text) | CallError::Internal(text)) = &error;
            // What failed first is the answer.
            let _ = session.close(Some(text));
            Err(error)
        }
    }
}
