//! Rows become records, as the contract of a sink wants it.

use super::{add, open, query, rows, spec, text, values};
use arrow::array::{Array, ArrayRef, BinaryArray, Int32Array, ListArray, StringArray, StringViewArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use kafka_tests::{Isolation, Kafka, Record};
use millstream_sink::connectors::kafka::KafkaSinkFactory;
use millstream_sink::contract::{self, Subject};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn batches_are_written_exactly_once() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("contract", 3);
    let (spec, factory) = (spec(kafka, &[("topic", &topic)]), Arc::new(KafkaSinkFactory));
    let mut written = || kafka.values(&topic);
    contract::sink(&mut Subject { factory, spec, query: query(), written: Some(&mut written), counts_once: true });
}

#[test]
fn batches_are_written_at_least_once() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("contract", 3);
    let spec = spec(kafka, &[("topic", &topic), ("deliveryGuarantee", "at-least-once")]);
    let mut written = || kafka.values(&topic);
    let (query, factory) = (query(), Arc::new(KafkaSinkFactory));
    let subject = Subject { factory, spec: spec.clone(), query, written: Some(&mut written), counts_once: false };
    contract::sink(&mut { subject });
    let mut sink = open(&spec, query).unwrap();
    assert_eq!(add(sink.as_mut(), 3, &values(&["d"])).unwrap(), 1);
    assert_eq!(kafka.values(&topic), ["a", "b", "c", "d", "d"], "a batch that is written again is there again");
}

#[test]
fn every_column_becomes_its_part_of_a_record() {
    let kafka = Kafka::shared();
    let (one, two) = (kafka.topic("one", 3), kafka.topic("two", 1));
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["h", "i"]));
    let entry_values: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"x"), None]));
    let (key, value) = (Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true));
    let entries = StructArray::new(vec![key, value].into(), vec![keys, entry_values], None);
    let entry = Arc::new(Field::new("item", entries.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths([2, 0, 0]);
    let headers = ListArray::new(entry, lengths, Arc::new(entries), Some(NullBuffer::from(vec![true, false, true])));
    let rows = rows(vec![
        ("topic", Arc::new(StringViewArray::from(vec![one.as_str(), &two, &one])) as ArrayRef),
        ("partition", Arc::new(Int32Array::from(vec![Some(2), None, Some(0)]))),
        ("key", Arc::new(StringArray::from(vec![Some("k"), None, Some("")]))),
        ("value", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"v"), None, Some(b"")]))),
        ("headers", Arc::new(headers)),
        ("other", Arc::new(Int32Array::from(vec![1, 2, 3]))),
    ]);
    let mut sink = open(&spec(kafka, &[("markerTopic", &two)]), query()).unwrap();
    assert_eq!(add(sink.as_mut(), 0, &rows).unwrap(), 3);

    let plain = |topic: &str| {
        let mut records = kafka.read(topic, Isolation::Committed);
        records.iter_mut().for_each(|record| record.timestamp = None);
        records
    };
    let header = |key: &str, value: Option<&[u8]>| (key.to_owned(), value.map(<[u8]>::to_vec));
    let first = Record {
        partition: Some(2),
        key: Some(b"k".to_vec()),
        value: Some(b"v".to_vec()),
        headers: vec![header("h", Some(b"x")), header("i", None)],
        ..Record::default()
    };
    let third = Record { partition: Some(0), key: Some(vec![]), value: Some(vec![]), ..Record::default() };
    assert_eq!(plain(&one), [third, first]);
    assert_eq!(plain(&two), [Record { partition: Some(0), ..Record::default() }]);

    let all_to_one = spec(kafka, &[("topic", &two)]);
    let mut sink = open(&all_to_one, query()).unwrap();
    assert_eq!(add(sink.as_mut(), 0, &rows.slice(1, 1)).unwrap(), 1, "the option goes before the column");
    assert_eq!(plain(&two).len(), 2);
}

#[test]
fn rows_with_one_key_go_where_javas_clients_put_them() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("keys", 10);
    let keys = ["a", "hello", "42"];
    let keyed = rows(vec![
        ("key", Arc::new(StringArray::from(keys.to_vec())) as ArrayRef),
        ("value", Arc::new(StringArray::from(keys.to_vec()))),
    ]);
    let mut sink = open(&spec(kafka, &[("topic", &topic)]), query()).unwrap();
    add(sink.as_mut(), 0, &keyed).unwrap();
    for record in kafka.read(&topic, Isolation::Committed) {
        assert_eq!(record.partition, Some(murmur2(record.key.as_deref().unwrap()) % 10), "{record:?}");
    }
}

/// The hash of Java's clients, without its sign.
fn murmur2(data: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(M);
        word = (word ^ (word >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ word;
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    ((hash ^ (hash >> 15)) & 0x7fff_ffff) as i32
}

#[test]
fn a_batch_that_is_larger_than_the_buffer_arrives_whole() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("large", 2);
    let numbers: Vec<String> = (0..30_000).map(|number| format!("{number:0>100}")).collect();
    let large = rows(vec![("value", Arc::new(StringArray::from(numbers.clone())))]);
    for guarantee in ["exactly-once", "at-least-once"] {
        let options = [("topic", topic.as_str()), ("deliveryGuarantee", guarantee), ("kafka.buffer.memory", "300000")];
        let mut sink = open(&spec(kafka, &options), query()).unwrap();
        assert_eq!(add(sink.as_mut(), 0, &large).unwrap(), 30_000);
    }
    let twice: Vec<String> = numbers.into_iter().flat_map(|number| [number.clone(), number]).collect();
    assert_eq!(kafka.values(&topic), twice);
}

#[test]
fn a_topic_that_is_not_there_is_named_at_once() {
    let kafka = Kafka::shared();
    let begin = Instant::now();
    let text = text(open(&spec(kafka, &[("topic", "nowhere")]), query()).map(|sink| sink.description()));
    assert!(text.contains("topic `nowhere`") && begin.elapsed() < Duration::from_secs(40), "{text}");
}
