//! The columns that become parts of a record.

use super::FORMAT;
use crate::SinkError;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, Int32Array, LargeBinaryArray, LargeStringArray,
    RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
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
        let find = |name: &str| schema.column_with_name(name);
        let taken = |name: &str, wanted: &str, fits: fn(&DataType) -> bool| match find(name) {
            None => Ok(None),
            Some((index, field)) if fits(field.data_type()) => Ok(Some(index)),
            Some((_, field)) => {
                let found = field.data_type();
                Err(unfit(format!("column `{name}` is {found}, and it must be {wanted}: write `CAST({name} AS …)`")))
            }
        };
        let value = taken("value", "string or binary", is_bytes)?.ok_or_else(|| {
            let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            unfit(format!("there is no column `value` among {}; write `… AS value`", known.join(", ")))
        })?;
        let in_rows = taken("topic", "string", is_text)?;
        if topic.is_none() && in_rows.is_none() {
            return Err(unfit("it is not said to which topic rows go; set option `topic`, or select a column `topic`"));
        }
        let headers = "array<struct<key: string, value: binary>>";
        Ok(Self {
            value,
            key: taken("key", "string or binary", is_bytes)?,
            topic: in_rows.filter(|_| topic.is_none()),
            partition: taken("partition", "int", |found| *found == DataType::Int32)?,
            headers: taken("headers", headers, is_headers)?,
        })
    }

    /// The parts of all rows of a batch of columns.
    pub(super) fn read<'a>(&self, rows: &'a RecordBatch) -> Result<Parts<'a>, SinkError> {
        let bytes = |index: usize| Bytes::of(rows.column(index));
        Ok(Parts {
            value: bytes(self.value)?,
            key: self.key.map(bytes).transpose()?,
            topic: self.topic.map(bytes).transpose()?,
            partition: self.partition.map(|index| rows.column(index).as_primitive::<Int32Type>()),
            headers: self.headers.map(|index| HeaderColumn::of(rows.column(index))).transpose()?,
        })
    }
}

/// The columns do not fit.
pub(super) fn unfit(reason: impl Into<String>) -> SinkError {
    SinkError::Schema { sink: FORMAT.into(), reason: reason.into() }
}

fn is_text(found: &DataType) -> bool {
    matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(found: &DataType) -> bool {
    is_text(found) || matches!(found, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn is_headers(found: &DataType) -> bool {
    let (DataType::List(entry) | DataType::LargeList(entry)) = found else { return false };
    let DataType::Struct(fields) = entry.data_type() else { return false };
    matches!(&fields[..], [key, value] if is_text(key.data_type()) && is_bytes(value.data_type()))
}

/// The parts of the records of some rows.
pub(super) struct Parts<'a> {
    value: Bytes<'a>,
    key: Option<Bytes<'a>>,
    topic: Option<Bytes<'a>>,
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
        self.headers.as_ref().map_or(Ok(None), |headers| headers.get(row))
    }
}

/// A column of strings or bytes.
enum Bytes<'a> {
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
}

impl<'a> Bytes<'a> {
    fn of(column: &'a ArrayRef) -> Result<Self, SinkError> {
        Ok(match column.data_type() {
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::LargeUtf8 => Self::LargeText(column.as_string()),
            DataType::Utf8View => Self::TextView(column.as_string_view()),
            DataType::Binary => Self::Binary(column.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(column.as_binary()),
            DataType::BinaryView => Self::BinaryView(column.as_binary_view()),
            other => return Err(unfit(format!("a column is {other}, and it must be string or binary"))),
        })
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Text(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::LargeText(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::TextView(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::Binary(column) => column.is_valid(row).then(|| column.value(row)),
            Self::LargeBinary(column) => column.is_valid(row).then(|| column.value(row)),
            Self::BinaryView(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }
}

/// A column of lists of headers.
struct HeaderColumn<'a> {
    list: &'a ArrayRef,
    keys: Bytes<'a>,
    values: Bytes<'a>,
    entries: &'a StructArray,
}

impl<'a> HeaderColumn<'a> {
    fn of(list: &'a ArrayRef) -> Result<Self, SinkError> {
        let entries = match list.data_type() {
            DataType::List(_) => list.as_list::<i32>().values(),
            DataType::LargeList(_) => list.as_list::<i64>().values(),
            other => return Err(unfit(format!("column `headers` is {other}"))),
        };
        let entries =
            entries.as_struct_opt().ok_or_else(|| unfit("column `headers` has entries that are no struct"))?;
        let [keys, values] = entries.columns() else {
            return Err(unfit("column `headers` has entries that are not of key and value"));
        };
        Ok(Self { list, keys: Bytes::of(keys)?, values: Bytes::of(values)?, entries })
    }

    fn get(&self, row: usize) -> Result<Option<OwnedHeaders>, SinkError> {
        if self.list.is_null(row) {
            return Ok(None);
        }
        fn span<O: arrow::array::OffsetSizeTrait>(offsets: &OffsetBuffer<O>, row: usize) -> (usize, usize) {
            (offsets[row].as_usize(), offsets[row + 1].as_usize())
        }
        let (start, end) = match self.list.data_type() {
            DataType::List(_) => span(self.list.as_list::<i32>().offsets(), row),
            _ => span(self.list.as_list::<i64>().offsets(), row),
        };
        let mut headers = OwnedHeaders::new_with_capacity(end - start);
        for entry in start..end {
            let key = if self.entries.is_valid(entry) { self.keys.get(entry) } else { None };
            let key = key.and_then(|key| std::str::from_utf8(key).ok());
            let key = key.ok_or_else(|| unfit("a row has a header whose key is null"))?;
            headers = headers.insert(Header { key, value: self.values.get(entry) });
        }
        Ok(Some(headers))
    }
}
