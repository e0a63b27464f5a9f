//! Rows into the bytes of one file.

mod csv;
pub(crate) mod json;
pub(crate) mod parquet;

use super::config::Encoding;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;

/// Why rows could not be encoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error("a value cannot be written as text: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    #[error("the rows do not fit the file format: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Encodes rows of one schema as one file.
pub(super) fn encode(encoding: &Encoding, schema: &SchemaRef, rows: &[RecordBatch]) -> Result<Vec<u8>, EncodeError> {
    match encoding {
        Encoding::Parquet { compression } => parquet::encode(*compression, schema, rows),
        Encoding::Json { ignore_nulls } => Ok(json::encode(*ignore_nulls, rows)?),
        Encoding::Csv(options) => Ok(csv::encode(options, schema, rows)?),
        Encoding::Text { separator } => Ok(text(separator, rows)),
    }
}

/// One string per line; null is an empty line.
fn text(separator: &str, rows: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for batch in rows {
        let values = batch.column(0).as_string::<i32>();
        for row in 0..values.len() {
            if values.is_valid(row) {
                bytes.extend_from_slice(values.value(row).as_bytes());
            }
            bytes.extend_from_slice(separator.as_bytes());
        }
    }
    bytes
}
