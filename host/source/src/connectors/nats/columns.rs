//! Messages to Arrow: only the columns that are asked for, without an allocation per message.

use crate::headers::HeaderBuilder;
use arrow::array::{
    ArrayRef, BinaryBuilder, Int64Array, RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use millstream_client::nats::Stored;
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;
/// After so many bytes a batch is full, too: its columns have 32-bit offsets.
const BATCH_BYTES: usize = 16 << 20;

/// Builders of the projected columns.
pub(super) struct Columns {
    schema: SchemaRef,
    projection: Vec<usize>,
    rows: usize,
    bytes: usize,
    data: Option<BinaryBuilder>,
    subjects: Option<StringBuilder>,
    sequences: Option<Vec<i64>>,
    times: Option<Vec<i64>>,
    headers: Option<HeaderBuilder>,
    batches: Vec<RecordBatch>,
}

impl Columns {
    /// `schema` has the columns of `projection`, which are indexes into the columns of the source.
    pub(super) fn new(schema: &SchemaRef, projection: &[usize]) -> Self {
        let has = |column: usize| projection.contains(&column);
        Self {
            schema: Arc::clone(schema),
            projection: projection.to_vec(),
            rows: 0,
            bytes: 0,
            data: has(0).then(BinaryBuilder::new),
            subjects: has(1).then(StringBuilder::new),
            sequences: has(2).then(Vec::new),
            times: has(3).then(Vec::new),
            headers: has(4).then(HeaderBuilder::new),
            batches: Vec::new(),
        }
    }

    /// Adds a message.
    pub(super) fn append(&mut self, message: &Stored) -> Result<(), ArrowError> {
        if let Some(data) = &mut self.data {
            self.bytes += message.data().len();
            data.append_value(message.data());
        }
        if let Some(subjects) = &mut self.subjects {
            self.bytes += message.subject().len();
            subjects.append_value(message.subject());
        }
        if let Some(sequences) = &mut self.sequences {
            let number = i64::try_from(message.sequence);
            sequences.push(number.map_err(|error| ArrowError::CastError(error.to_string()))?);
        }
        if let Some(times) = &mut self.times {
            times.push(message.micros);
        }
        if let Some(headers) = &mut self.headers {
            let pairs = message.headers();
            self.bytes += headers.append(pairs.iter().map(|(name, value)| (*name, Some(value.as_bytes()))));
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.cut()?;
        }
        Ok(())
    }

    /// Makes a batch of what was added since the last one.
    fn cut(&mut self) -> Result<(), ArrowError> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let projection = std::mem::take(&mut self.projection);
        let columns = projection.iter().map(|column| self.column(*column)).collect::<Result<_, ArrowError>>();
        self.projection = projection;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        self.batches.push(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns?, &options)?);
        Ok(())
    }

    /// All batches.
    pub(super) fn finish(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.cut()?;
        Ok(self.batches)
    }

    fn column(&mut self, column: usize) -> Result<ArrayRef, ArrowError> {
        let missing = || ArrowError::InvalidArgumentError(format!("column {column} is not one of a stream"));
        Ok(match column {
            0 => Arc::new(self.data.as_mut().ok_or_else(missing)?.finish()),
            1 => Arc::new(self.subjects.as_mut().ok_or_else(missing)?.finish()),
            2 => Arc::new(Int64Array::from(std::mem::take(self.sequences.as_mut().ok_or_else(missing)?))),
            3 => {
                let times = std::mem::take(self.times.as_mut().ok_or_else(missing)?);
                Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
            }
            4 => self.headers.as_mut().ok_or_else(missing)?.finish(),
            _ => return Err(missing()),
        })
    }
}
