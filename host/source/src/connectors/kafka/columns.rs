//! Records to Arrow: only the columns that are asked for, without an allocation per record.

use super::offset::TopicPartition;
use crate::headers::HeaderBuilder;
use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondArray,
};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use millstream_common::guarded;
use rdkafka::Timestamp;
use rdkafka::message::{Headers, Message};
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;
/// After so many bytes a batch is full, too: its binary columns have 32-bit offsets.
const BATCH_BYTES: usize = 16 << 20;

/// A header that cannot be read: its key is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadHeader;

/// Builders of the projected columns for the records of one partition.
pub(super) struct Columns {
    schema: SchemaRef,
    projection: Vec<usize>,
    place: TopicPartition,
    rows: usize,
    bytes: usize,
    key: Option<BinaryBuilder>,
    value: Option<BinaryBuilder>,
    offsets: Option<Vec<i64>>,
    times: Option<Vec<i64>>,
    time_types: Option<Vec<i32>>,
    headers: Option<HeaderBuilder>,
    batches: Vec<RecordBatch>,
}

impl Columns {
    /// `schema` has the columns of `projection`, which are indexes into the columns of the source.
    pub(super) fn new(schema: &SchemaRef, projection: &[usize], place: &TopicPartition) -> Self {
        let has = |column: usize| projection.contains(&column);
        Self {
            schema: Arc::clone(schema),
            projection: projection.to_vec(),
            place: place.clone(),
            rows: 0,
            bytes: 0,
            key: has(0).then(BinaryBuilder::new),
            value: has(1).then(BinaryBuilder::new),
            offsets: has(4).then(Vec::new),
            times: has(5).then(Vec::new),
            time_types: has(6).then(Vec::new),
            headers: has(7).then(HeaderBuilder::new),
            batches: Vec::new(),
        }
    }

