//! Rows into the bytes of one file, piece by piece.
//!
//! An encoder takes rows until the sink finds the file long enough; how long it is by then is known without ending it.

mod avro;
pub(super) mod csv;
pub(super) mod orc;
pub(crate) mod parquet;

use super::config::Encoding;
use crate::json;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use std::io::Write;

/// Why rows could not be encoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error("a value cannot be written as text: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    #[error("the rows do not fit the file format: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    #[error("the rows cannot be compressed: {0}")]
    Compress(#[from] std::io::Error),
}

/// A file that is being made.
pub(super) struct FileEncoder<'a> {
    encoding: &'a Encoding,
    form: Form,
}

enum Form {
    Parquet(Box<parquet::ParquetEncoder>),
    Avro(Box<avro::AvroEncoder>),
    Orc(Box<orc::OrcEncoder>),
    Text(Vec<u8>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl<'a> FileEncoder<'a> {
    /// An empty file for rows of `schema`.
    pub(super) fn new(encoding: &'a Encoding, gzip: bool, schema: &SchemaRef) -> Result<Self, EncodeError> {
        let form = match encoding {
            Encoding::Parquet { compression } => {
                Form::Parquet(Box::new(parquet::ParquetEncoder::new(*compression, schema)?))
            }
            Encoding::Avro { compression } => Form::Avro(Box::new(avro::AvroEncoder::new(*compression, schema)?)),
            Encoding::Orc { compression, stripe_bytes } => {
                Form::Orc(Box::new(orc::OrcEncoder::new(*compression, *stripe_bytes, schema)?))
            }
            _ if gzip => Form::Gzip(Box::new(GzEncoder::new(Vec::new(), Level::default()))),
            _ => Form::Text(Vec::new()),
        };
        let mut encoder = Self { encoding, form };
        if let Encoding::Csv(options) = encoding {
            encoder.append(&csv::header(options, schema))?;
        }
        Ok(encoder)
    }

    /// Appends rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), EncodeError> {
        let text = match (self.encoding, &mut self.form) {
            (_, Form::Parquet(encoder)) => return encoder.write(rows),
            (_, Form::Avro(encoder)) => return encoder.write(rows),
            (_, Form::Orc(encoder)) => return encoder.write(rows),
            (Encoding::Json { ignore_nulls }, _) => json::lines(
                json::Form { ignore_nulls: *ignore_nulls, ..json::Form::SPARK },
                std::slice::from_ref(rows),
            )?,
            (Encoding::Csv(options), _) => csv::encode(options, rows)?,
            (Encoding::Text { separator }, _) => text(separator, rows),
            // These have forms of their own.
            (Encoding::Parquet { .. } | Encoding::Avro { .. } | Encoding::Orc { .. }, _) => Vec::new(),
        };
        self.append(&text)
    }

    fn append(&mut self, text: &[u8]) -> Result<(), EncodeError> {
        match &mut self.form {
            Form::Text(bytes) => bytes.extend_from_slice(text),
            Form::Gzip(encoder) => encoder.write_all(text)?,
            Form::Parquet(_) | Form::Avro(_) | Form::Orc(_) => {}
        }
        Ok(())
    }

    /// About how long the file is by now.
    pub(super) fn bytes(&self) -> usize {
        match &self.form {
            Form::Parquet(encoder) => encoder.bytes(),
            Form::Avro(encoder) => encoder.bytes(),
            Form::Orc(encoder) => encoder.bytes(),
            Form::Text(bytes) => bytes.len(),
            Form::Gzip(encoder) => encoder.get_ref().len(),
        }
    }

    /// The whole file.
    pub(super) fn finish(self) -> Result<Vec<u8>, EncodeError> {
        match self.form {
            Form::Parquet(encoder) => encoder.finish(),
            Form::Avro(encoder) => encoder.finish(),
            Form::Orc(encoder) => encoder.finish(),
            Form::Text(bytes) => Ok(bytes),
            Form::Gzip(encoder) => Ok(encoder.finish()?),
        }
    }
}

/// One string per line; null is an empty line.
fn text(separator: &str, rows: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let values = rows.column(0).as_string::<i32>();
    for row in 0..values.len() {
        if values.is_valid(row) {
            bytes.extend_from_slice(values.value(row).as_bytes());
        }
        bytes.extend_from_slice(separator.as_bytes());
    }
    bytes
}
