//! Rows for looking at, in the form in which the connectors write them: a table, lines of JSON, a Parquet file.
//!
//! For tools that have rows and no query. Nothing here is a sink: there are no batches and no promises.

use crate::SinkError;
use crate::connectors::console::table;
use crate::connectors::file::encode;
use crate::json;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::basic::Compression;

/// A form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// A table of text, whole.
    Table,
    /// A JSON object per line, nulls included.
    Json,
    /// A Parquet file.
    Parquet,
}

impl Export {
    /// The bytes of rows of one schema.
    ///
    /// # Errors
    /// When a type has no such form.
    pub fn bytes(self, schema: &SchemaRef, rows: &[RecordBatch]) -> Result<Vec<u8>, SinkError> {
        let failed = |error: &dyn std::error::Error| SinkError::Schema {
            sink: self.name().to_owned(),
            reason: error.to_string(),
        };
        match self {
            Self::Table => match table::show(schema, rows, usize::MAX, 0) {
                Ok(text) => Ok(text.into_bytes()),
                Err(error) => Err(failed(&error)),
            },
            Self::Json => json::lines(json::Form { ignore_nulls: false, ..json::Form::SPARK }, rows)
                .map_err(|error| failed(&error)),
            Self::Parquet => encode::parquet::encode(Compression::SNAPPY, schema, rows).map_err(|error| failed(&error)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Table => "console",
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }
}
