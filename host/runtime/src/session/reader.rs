//! `session.read_stream()` (Spark's `DataStreamReader`).

use super::{DataFrame, Session};
use crate::RuntimeError;
use crate::spec::StreamSpec;
use arrow::datatypes::SchemaRef;
use millstream_common::Options;
use millstream_source::SourceSpec;

/// Describes a source, part by part, until `load`.
#[must_use]
pub struct DataStreamReader {
    session: Session,
    format: Option<String>,
    schema: Option<SchemaRef>,
    options: Options,
}

impl DataStreamReader {
    pub(super) fn new(session: Session) -> Self {
        Self { session, format: None, schema: None, options: Options::new() }
    }

    /// The connector: `socket`, `rate`, `json`, …
    pub fn format(mut self, format: &str) -> Self {
        self.format = Some(format.to_owned());
        self
    }

    /// The columns, for connectors that have none of their own.
    pub fn schema(mut self, schema: SchemaRef) -> Self {
        self.schema = Some(schema);
        self
    }

    /// An option, with Spark's name.
    pub fn option(mut self, key: &str, value: impl ToString) -> Self {
        self.options.set(key, value.to_string());
        self
    }

    /// The stream, with its options checked. Nothing is opened before a query starts.
    ///
    /// # Errors
    /// When there is no format, or the connector does not take the options or the schema.
    pub fn load(self) -> Result<DataFrame, RuntimeError> {
        let format = self.format.ok_or_else(|| RuntimeError::Invalid {
            reason: "a stream needs a format".into(),
            hint: Some("call .format(\"socket\"), .format(\"json\"), …".into()),
        })?;
        let source = SourceSpec { name: "stream".into(), format, schema: self.schema, options: self.options };
        self.session.sources().factory(&source)?.schema(&source)?;
        Ok(DataFrame::stream(self.session, StreamSpec { source, event_time: None, drop_duplicates: None }))
    }
}
