//! `session.read_stream()` and `session.read()` (Spark's `DataStreamReader` and `DataFrameReader`).

use super::data_frame::{check_name, static_table};
use super::{DataFrame, Session};
use crate::RuntimeError;
use crate::spec::{StreamSpec, TableSpec};
use arrow::datatypes::SchemaRef;
use millstream_common::Options;
use millstream_source::SourceSpec;

/// The name of a stream that was given none.
const UNNAMED: &str = "stream";

/// Describes a stream, part by part, until `load`.
#[must_use]
pub struct DataStreamReader {
    session: Session,
    name: Option<String>,
    format: Option<String>,
    schema: Option<SchemaRef>,
    options: Options,
}

/// Describes a static table, part by part, until `load`.
#[must_use]
pub struct DataFrameReader {
    session: Session,
    format: Option<String>,
    schema: Option<SchemaRef>,
    options: Options,
}

macro_rules! reader {
    ($reader:ident) => {
        impl $reader {
            /// The connector: `json`, `csv`, `parquet`, …
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

            /// What is read from a folder or file.
            ///
            /// # Errors
            /// As [`load`](Self::load).
            pub fn load_path(self, path: &str) -> Result<DataFrame, RuntimeError> {
                self.option("path", path).load()
            }
        }
    };
}

reader!(DataStreamReader);
reader!(DataFrameReader);

impl DataStreamReader {
    pub(super) fn new(session: Session) -> Self {
        Self { session, name: None, format: None, schema: None, options: Options::new() }
    }

    /// The name of the stream: of its source in the checkpoint, and of its columns. A query over several streams needs it.
    /// Without one a stream takes the name of its view, or is called `stream`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The stream, with its options checked. Nothing is opened before a query starts.
    ///
    /// # Errors
    /// When there is no format, the name is no identifier, or the connector does not take the options or the schema.
    pub fn load(self) -> Result<DataFrame, RuntimeError> {
        let format = self.format.ok_or_else(no_format)?;
        let is_unnamed = self.name.is_none();
        let name = self.name.unwrap_or_else(|| UNNAMED.to_owned());
        check_name(&name)?;
        let source = SourceSpec { name, format, schema: self.schema, options: self.options };
        DataFrame::stream(&self.session, StreamSpec { source, event_time: None, drop_duplicates: None }, is_unnamed)
    }
}

impl DataFrameReader {
    pub(super) fn new(session: Session) -> Self {
        Self { session, format: None, schema: None, options: Options::new() }
    }

    /// The table, with its options checked. It is read once when a query starts.
    ///
    /// # Errors
    /// When there is no format, or the connector does not take the options or the schema.
    pub fn load(self) -> Result<DataFrame, RuntimeError> {
        let format = self.format.ok_or_else(no_format)?;
        static_table(&self.session, |name| {
            let mut source = SourceSpec { name, format, schema: self.schema, options: self.options };
            let schema = self.session.schema_of(&mut source)?;
            Ok((schema, TableSpec::Files(source)))
        })
    }
}

fn no_format() -> RuntimeError {
    RuntimeError::Invalid {
        reason: "what is read needs a format".into(),
        hint: Some("call .format(\"socket\"), .format(\"json\"), …".into()),
    }
}
