//! Tests of sources without WebAssembly: a host in memory that keeps the offset as the real one does.

use super::Source;
use super::options::Options;
use super::run::{RegisteredSource, registered};
use crate::error::CallResult;
use crate::granted;
use crate::http::{Failure, Request, Response};
use crate::processor::columns::{RowsBuilder, decoded};
use std::marker::PhantomData;

/// Reads a source batch by batch, each range twice: a source whose range gives other rows the second time fails the test.
pub struct SourceTester<S: Source> {
    source: RegisteredSource,
    options: Options,
    max_rows: Option<u64>,
    /// Where the last batch ended.
    at: Option<String>,
    of: PhantomData<S>,
}

impl<S: Source> std::fmt::Debug for SourceTester<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceTester").field("source", &S::NAME).field("at", &self.at).finish_non_exhaustive()
    }
}

impl<S: Source> Default for SourceTester<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Source> SourceTester<S> {
    /// A stream without options that has read nothing. What an earlier tester of this thread granted is over.
    pub fn new() -> Self {
        granted::with(|granted| *granted = granted::Granted::default());
        Self { source: registered::<S>(), options: Options::default(), max_rows: None, at: None, of: PhantomData }
    }

    /// With an option of the stream.
    ///
    /// # Panics
    /// When the source does not know it.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        assert!(S::OPTIONS.iter().any(|option| option.name == name), "the source has no option `{name}`");
        self.options.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// With an option of the plugin, as [`config::get`](crate::config::get) sees it.
    #[must_use]
    pub fn config(self, name: &str, value: impl ToString) -> Self {
        granted::with(|granted| granted.config.insert(name.to_owned(), value.to_string()));
        self
    }

    /// With somebody who answers requests in the place of the world.
    #[must_use]
    pub fn answering(self, answers: impl FnMut(&Request) -> Result<Response, Failure> + 'static) -> Self {
        granted::with(|granted| granted.answers = Some(Box::new(answers)));
        self
    }

    /// With a limit for the rows of a batch (`maxRowsPerTrigger`).
    #[must_use]
    pub fn max_rows(mut self, rows: u64) -> Self {
        self.max_rows = Some(rows);
        self
    }

    /// Begins at an offset, as a query does that goes on from its checkpoint.
    #[must_use]
    pub fn from_offset(mut self, offset: impl ToString) -> Self {
        self.at = Some(offset.to_string());
        self
    }

    /// Sets the time that [`clock::batch_time_ms`](crate::clock::batch_time_ms) answers.
    pub fn set_time_ms(&mut self, time_ms: i64) {
        granted::with(|granted| granted.time_ms = time_ms);
    }

    /// The offset at which the last batch ended; `None` before the first question.
    pub fn offset(&self) -> Option<&str> {
        self.at.as_deref()
    }

    /// The rows of the next batch; none when nothing is new. Then what came before is committed.
    ///
    /// # Errors
    /// When a call fails; the same batch can be asked for again.
    ///
    /// # Panics
    /// When the range has other rows the second time.
    pub fn next_batch(&mut self) -> CallResult<Vec<S::Row>> {
        let start = match &self.at {
            Some(at) => at.clone(),
            None => (self.source.initial_offset)(&self.options)?,
        };
        self.at = Some(start.clone());
        let end = (self.source.latest_offset)(&self.options, &start, None, self.max_rows)?;
        if end == start {
            return Ok(Vec::new());
        }
        let rows = self.read(&start, &end)?;
        (self.source.commit)(&self.options, &start)?;
        self.at = Some(end);
        Ok(rows)
    }

    /// The end of a batch from `start` that goes no further than `until`.
    ///
    /// # Errors
    /// When the source cannot tell.
    pub fn latest_offset(&self, start: impl ToString, until: Option<&str>) -> CallResult<String> {
        (self.source.latest_offset)(&self.options, &start.to_string(), until, self.max_rows)
    }

    /// The rows of a range, from all its pages.
    ///
    /// # Errors
    /// When a call fails.
    ///
    /// # Panics
    /// When the range has other rows the second time.
    pub fn read(&self, start: impl ToString, end: impl ToString) -> CallResult<Vec<S::Row>> {
        let (start, end) = (start.to_string(), end.to_string());
        let (first, second) = (self.pages(&start, &end)?, self.pages(&start, &end)?);
        let bytes = |rows: &[S::Row]| rows.iter().cloned().collect::<RowsBuilder<S::Row>>().finish();
        assert!(bytes(&first) == bytes(&second), "the rows of ({start}, {end}] are others when they are read again");
        Ok(first)
    }

    fn pages(&self, start: &str, end: &str) -> CallResult<Vec<S::Row>> {
        let (mut rows, mut cursor) = (Vec::new(), None);
        loop {
            let page = (self.source.read)(&self.options, start, end, cursor.as_deref())?;
            // The source made the row, so it is one that the type takes.
            rows.extend(decoded::<S::Row>(&page.rows).into_iter().flatten());
            match page.next {
                None => return Ok(rows),
                Some(next) => {
                    assert!(cursor.as_ref() != Some(&next), "the page at `{next}` leads to itself");
                    cursor = Some(next);
                }
            }
        }
    }
}
