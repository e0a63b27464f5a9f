//! One sink over one partition of a batch: from buffers to the author's code.

use super::{FailedRows, OutputMode, Sink, SinkOption, SinkRow, Target, TransactionalSink};
use crate::call::Batch;
use crate::error::{CallError, CallResult};
use crate::schema::Field;

/// A sink as it is described to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkType {
    /// The name.
    pub name: &'static str,
    /// The columns that it takes; none for any.
    pub columns: Vec<Field>,
    /// The output modes that it takes.
    pub modes: &'static [OutputMode],
    /// The options that it knows.
    pub options: &'static [SinkOption],
}

/// `commit` or `abort` of a sink.
pub(super) type Settle = fn(&Target, &[u8]) -> CallResult<()>;

/// A sink of a component.
#[derive(Clone, Copy)]
pub struct RegisteredSink {
    /// Describes it.
    pub describe: fn() -> SinkType,
    /// Begins with a partition of a batch.
    pub begin: fn() -> Box<dyn Session>,
    /// Lets prepared rows be seen, and drops them.
    pub settle: Option<(Settle, Settle)>,
}

impl std::fmt::Debug for RegisteredSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredSink").field("describe", &(self.describe)()).finish_non_exhaustive()
    }
}

/// The rows that failed, by their numbers in the call.
pub(super) type RowErrors = Vec<(u32, String)>;

/// What happens to a partition of a batch.
pub trait Session {
    /// Begins.
    ///
    /// # Errors
    /// The sink's own.
    fn open(&mut self, target: &Target, mode: OutputMode, columns: Vec<Field>) -> CallResult<bool>;
    /// Takes rows.
    ///
    /// # Errors
    /// The sink's own.
    fn process(&mut self, rows: &Batch) -> CallResult<RowErrors>;
    /// Makes them durable.
    ///
    /// # Errors
    /// The sink's own.
    fn prepare(&mut self) -> CallResult<Vec<u8>>;
    /// Ends.
    ///
    /// # Errors
    /// The sink's own.
    fn close(&mut self, failure: Option<&str>) -> CallResult<()>;
}

struct Writer<S> {
    sink: S,
    columns: Vec<Field>,
    prepare: Option<Prepare<S>>,
}

/// What a sink with two phases does for a token.
type Prepare<S> = fn(&mut S) -> CallResult<Vec<u8>>;

/// A sink as a component lists it.
pub fn registered<S: Sink>() -> RegisteredSink {
    fn begin<S: Sink>() -> Box<dyn Session> {
        Box::new(Writer { sink: S::default(), columns: Vec::new(), prepare: None })
    }
    RegisteredSink { describe: describe::<S>, begin: begin::<S>, settle: None }
}

/// A transactional sink as a component lists it.
pub fn registered_transactional<S: TransactionalSink>() -> RegisteredSink {
    fn begin<S: TransactionalSink>() -> Box<dyn Session> {
        Box::new(Writer { sink: S::default(), columns: Vec::new(), prepare: Some(S::prepare) })
    }
    RegisteredSink { describe: describe::<S>, begin: begin::<S>, settle: Some((S::commit, S::abort)) }
}

fn describe<S: Sink>() -> SinkType {
    SinkType { name: S::NAME, columns: S::Row::columns(), modes: S::MODES, options: S::OPTIONS }
}

impl<S: Sink> Session for Writer<S> {
    fn open(&mut self, target: &Target, mode: OutputMode, columns: Vec<Field>) -> CallResult<bool> {
        self.columns = columns;
        self.sink.open(target, mode)
    }

    fn process(&mut self, batch: &Batch) -> CallResult<RowErrors> {
        let mut failed = FailedRows::default();
        let mut rows = Vec::with_capacity(batch.rows as usize);
        for (number, row) in (0..).zip(S::Row::decode(&self.columns, batch)?) {
            match row {
                Some(row) => {
                    failed.numbers.push(number);
                    rows.push(row);
                }
                None => failed.failed.push((number, "it has a null in a column that does not take nulls".into())),
            }
        }
        self.sink.process(rows, &mut failed)?;
        failed.failed.sort_by_key(|(number, _)| *number);
        Ok(failed.failed)
    }

    fn prepare(&mut self) -> CallResult<Vec<u8>> {
        match self.prepare {
            Some(prepare) => prepare(&mut self.sink),
            None => Err(CallError::Internal("the sink has no transaction".into())),
        }
    }

    fn close(&mut self, failure: Option<&str>) -> CallResult<()> {
        self.sink.close(failure)
    }
}
