//! The columns that become parts of a message. Topics and values are taken out of the columns without a copy, where the
//! columns have them in one piece.

use super::FORMAT;
use crate::SinkError;
use crate::message_columns::{ByteColumn, HEADERS, HeaderColumn, SharedBytes, is_bytes, is_headers, is_text, taken};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use millstream_client::mqtt::packets::{Publish, PublishProperties, QoS};
use millstream_client::mqtt::topic_fault;

/// Names and values of properties say their lengths with 16 bits.
const LONGEST_TEXT: usize = u16::MAX as usize;

/// Where they are in the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    value: usize,
    /// None when all rows go to one topic.
    topic: Option<usize>,
    headers: Option<usize>,
}

impl Columns {
    /// Finds them, for rows that go to `topic` or where their column says. Other columns are not looked at.
    pub(super) fn of(schema: &Schema, topic: Option<&str>) -> Result<Self, SinkError> {
        let unfit = |reason: String| SinkError::Schema { sink: FORMAT.to_owned(), reason };
        let value = taken(schema, "value", "string or binary", is_bytes).map_err(unfit)?.ok_or_else(|| {
            let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            unfit(format!("there is no column `value` among {}; write `… AS value`", known.join(", ")))
        })?;
        let in_rows = match topic {
            Some(_) => None,
            None => taken(schema, "topic", "string", is_text).map_err(unfit)?,
        };
        if topic.is_none() && in_rows.is_none() {
            let reason = "it is not said to which topic rows go; set option `topic`, or select a column `topic`";
            return Err(unfit(reason.to_owned()));
        }
        let headers = taken(schema, "headers", HEADERS, is_headers).map_err(unfit)?;
        Ok(Self { value, topic: in_rows, headers })
    }

    /// The messages of some rows; `topic` is that of all where rows have none. Says what is wrong with a row.
    pub(super) fn read<'a>(&self, rows: &'a RecordBatch, topic: Option<&str>) -> Result<Messages<'a>, String> {
        let value = ByteColumn::of(rows.column(self.value))?;
        let topics = match self.topic {
            Some(at) => Topics::each(ByteColumn::of(rows.column(at))?, rows.num_rows())?,
            None => Topics::One(Bytes::copy_from_slice(topic.unwrap_or_default().as_bytes())),
        };
        let headers = self.headers.map(|at| HeaderColumn::of(rows.column(at))).transpose()?;
        for row in 0..rows.num_rows() {
            check_headers(headers.as_ref(), row)?;
        }
        Ok(Messages { length: rows.num_rows(), topics, shared: value.shared(), value, headers })
    }
}

/// Whether the headers of a row can be sent.
fn check_headers(headers: Option<&HeaderColumn<'_>>, row: usize) -> Result<(), String> {
    let Some((headers, span)) = headers.and_then(|headers| Some((headers, headers.span(row)?))) else { return Ok(()) };
    for entry in span {
        let (key, value) = headers.header(entry)?;
        let value = value.unwrap_or_default();
        if std::str::from_utf8(value).is_err() {
            return Err(format!("a row has a header `{key}` that is no text"));
        }
        if key.len() > LONGEST_TEXT || value.len() > LONGEST_TEXT {
            return Err("a row has a header with more than 65535 bytes".to_owned());
        }
    }
    Ok(())
}

/// Where rows go.
enum Topics<'a> {
    One(Bytes),
    Each(ByteColumn<'a>, SharedBytes),
}

impl<'a> Topics<'a> {
    /// Those of a column, if all of its rows have one that can be written to.
    fn each(column: ByteColumn<'a>, rows: usize) -> Result<Self, String> {
        for row in 0..rows {
            let topic = column.get(row).and_then(|topic| std::str::from_utf8(topic).ok());
            let topic = topic.ok_or("a row has NULL as its `topic`; filter such rows, or set option `topic`")?;
            if let Some(fault) = topic_fault(topic) {
                return Err(format!("a row has `{topic}` as its `topic`: {fault}"));
            }
        }
        let shared = column.shared();
        Ok(Self::Each(column, shared))
    }
}

/// The messages of some rows.
pub(super) struct Messages<'a> {
    length: usize,
    topics: Topics<'a>,
    value: ByteColumn<'a>,
    shared: SharedBytes,
    headers: Option<HeaderColumn<'a>>,
}

