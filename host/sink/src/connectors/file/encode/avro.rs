//! Rows as an Avro object container file.

use super::EncodeError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow_avro::compression::CompressionCodec;
use arrow_avro::writer::format::AvroOcfFormat;
use arrow_avro::writer::{Writer, WriterBuilder};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An Avro file that is being made.
pub(super) struct AvroEncoder {
    writer: Writer<Tally, AvroOcfFormat>,
    length: Arc<AtomicUsize>,
}

/// Bytes whose length can be seen while the writer has them.
struct Tally {
    bytes: Vec<u8>,
    length: Arc<AtomicUsize>,
}

impl Write for Tally {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.length.store(self.bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> EncodeError {
    EncodeError::Arrow(ArrowError::ExternalError(Box::new(error)))
}

impl AvroEncoder {
    pub(super) fn new(compression: Option<CompressionCodec>, schema: &SchemaRef) -> Result<Self, EncodeError> {
        let length = Arc::new(AtomicUsize::new(0));
        let tally = Tally { bytes: Vec::new(), length: Arc::clone(&length) };
        let builder = WriterBuilder::new(schema.as_ref().clone()).with_compression(compression);
        let writer = builder.build::<_, AvroOcfFormat>(tally).map_err(failed)?;
        Ok(Self { writer, length })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), EncodeError> {
        self.writer.write(rows).map_err(failed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        self.writer.finish().map_err(failed)?;
        Ok(self.writer.into_inner().bytes)
    }
}
