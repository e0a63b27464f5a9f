//! Rows as an ORC file.

use super::EncodeError;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use orc_rust::compression::CompressionType;
use orc_rust::{ArrowWriter, ArrowWriterBuilder};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// An ORC file that is being made.
pub(super) struct OrcEncoder {
    writer: ArrowWriter<Shared>,
    bytes: Shared,
}

/// Bytes that can be seen while the writer has them: it gives nothing back.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> EncodeError {
    EncodeError::Arrow(ArrowError::ExternalError(Box::new(error)))
}

/// The first column whose type the writer does not have.
pub(in super::super) fn unfit(schema: &Schema) -> Option<(&str, &DataType)> {
    let fits = |data_type: &DataType| match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary => true,
        DataType::Timestamp(_, zone) => matches!(zone.as_deref(), None | Some("UTC")),
        _ => false,
    };
    let field = schema.fields().iter().find(|field| !fits(field.data_type()))?;
    Some((field.name(), field.data_type()))
}

impl OrcEncoder {
    pub(super) fn new(
        compression: Option<CompressionType>,
        stripe_bytes: usize,
        schema: &SchemaRef,
    ) -> Result<Self, EncodeError> {
        if let Some((name, data_type)) = unfit(schema) {
            let reason = format!("column `{name}` of type {data_type} cannot be in an ORC file here");
            return Err(ArrowError::SchemaError(reason).into());
        }
        let bytes = Shared::default();
        let builder = ArrowWriterBuilder::new(bytes.clone(), Arc::clone(schema)).with_stripe_byte_size(stripe_bytes);
        let builder = match compression {
            Some(compression) => builder.with_compression(compression),
            None => builder,
        };
        Ok(Self { writer: builder.try_build().map_err(failed)?, bytes })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), EncodeError> {
        self.writer.write(rows).map_err(failed)
    }

    /// The stripes that are ended; the open one is not counted.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, EncodeError> {
        self.writer.close().map_err(failed)?;
        Ok(std::mem::take(&mut *self.bytes.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