impl Messages<'_> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The topic of a row.
    pub(super) fn topic(&self, row: usize) -> Bytes {
        match &self.topics {
            Topics::One(topic) => topic.clone(),
            Topics::Each(column, shared) => shared.part(column.get(row).unwrap_or_default()),
        }
    }

    /// The message of a row, as packet `packet`. A value that is NULL is an empty message.
    pub(super) fn get(&self, row: usize, packet: u16, qos: QoS, retain: bool) -> Publish {
        let payload = self.value.get(row).map_or_else(Bytes::new, |value| self.shared.part(value));
        Publish {
            dup: false,
            qos,
            retain,
            topic: self.topic(row),
            pkid: packet,
            payload,
            properties: self.properties(row),
        }
    }

    fn properties(&self, row: usize) -> Option<PublishProperties> {
        let headers = self.headers.as_ref()?;
        let span = headers.span(row).filter(|span| !span.is_empty())?;
        // They were looked at before.
        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        let pair = |entry| headers.header(entry).ok().map(|(key, value)| (key.to_owned(), text(value)));
        let user_properties = span.filter_map(pair).collect();
        Some(PublishProperties { user_properties, ..PublishProperties::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, BinaryViewArray, Int32Array, LargeStringArray, StringArray, StringViewArray};
    use arrow::array::{ListBuilder, StringBuilder, StructBuilder};
    use arrow::datatypes::{DataType, Field, Fields};
    use std::sync::Arc;

    fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .unwrap()
    }

    fn messages(rows: &RecordBatch, topic: Option<&str>) -> Result<Vec<(String, String)>, String> {
        let columns = Columns::of(&rows.schema(), topic).map_err(|error| error.to_string())?;
        let messages = columns.read(rows, topic)?;
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let all = (0..messages.len()).map(|row| messages.get(row, 1, QoS::AtLeastOnce, false));
        Ok(all.map(|message| (text(&message.topic), text(&message.payload))).collect())
    }

    #[test]
    fn values_and_topics_come_from_columns_of_any_width_and_from_slices_of_them() {
        let values: [ArrayRef; 4] = [
            Arc::new(StringArray::from(vec![Some("a"), None, Some("ccc")])),
            Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("ccc")])),
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some("ccc")])),
            Arc::new(BinaryViewArray::from(vec![Some(b"a".as_slice()), None, Some(b"ccc")])),
        ];
        for value in values {
            let topics: ArrayRef = Arc::new(StringViewArray::from(vec!["t/1", "t/2", "t/3"]));
            let rows = rows(vec![("topic", topics), ("value", value)]);
            let pair = |topic: &str, value: &str| (topic.to_owned(), value.to_owned());
            let all = vec![pair("t/1", "a"), pair("t/2", ""), pair("t/3", "ccc")];
            assert_eq!(messages(&rows, None).unwrap(), all);
            assert_eq!(messages(&rows.slice(1, 2), None).unwrap(), all[1..]);
            assert_eq!(
                messages(&rows, Some("one")).unwrap()[2],
                pair("one", "ccc"),
                "the option goes before the column"
            );
        }
    }

    #[test]
    fn headers_become_properties() {
        let fields =
            Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Utf8, true)]);
        let parts: Vec<Box<dyn arrow::array::ArrayBuilder>> =
            vec![Box::new(StringBuilder::new()), Box::new(StringBuilder::new())];
        let mut headers = ListBuilder::new(StructBuilder::new(fields, parts));
        for (key, value) in [("k", Some("v")), ("k", None)] {
            headers.values().field_builder::<StringBuilder>(0).unwrap().append_value(key);
            headers.values().field_builder::<StringBuilder>(1).unwrap().append_option(value);
            headers.values().append(true);
        }
        headers.append(true);
        headers.append(false);
        let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let rows = rows(vec![("value", values), ("headers", Arc::new(headers.finish()))]);
        let messages = Columns::of(&rows.schema(), Some("t")).unwrap().read(&rows, Some("t")).unwrap();
        let of = |row| messages.get(row, 1, QoS::AtLeastOnce, false).properties.map(|found| found.user_properties);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!((of(0), of(1)), (Some(vec![pair("k", "v"), pair("k", "")]), None));
    }

    #[test]
    fn columns_and_rows_that_do_not_fit_are_named() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let topic = |topic: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![topic])) };
        for (columns, part) in [
            (vec![("v", Arc::clone(&texts))], "no column `value` among v"),
            (vec![("value", Arc::clone(&numbers))], "column `value` is Int32"),
            (vec![("value", Arc::clone(&texts))], "set option `topic`"),
            (vec![("value", Arc::clone(&texts)), ("topic", numbers)], "column `topic` is Int32"),
            (vec![("value", Arc::clone(&texts)), ("topic", topic(None))], "NULL as its `topic`"),
            (vec![("value", Arc::clone(&texts)), ("topic", topic(Some("a/#")))], "no `+` and no `#`"),
            (vec![("value", Arc::clone(&texts)), ("topic", topic(Some("a"))), ("headers", texts)], "column `headers`"),
        ] {
            let error = messages(&rows(columns), None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
