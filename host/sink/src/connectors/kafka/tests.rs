//! What is refused before a broker is asked; everything else is tested against brokers in `tests/kafka`.

use super::*;
use crate::{SinkError, SinkFactory, SinkSpec};
use arrow::array::{Array, ArrayRef, BinaryArray, Int32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use columns::Columns;
use config::{Delivery, KafkaConfig};
use millstream_common::{Options, QueryId};
use std::sync::Arc;

fn spec(options: &[(&str, &str)]) -> SinkSpec {
    let options = options.iter().fold(Options::new(), |options, (key, value)| options.with(*key, *value));
    SinkSpec { format: FORMAT.into(), options: options.with("kafka.bootstrap.servers", "localhost:9092") }
}

fn refusal(options: &[(&str, &str)]) -> String {
    KafkaSinkFactory.check(&spec(options)).unwrap_err().to_string()
}

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>()))
}

#[test]
fn a_topic_is_all_that_must_be_said() {
    let config = KafkaConfig::new(&spec(&[("topic", "counts")])).unwrap();
    let Delivery::ExactlyOnce(terms) = &config.delivery else { panic!("{config:?}") };
    let query = QueryId(uuid::Uuid::from_u128(1));
    assert_eq!(terms.transaction(query), format!("millstream-{query}"));
    assert_eq!((terms.group(query), terms.marker_topic.as_str()), (format!("millstream-sink-{query}"), "counts"));
    let producer = config.producer(Some("id")).unwrap();
    assert_eq!(producer.get("partitioner"), Some("murmur2_random"));
    assert_eq!(producer.get("transactional.id"), Some("id"));
    assert_eq!(producer.get("queue.buffering.max.kbytes"), Some("65536"));

    let small = [("topic", "t"), ("kafka.buffer.memory", "2000"), ("deliveryGuarantee", "At-Least-Once")];
    let config = KafkaConfig::new(&spec(&small)).unwrap();
    assert_eq!(config.delivery, Delivery::AtLeastOnce);
    let producer = config.producer(None).unwrap();
    assert_eq!(producer.get("queue.buffering.max.kbytes"), Some("2"));
    assert_eq!(producer.get("enable.idempotence"), Some("true"));
    let config = KafkaConfig::new(&spec(&[("deliveryGuarantee", "at-least-once"), ("kafka.acks", "1")])).unwrap();
    assert_eq!(config.producer(None).unwrap().get("enable.idempotence"), None);
}

#[test]
fn options_that_do_not_fit_are_named_with_the_way_out() {
    for (options, part) in [
        (&[][..], "`markerTopic (or topic)`"),
        (&[("topic", "a b")], "`a b`"),
        (&[("topic", "t"), ("path", "x")], "`path` is unknown"),
        (&[("topic", "t"), ("deliveryGuarantee", "twice")], "write exactly-once or at-least-once"),
        (&[("topic", "t"), ("onLostMarker", "shrug")], "write fail or write"),
        (&[("topic", "t"), ("transactionalIdPrefix", " ")], "permissions"),
        (&[("topic", "t"), ("kafka.transactional.id", "mine")], "transactionalIdPrefix"),
        (&[("topic", "t"), ("kafka.acks", "1")], "at-least-once"),
        (&[("topic", "t"), ("kafka.enable.idempotence", "false")], "at-least-once"),
        (&[("topic", "t"), ("kafka.max.block.ms", "soon")], "number above 0"),
        (&[("topic", "t"), ("includeHeaders", "maybe")], "true or false"),
        (&[("topic", "t"), ("deliveryGuarantee", "at-least-once"), ("markerTopic", "m")], "exactly-once"),
    ] {
        let text = refusal(options);
        assert!(text.contains(part), "{options:?}: {text}");
    }
}

#[test]
fn columns_that_do_not_fit_are_named_before_the_start() {
    let check = |columns: &[(&str, DataType)], options: &[(&str, &str)]| {
        KafkaSinkFactory.check_columns(&spec(options), &schema(columns)).map_err(|error| error.to_string())
    };
    let (to, by_column) = (&[("topic", "t")][..], &[("markerTopic", "m")][..]);
    let (text, bytes) = (("value", DataType::Utf8), ("value", DataType::Binary));
    check(std::slice::from_ref(&text), to).unwrap();
    check(&[bytes, ("key", DataType::Utf8View), ("other", DataType::Float64)], to).unwrap();
    for (columns, options, part) in [
        (vec![("v", DataType::Utf8)], to, "no column `value` among v"),
        (vec![("value", DataType::Int64)], to, "column `value` is Int64, and it must be string or binary"),
        (vec![text.clone(), ("key", DataType::Int32)], to, "column `key` is Int32"),
        (vec![text.clone()], by_column, "set option `topic`, or select a column `topic`"),
        (vec![text.clone(), ("topic", DataType::Binary)], by_column, "column `topic` is Binary"),
        (vec![text.clone(), ("partition", DataType::Int64)], to, "column `partition` is Int64, and it must be int"),
        (vec![text, ("headers", DataType::Utf8)], to, "array<struct<key: string, value: binary>>"),
    ] {
        let error = check(&columns, options).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn rows_give_the_parts_of_records() {
    let keys: ArrayRef = Arc::new(StringArray::from(vec![Some("h"), None]));
    let values: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"x")]));
    let (key, value) = (Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true));
    let entries = StructArray::new(vec![key, value].into(), vec![keys, values], None);
    let entry = Arc::new(Field::new("item", entries.data_type().clone(), true));
    let headers = ListArray::new(entry, OffsetBuffer::from_lengths([1, 0, 1]), Arc::new(entries), None);
    let rows = RecordBatch::try_from_iter([
        ("value", Arc::new(StringArray::from(vec![Some("a"), None, Some("")])) as ArrayRef),
        ("key", Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"k"), None]))),
        ("topic", Arc::new(StringArray::from(vec![Some("t"), None, Some("u")]))),
        ("partition", Arc::new(Int32Array::from(vec![Some(1), None, Some(-1)]))),
        ("headers", Arc::new(headers)),
    ])
    .unwrap();
    let columns = Columns::of(&rows.schema(), None).unwrap();
    let parts = columns.read(&rows).unwrap();
    assert_eq!((parts.value(0), parts.value(1), parts.value(2)), (Some(&b"a"[..]), None, Some(&b""[..])));
    assert_eq!((parts.key(0), parts.key(1)), (None, Some(&b"k"[..])));
    assert_eq!((parts.topic(0).unwrap(), parts.topic(2).unwrap()), ("t", "u"));
    assert!(matches!(parts.topic(1), Err(SinkError::Schema { .. })));
    assert_eq!((parts.partition(0).unwrap(), parts.partition(1).unwrap()), (Some(1), None));
    assert!(matches!(parts.partition(2), Err(SinkError::Schema { .. })));
    use rdkafka::message::Headers;
    let first = parts.headers(0).unwrap().unwrap();
    assert_eq!((first.count(), first.get(0).key, first.get(0).value), (1, "h", None));
    assert_eq!(parts.headers(1).unwrap().unwrap().count(), 0);
    assert!(parts.headers(2).is_err(), "a header has a key");
}
