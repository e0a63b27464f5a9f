//! A stream or a query, not yet started (Spark's `DataFrame`).

use super::{DataStreamWriter, Session};
use crate::RuntimeError;
use crate::spec::StreamSpec;
use millstream_common::duration::parse_micros;
use millstream_plan::{DropDuplicates, EventTime};

/// A stream as it was loaded, or a query in SQL over temporary views.
#[derive(Clone)]
pub struct DataFrame {
    pub(super) session: Session,
    pub(super) content: Content,
}

#[derive(Clone)]
pub(super) enum Content {
    /// A stream.
    Stream(Box<StreamSpec>),
    /// SQL.
    Query(String),
}

impl DataFrame {
    pub(super) fn stream(session: Session, stream: StreamSpec) -> Self {
        Self { session, content: Content::Stream(Box::new(stream)) }
    }

    pub(super) fn query(session: Session, sql: String) -> Self {
        Self { session, content: Content::Query(sql) }
    }

    /// Declares the event time of a stream and how long late rows are waited for.
    ///
    /// # Errors
    /// When this is no stream as loaded, or the delay is no duration of at least 0.
    pub fn with_watermark(mut self, column: &str, delay: &str) -> Result<Self, RuntimeError> {
        let invalid = |reason: String| RuntimeError::Invalid { reason, hint: None };
        let delay_us = parse_micros(delay).map_err(|error| invalid(error.to_string()))?;
        if delay_us < 0 {
            return Err(invalid(format!("the delay `{delay}` of a watermark must not be negative")));
        }
        match &mut self.content {
            Content::Stream(stream) => stream.event_time = Some(EventTime { column: column.to_owned(), delay_us }),
            Content::Query(_) => {
                return Err(RuntimeError::Invalid {
                    reason: "a watermark is declared on a stream, and this is a query".into(),
                    hint: Some("call with_watermark on what load() answered".into()),
                });
            }
        }
        Ok(self)
    }

    /// Drops rows whose values in `columns` (all columns if there are none) have been seen before. With the event time among
    /// them a value is remembered until the watermark passes it, otherwise for ever.
    ///
    /// # Errors
    /// When this is no stream as loaded. Whether the columns are there shows when a query starts.
    pub fn drop_duplicates(self, columns: &[&str]) -> Result<Self, RuntimeError> {
        self.without_duplicates(columns, false)
    }

    /// Drops rows whose values in `columns` have been seen less than the watermark's delay before, in event time.
    ///
    /// # Errors
    /// As [`drop_duplicates`](Self::drop_duplicates); that there is a watermark shows when a query starts.
    pub fn drop_duplicates_within_watermark(self, columns: &[&str]) -> Result<Self, RuntimeError> {
        self.without_duplicates(columns, true)
    }

    fn without_duplicates(mut self, columns: &[&str], within_watermark: bool) -> Result<Self, RuntimeError> {
        let Content::Stream(stream) = &mut self.content else {
            return Err(RuntimeError::Invalid {
                reason: "duplicates are dropped from a stream, and this is a query".into(),
                hint: Some("call it on what load() answered, or use SELECT DISTINCT".into()),
            });
        };
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        stream.drop_duplicates = Some(DropDuplicates { columns, within_watermark });
        Ok(self)
    }

    /// Gives it a name for use in SQL.
    ///
    /// # Errors
    /// When the name is no identifier.
    pub fn create_or_replace_temp_view(&self, name: &str) -> Result<(), RuntimeError> {
        let is_identifier = name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
        if !is_identifier {
            return Err(RuntimeError::Invalid {
                reason: format!("`{name}` cannot name a view"),
                hint: Some("use letters, digits and `_`".into()),
            });
        }
        self.session.add_view(name, self.clone());
        Ok(())
    }

    /// Whether it is a stream: always, here.
    pub fn is_streaming(&self) -> bool {
        true
    }

    /// Writes it.
    pub fn write_stream(&self) -> DataStreamWriter {
        DataStreamWriter::new(self.clone())
    }
}
