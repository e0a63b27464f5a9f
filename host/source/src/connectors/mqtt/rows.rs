//! Messages to Arrow, as they come: a batch of them is what a file of the spool holds.

use crate::headers::{HeaderBuilder, headers_field};
use arrow::array::{
    BinaryBuilder, BooleanBuilder, Int32Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use millstream_client::mqtt::packets::Publish;
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("topic", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
        Field::new("qos", DataType::Int32, true),
        Field::new("retained", DataType::Boolean, true),
        Field::new("duplicate", DataType::Boolean, true),
        Field::new("timestamp", time, true),
        headers_field(),
    ]))
});

/// The columns of messages: `topic STRING, value BINARY, qos INT, retained BOOLEAN, duplicate BOOLEAN, timestamp TIMESTAMP,
/// headers ARRAY<STRUCT<key: STRING, value: BINARY>>`.
pub(super) fn schema() -> SchemaRef {
    Arc::clone(&SCHEMA)
}

/// What no row can hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TopicIsNoText;

/// Builders of all columns.
pub(super) struct Columns {
    topics: StringBuilder,
    values: BinaryBuilder,
    qos: Int32Builder,
    retained: BooleanBuilder,
    duplicates: BooleanBuilder,
    times: TimestampMicrosecondBuilder,
    headers: HeaderBuilder,
}

impl Columns {
    pub(super) fn new() -> Self {
        Self {
            topics: StringBuilder::new(),
            values: BinaryBuilder::new(),
            qos: Int32Builder::new(),
            retained: BooleanBuilder::new(),
            duplicates: BooleanBuilder::new(),
            times: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            headers: HeaderBuilder::new(),
        }
    }

    /// Adds a message that came at a time, in microseconds since 1970. Answers how many bytes it has.
    pub(super) fn append(&mut self, message: &Publish, micros: i64) -> Result<usize, TopicIsNoText> {
        self.topics.append_value(std::str::from_utf8(&message.topic).map_err(|_| TopicIsNoText)?);
        self.values.append_value(&message.payload);
        self.qos.append_value(message.qos as i32);
        self.retained.append_value(message.retain);
        self.duplicates.append_value(message.dup);
        self.times.append_value(micros);
        let properties = message.properties.as_ref().map_or(&[][..], |properties| &properties.user_properties);
        let headers = properties.iter().map(|(key, value)| (key.as_str(), Some(value.as_bytes())));
        Ok(self.headers.append(headers) + message.topic.len() + message.payload.len())
    }

    /// The rows of all that was added since the last time.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(
            schema(),
            vec![
                Arc::new(self.topics.finish()),
                Arc::new(self.values.finish()),
                Arc::new(self.qos.finish()),
                Arc::new(self.retained.finish()),
                Arc::new(self.duplicates.finish()),
                Arc::new(self.times.finish()),
                self.headers.finish(),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::lines;
    use millstream_client::mqtt::packets::{PublishProperties, QoS};

    #[test]
    fn a_message_is_a_row() {
        let mut columns = Columns::new();
        let mut message = Publish::new("a/b", QoS::AtLeastOnce, "hot", None);
        columns.append(&message, 1_500_000).unwrap();
        (message.retain, message.dup) = (true, true);
        let user_properties = vec![("k".to_owned(), "v".to_owned()), ("k".to_owned(), "w".to_owned())];
        message.properties = Some(PublishProperties { user_properties, ..Default::default() });
        columns.append(&message, 0).unwrap();
        let rows = columns.finish().unwrap();
        assert_eq!(
            lines(&rows),
            [
                "a/b|686f74|1|false|false|1970-01-01T00:00:01.500|-",
                "a/b|686f74|1|true|true|1970-01-01T00:00:00|[{key: k, value: 76}, {key: k, value: 77}]"
            ]
        );
        assert_eq!(columns.finish().unwrap().num_rows(), 0);
    }

    #[test]
    fn a_topic_that_is_no_text_is_refused() {
        let mut message = Publish::new("a", QoS::AtMostOnce, "", None);
        message.topic = vec![0xff].into();
        assert_eq!(Columns::new().append(&message, 0), Err(TopicIsNoText));
    }
}
