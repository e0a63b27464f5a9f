//! Rows that a source keeps in the checkpoint because nobody can be asked for them again: as bytes of Parquet.
//!
//! Written by sources whose world shows a thing only once. Columns that nobody asks for are not decoded.
//!
//! It knows no files: who keeps the bytes, and whether they are whole, is the source's.

use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// How many rows a batch has at most when they are read.
const BATCH_ROWS: usize = 8192;

/// The bytes of some rows.
pub(crate) fn encode(rows: &RecordBatch) -> Result<Vec<u8>, String> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let written = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).and_then(|mut writer| {
        writer.write(rows)?;
        writer.close()
    });
    written.map(|_| bytes).map_err(|error| error.to_string())
}

/// The rows in bytes, by those of their columns that `roots` names.
pub(crate) fn decode(bytes: Bytes, roots: impl IntoIterator<Item = usize>) -> Result<Vec<RecordBatch>, String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| error.to_string())?;
    let mask = ProjectionMask::roots(reader.parquet_schema(), roots);
    let reader = reader.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| error.to_string())?;
    reader.collect::<Result<_, _>>().map_err(|error| error.to_string())
}
