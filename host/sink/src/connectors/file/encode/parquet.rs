//! Rows as a Parquet file.

use super::EncodeError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// A Parquet file that is being made.
pub(super) struct ParquetEncoder(ArrowWriter<Vec<u8>>);

impl ParquetEncoder {
    pub(super) fn new(compression: Compression, schema: &SchemaRef) -> Result<Self, EncodeError> {
        let properties = WriterProperties::builder().set_compression(compression).build();
        Ok(Self(ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties))?))
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), EncodeError> {
        Ok(self.0.write(rows)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.bytes_written() + self.0.in_progress_size()
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.into_inner()?)
    }
}

/// A whole file.
pub(crate) fn encode(
    compression: Compression,
    schema: &SchemaRef,
    rows: &[RecordBatch],
) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = ParquetEncoder::new(compression, schema)?;
    for batch in rows {
        encoder.write(batch)?;
    }
    encoder.finish()
}