    /// Adds a record.
    pub(super) fn append<M: Message>(&mut self, record: &M) -> Result<(), BadHeader> {
        if let Some(headers) = &mut self.headers {
            self.bytes += append_headers(headers, record.headers())?;
        }
        if let Some(key) = &mut self.key {
            let bytes = record.key();
            self.bytes += bytes.map_or(0, <[u8]>::len);
            key.append_option(bytes);
        }
        if let Some(value) = &mut self.value {
            let bytes = record.payload();
            self.bytes += bytes.map_or(0, <[u8]>::len);
            value.append_option(bytes);
        }
        if let Some(offsets) = &mut self.offsets {
            offsets.push(record.offset());
        }
        if self.times.is_some() || self.time_types.is_some() {
            // As the clients of Java have it where there is no time: -1.
            let (ms, kind) = match record.timestamp() {
                Timestamp::NotAvailable => (-1, -1),
                Timestamp::CreateTime(ms) => (ms, 0),
                Timestamp::LogAppendTime(ms) => (ms, 1),
            };
            if let Some(times) = &mut self.times {
                times.push(ms.saturating_mul(1000));
            }
            if let Some(kinds) = &mut self.time_types {
                kinds.push(kind);
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Whether what was added makes a batch: then [`cut`](Self::cut).
    pub(super) fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Makes a batch of what was added since the last one.
    pub(super) fn cut(&mut self) -> Result<(), ArrowError> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let projection = std::mem::take(&mut self.projection);
        let columns = projection.iter().map(|column| self.column(*column, rows)).collect::<Result<_, ArrowError>>();
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

    fn column(&mut self, column: usize, rows: usize) -> Result<ArrayRef, ArrowError> {
        let missing = || ArrowError::InvalidArgumentError(format!("column {column} is not one of a topic"));
        Ok(match column {
            0 => Arc::new(self.key.as_mut().ok_or_else(missing)?.finish()),
            1 => Arc::new(self.value.as_mut().ok_or_else(missing)?.finish()),
            2 => {
                let mut topics = StringBuilder::with_capacity(rows, rows * self.place.topic.len());
                (0..rows).for_each(|_| topics.append_value(&self.place.topic));
                Arc::new(topics.finish())
            }
            3 => Arc::new(Int32Array::from(vec![self.place.partition; rows])),
            4 => Arc::new(Int64Array::from(std::mem::take(self.offsets.as_mut().ok_or_else(missing)?))),
            5 => {
                let times = std::mem::take(self.times.as_mut().ok_or_else(missing)?);
                Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
            }
            6 => Arc::new(Int32Array::from(std::mem::take(self.time_types.as_mut().ok_or_else(missing)?))),
            7 => self.headers.as_mut().ok_or_else(missing)?.finish(),
            _ => return Err(missing()),
        })
    }
}

/// Adds the headers of a record; NULL when it has none, as in Spark. Answers how many bytes they have.
fn append_headers<H: Headers>(column: &mut HeaderBuilder, headers: Option<&H>) -> Result<usize, BadHeader> {
    let Some(headers) = headers else { return Ok(column.append([])) };
    let mut read = Vec::with_capacity(headers.count());
    for index in 0..headers.count() {
        // The client panics at a key that is not UTF-8, and anybody may write one.
        let header = guarded(|| headers.try_get(index)).map_err(|_| BadHeader)?;
        read.extend(header);
    }
    Ok(column.append(read.iter().map(|header| (header.key, header.value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{Int64Type, Schema};
    use millstream_common::Options;
    use rdkafka::message::{Header, OwnedHeaders, OwnedMessage};

    fn schema() -> SchemaRef {
        let options = Options::new().with("kafka.bootstrap.servers", "x:1").with("subscribe", "t");
        let options = options.with("includeHeaders", "true");
        let spec = crate::SourceSpec { name: "t".into(), format: "kafka".into(), schema: None, options };
        super::super::config::KafkaConfig::new(&spec).unwrap().schema()
    }

    fn record(offset: i64, value: Option<&[u8]>, headers: Option<OwnedHeaders>) -> OwnedMessage {
        let value = value.map(<[u8]>::to_vec);
        OwnedMessage::new(value, Some(b"k".to_vec()), "t".into(), Timestamp::CreateTime(7), 3, offset, headers)
    }

    fn build(projection: &[usize], records: &[OwnedMessage]) -> Vec<RecordBatch> {
        let schema: SchemaRef = Arc::new(Schema::project(&schema(), projection).unwrap());
        let mut columns = Columns::new(&schema, projection, &TopicPartition::new("t", 3));
        for record in records {
            columns.append(record).unwrap();
            if columns.is_full() {
                columns.cut().unwrap();
            }
        }
        columns.finish().unwrap()
    }

    #[test]
    fn a_record_has_all_columns_of_spark() {
        let headers = OwnedHeaders::new()
            .insert(Header { key: "a", value: Some("1") })
            .insert(Header { key: "b", value: None::<&str> });
        let batches = build(&[0, 1, 2, 3, 4, 5, 6, 7], &[record(9, None, Some(headers)), record(11, Some(b"v"), None)]);
        let lines = crate::contract::lines(&batches[0]);
        assert_eq!(lines[0], "6b|-|t|3|9|1970-01-01T00:00:00.007|0|[{key: a, value: 31}, {key: b, value: -}]");
        assert_eq!(lines[1], "6b|76|t|3|11|1970-01-01T00:00:00.007|0|-");
    }

    #[test]
    fn only_what_is_asked_for_is_built_and_rows_are_counted_without_columns() {
        let records: Vec<_> = (0..20_000).map(|offset| record(offset, Some(b"v"), None)).collect();
        let batches = build(&[4], &records);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [8192, 8192, 3616]);
        let last = batches[2].column(0).as_primitive::<Int64Type>();
        assert_eq!((batches[2].num_columns(), last.value(last.len() - 1)), (1, 19_999));
        assert_eq!(build(&[], &records[..5])[0].num_rows(), 5);
        assert!(build(&[0], &[]).is_empty());
    }

    #[test]
    fn large_records_end_a_batch_early() {
        let large = vec![0_u8; 9 << 20];
        let records: Vec<_> = (0..3).map(|offset| record(offset, Some(&large), None)).collect();
        assert_eq!(build(&[1], &records).iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    }
}
