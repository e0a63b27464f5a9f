//! The columns that become parts of a record.

use super::FORMAT;
use crate::SinkError;
use crate::message_columns::{ByteColumn, HEADERS, HeaderColumn, is_bytes, is_headers, is_text, taken};
use arrow::array::{Array, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Schema};
use rdkafka::message::{Header, OwnedHeaders};

/// Where they are in the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    value: usize,
    key: Option<usize>,
    /// None when all rows go to one topic.
    topic: Option<usize>,
    partition: Option<usize>,
    headers: Option<usize>,
}

impl Columns {
    /// Finds them, for rows that go to `topic` or where their column says. Other columns are not looked at.
    pub(super) fn of(schema: &Schema, topic: Option<&str>) -> Result<Self, SinkError> {
        let taken =
            |name: &str, wanted: &str, fits: fn(&DataType) -> bool| taken(schema, name, wanted, fits).map_err(unfit);
        let value = taken("value", "string or binary", is_bytes)?.ok_or_else(|| {
            let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            unfit(format!("there is no column `value` among {}; write `… AS value`", known.join(", ")))
        })?;
        let in_rows = taken("topic", "string", is_text)?;
        if topic.is_none() && in_rows.is_none() {
            return Err(unfit("it is not said to which topic rows go; set option `topic`, or select a column `topic`"));
        }
        Ok(Self {
            value,
            key: taken("key", "string or binary", is_bytes)?,
            topic: in_rows.filter(|_| topic.is_none()),
            partition: taken("partition", "int", |found| *found == DataType::Int32)?,
            headers: taken("headers", HEADERS, is_headers)?,
        })
    }

    /// The parts of all rows of a batch of columns.
    pub(super) fn read<'a>(&self, rows: &'a RecordBatch) -> Result<Parts<'a>, SinkError> {
        let bytes = |index: usize| ByteColumn::of(rows.column(index)).map_err(unfit);
        Ok(Parts {
            value: bytes(self.value)?,
            key: self.key.map(bytes).transpose()?,
            topic: self.topic.map(bytes).transpose()?,
            partition: self.partition.map(|index| rows.column(index).as_primitive::<Int32Type>()),
            headers: self.headers.map(|index| HeaderColumn::of(rows.column(index))).transpose().map_err(unfit)?,
        })
    }
}

/// The columns do not fit.
pub(super) fn unfit(reason: impl Into<String>) -> SinkError {
    SinkError::Schema { sink: FORMAT.into(), reason: reason.into() }
}

/// The parts of the records of some rows.
pub(super) struct Parts<'a> {
    value: ByteColumn<'a>,
    key: Option<ByteColumn<'a>>,
    topic: Option<ByteColumn<'a>>,
    partition: Option<&'a Int32Array>,
    headers: Option<HeaderColumn<'a>>,
}

impl<'a> Parts<'a> {
    pub(super) fn value(&self, row: usize) -> Option<&'a [u8]> {
        self.value.get(row)
    }

    pub(super) fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.key.as_ref()?.get(row)
    }

    /// Where the row goes by itself.
    pub(super) fn topic(&self, row: usize) -> Result<&'a str, SinkError> {
        let bytes = self.topic.as_ref().and_then(|topic| topic.get(row));
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| {
            unfit("a row has null as its `topic`; filter such rows, or set option `topic` so that all rows go there")
        })
    }

    pub(super) fn partition(&self, row: usize) -> Result<Option<i32>, SinkError> {
        match self.partition.filter(|column| column.is_valid(row)).map(|column| column.value(row)) {
            Some(number) if number < 0 => Err(unfit(format!("a row has {number} as its `partition`"))),
            partition => Ok(partition),
        }
    }

    pub(super) fn headers(&self, row: usize) -> Result<Option<OwnedHeaders>, SinkError> {
        let Some(column) = &self.headers else { return Ok(None) };
        let Some(span) = column.span(row) else { return Ok(None) };
        let mut headers = OwnedHeaders::new_with_capacity(span.len());
        for entry in span {
            let (key, value) = column.header(entry).map_err(unfit)?;
            headers = headers.insert(Header { key, value });
        }
        Ok(Some(headers))
    }
}
