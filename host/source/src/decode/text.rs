//! Lines as they are: one string column, named `value` unless the user says otherwise.

use super::{DecodeError, error::check_size, next_line};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Decodes lines, or whole inputs, into one column.
#[derive(Debug, Clone)]
pub struct TextDecoder {
    schema: SchemaRef,
    separator: Option<Vec<u8>>,
}

impl TextDecoder {
    /// The schema of all text: `value string`.
    pub fn full_schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8, true)]))
    }

    /// A decoder into `schema`, which has one string column, or none when only the count of rows is wanted;
    /// `separator` replaces the usual ends of lines.
    pub fn new(schema: SchemaRef, separator: Option<Vec<u8>>) -> Self {
        Self { schema, separator }
    }

    /// Decodes at most `max_rows` lines: the batch, and how many bytes of `input` it took.
    ///
    /// # Errors
    /// When there is too much input.
    pub fn decode_some(&self, input: &[u8], max_rows: usize) -> Result<(RecordBatch, usize), DecodeError> {
        check_size(input)?;
        let mut values = StringBuilder::new();
        let (mut rows, mut taken) = (0, 0);
        while rows < max_rows
            && let Some((line, bytes)) = next_line(&input[taken..], self.separator.as_deref())
        {
            values.append_value(String::from_utf8_lossy(line));
            rows += 1;
            taken += bytes;
        }
        Ok((self.batch(values, rows)?, taken))
    }

    /// The whole input as one row.
    ///
    /// # Errors
    /// When there is too much input.
    pub fn decode_whole(&self, input: &[u8]) -> Result<RecordBatch, DecodeError> {
        check_size(input)?;
        let mut values = StringBuilder::new();
        values.append_value(String::from_utf8_lossy(input));
        self.batch(values, 1)
    }

    /// What ends a line, when it is not one of the usual ends.
    pub(crate) fn separator(&self) -> Option<&[u8]> {
        self.separator.as_deref()
    }

    fn batch(&self, mut values: StringBuilder, rows: usize) -> Result<RecordBatch, DecodeError> {
        let columns: Vec<ArrayRef> =
            if self.schema.fields().is_empty() { vec![] } else { vec![Arc::new(values.finish())] };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|source| DecodeError::Batch { source })
    }
}
