//! Rows as a Parquet file.

use super::EncodeError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

pub(crate) fn encode(
    compression: Compression,
    schema: &SchemaRef,
    rows: &[RecordBatch],
) -> Result<Vec<u8>, EncodeError> {
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(schema), Some(properties))?;
    for batch in rows {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(bytes)
}
