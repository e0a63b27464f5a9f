//! Records become rows, range by range.

use super::{World, in_partition, next, offset, records, rows};
use arrow::array::RecordBatch;
use kafka_tests::{Kafka, Record};
use millstream_source::connectors::kafka::KafkaSourceFactory;
use millstream_source::contract::{self, Subject};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_topic_keeps_the_contract_of_a_source() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("contract", 3);
    let world = World::with(kafka, &[("subscribe", &topic), ("includeHeaders", "true")]);
    let mut round = 0;
    let mut feed = || {
        round += 1;
        let record = |n: i32| Record {
            partition: Some(n % 3),
            key: (n % 2 == 0).then(|| vec![n as u8]),
            headers: vec![("n".into(), Some(vec![n as u8]))],
            timestamp: Some(1_700_000_000_000 + i64::from(n)),
            ..Record::of(&format!("{round}-{n}"))
        };
        kafka.produce(&topic, &(0..7).map(record).collect::<Vec<_>>()).unwrap();
    };
    let factory = Arc::new(KafkaSourceFactory);
    let clock = Arc::clone(&world.clock);
    contract::source(&mut Subject { factory, spec: world.spec, feed: &mut feed, clock, replays_after_restart: true });
}

#[test]
fn a_row_has_all_that_a_record_has() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("columns", 2);
    let full = Record {
        partition: Some(1),
        key: Some(b"k".to_vec()),
        timestamp: Some(1_700_000_000_123),
        headers: vec![("a".into(), Some(b"1".to_vec())), ("b".into(), None)],
        ..Record::of("v")
    };
    let empty = Record { partition: Some(0), timestamp: Some(5), ..Record::default() };
    kafka.produce(&topic, &[full, empty]).unwrap();
    let mut source = World::of(kafka, &topic, &[("includeHeaders", "true")]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(end, offset(json!({ topic.as_str(): {"0": 1, "1": 1} })), "an offset is Spark's JSON");
    let lists = source.read(None, &end, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(
        contract::text(&lists),
        [
            format!("-|-|{topic}|0|0|1970-01-01T00:00:00.005|0|-"),
            format!("6b|76|{topic}|1|0|2023-11-14T22:13:20.123|0|[{{key: a, value: 31}}, {{key: b, value: -}}]"),
        ]
    );
    assert_eq!(source.description(), format!("KafkaV2[Subscribe[{topic}]]"));

    let appended = format!("{topic}-appended");
    kafka.create_topic(&appended, 1, &[("message.timestamp.type", "LogAppendTime")]).unwrap();
    kafka.produce(&appended, &records(&["v"])).unwrap();
    let mut source = World::of(kafka, &appended, &[]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(contract::text(&source.read(None, &end, &[6]).unwrap()), ["1"], "the time is that of the broker");
}

#[test]
fn a_query_goes_on_where_its_checkpoint_says() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("restart", 1);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    drop(source);
    kafka.produce(&topic, &records(&["c", "d"])).unwrap();

    // Where a query begins is decided once.
    world.set("startingOffsets", "latest");
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), None, &first), ["0:0=a", "0:1=b"], "the range that was logged is read again");
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:2=c", "0:3=d"]);
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second.clone()), "nothing is new");
    assert_eq!(rows(source.as_mut(), None, &second), ["0:0=a", "0:1=b", "0:2=c", "0:3=d"]);
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:2=c", "0:3=d"], "any range, in any order");
}

#[test]
fn partitions_and_topics_that_come_later_are_read_from_their_start() {
    let kafka = Kafka::shared();
    let first = kafka.topic("later", 1);
    let second = format!("{first}-b");
    kafka.produce(&first, &records(&["old"])).unwrap();
    let world = World::with(kafka, &[("subscribePattern", &format!("{first}.*"))]);
    let mut source = world.open();
    assert_eq!(next(source.as_mut(), None), None, "a new stream begins at the end");
    kafka.add_partitions(&first, 2).unwrap();
    kafka.create_topic(&second, 1, &[]).unwrap();
    kafka.produce(&first, &in_partition(1, &["x"])).unwrap();
    kafka.produce(&second, &records(&["y"])).unwrap();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(end, offset(json!({ first.as_str(): {"0": 1, "1": 1}, second.as_str(): {"0": 1} })));
    assert_eq!(rows(source.as_mut(), None, &end), ["0:0=y", "1:0=x"]);
}

#[test]
fn assigned_partitions_are_read_and_no_others() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("assigned", 3);
    for partition in 0..3 {
        kafka.produce(&topic, &in_partition(partition, &["v"])).unwrap();
    }
    let assign = format!("{{\"{topic}\":[0,2]}}");
    let mut source = World::with(kafka, &[("assign", &assign), ("startingOffsets", "earliest")]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["0:0=v", "2:0=v"]);
    let assign = format!("{{\"{topic}\":[0,7]}}");
    let mut source = World::with(kafka, &[("assign", &assign)]).open();
    let text = super::refusal(source.as_mut(), None);
    assert!(text.contains(&format!("there is no partition 7 of topic `{topic}`")), "{text}");
}

#[test]
fn partitions_are_read_side_by_side_and_cut_as_asked() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("many", 4);
    let all: Vec<Record> = (0..40_000).map(|n| in_partition(n % 4, &[&n.to_string()]).remove(0)).collect();
    kafka.produce(&topic, &all).unwrap();
    let read = |options: &[(&str, &str)]| {
        let mut source = World::of(kafka, &topic, options).open();
        let end = next(source.as_mut(), None).unwrap();
        let lists = source.read(None, &end, &[3, 4]).unwrap();
        let whole = contract::text(&lists);
        assert_eq!(whole.len(), 40_000);
        assert!(whole.windows(2).all(|pair| pair[0] != pair[1]), "no row is there twice");
        assert_eq!(whole, contract::text(&source.read(None, &end, &[3, 4]).unwrap()));
        let sizes = |list: &Vec<RecordBatch>| list.iter().map(RecordBatch::num_rows).sum();
        lists.iter().map(sizes).collect::<Vec<usize>>()
    };
    assert_eq!(read(&[]), [10_000; 4]);
    assert_eq!(read(&[("minPartitions", "8")]), [5_000; 8]);
    assert_eq!(read(&[("maxRecordsPerPartition", "4000")]).len(), 12);
}
