//! Where queries begin and end.

use super::{World, in_partition, next, offset, records, refusal, rows};
use kafka_tests::{Kafka, Record};
use millstream_common::describe_chain;
use millstream_source::SourceFactory;
use millstream_source::connectors::kafka::KafkaSourceFactory;
use serde_json::json;

/// Partition 0 has records of the times 1000, 2000, 3000; partition 1 one of 1500.
fn timed(kafka: &Kafka) -> String {
    let topic = kafka.topic("times", 2);
    let record = |partition: i32, time: i64| Record {
        partition: Some(partition),
        timestamp: Some(time),
        ..Record::of(&time.to_string())
    };
    kafka.produce(&topic, &[record(0, 1000), record(0, 2000), record(0, 3000), record(1, 1500)]).unwrap();
    topic
}

#[test]
fn a_stream_begins_at_offsets_per_partition() {
    let kafka = Kafka::shared();
    let topic = timed(kafka);
    let json = format!("{{\"{topic}\":{{\"0\":1,\"1\":-1}}}}");
    let mut source = World::of(kafka, &topic, &[("startingOffsets", &json)]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["0:1=2000", "0:2=3000"]);
    let json = format!("{{\"{topic}\":{{\"0\":-1,\"1\":-2}}}}");
    let mut source = World::of(kafka, &topic, &[("startingOffsets", &json)]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["1:0=1500"]);

    let json = format!("{{\"{topic}\":{{\"0\":1}}}}");
    let text = refusal(World::of(kafka, &topic, &[("startingOffsets", &json)]).open().as_mut(), None);
    assert!(text.contains("startingOffsets") && text.contains(&format!("leaves out {topic}-1")), "{text}");
    let json = format!("{{\"{topic}\":{{\"0\":100,\"1\":0}}}}");
    let mut world = World::of(kafka, &topic, &[("startingOffsets", &json)]);
    let text = refusal(world.open().as_mut(), None);
    assert!(text.contains("offsets [3, 100) of partition 0"), "{text}");
    world.set("failOnDataLoss", "false");
    let mut source = world.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end).len(), 4, "an offset that is not there is the earliest");
}

#[test]
fn a_stream_begins_at_times() {
    let kafka = Kafka::shared();
    let topic = timed(kafka);
    let mut source = World::of(kafka, &topic, &[("startingTimestamp", "1500")]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["0:1=2000", "0:2=3000", "1:0=1500"]);
    let json = format!("{{\"{topic}\":{{\"0\":3000,\"1\":0}}}}");
    let mut source = World::of(kafka, &topic, &[("startingOffsetsByTimestamp", &json)]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["0:2=3000", "1:0=1500"]);

    let mut world = World::of(kafka, &topic, &[("startingTimestamp", "1600")]);
    let text = refusal(world.open().as_mut(), None);
    assert!(text.contains(&format!("partition 1 of topic `{topic}` has no record from 1600 on")), "{text}");
    assert!(text.contains("startingOffsetsByTimestampStrategy"), "{text}");
    world.set("startingOffsetsByTimestampStrategy", "latest");
    let mut source = world.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &end), ["0:1=2000", "0:2=3000"]);
}

#[test]
fn a_batch_query_reads_from_its_beginning_to_its_end() {
    let kafka = Kafka::shared();
    let topic = timed(kafka);
    let read = |options: &[(&str, &str)]| {
        let world = World::with(kafka, &[&[("subscribe", topic.as_str())], options].concat());
        let mut source = world.open_bounded().unwrap();
        kafka.produce(&topic, &in_partition(1, &["too late"])).unwrap();
        let end = next(source.as_mut(), None);
        end.map(|end| rows(source.as_mut(), None, &end)).unwrap_or_default()
    };
    assert_eq!(read(&[]), ["0:0=1000", "0:1=2000", "0:2=3000", "1:0=1500"], "all that was there");
    let json = format!("{{\"{topic}\":{{\"0\":2,\"1\":1}}}}");
    assert_eq!(read(&[("endingOffsets", &json)]), ["0:0=1000", "0:1=2000", "1:0=1500"]);
    assert_eq!(read(&[("endingTimestamp", "1500"), ("startingTimestamp", "500")]), ["0:0=1000"]);
    let json = format!("{{\"{topic}\":{{\"0\":3000,\"1\":1500}}}}");
    assert_eq!(read(&[("endingOffsetsByTimestamp", &json)]), ["0:0=1000", "0:1=2000"]);
    assert!(
        read(&[("startingTimestamp", "1000"), ("endingTimestamp", "900")]).is_empty(),
        "an end before the beginning"
    );
}

#[test]
fn what_has_no_sense_in_a_stream_or_in_a_batch_query_is_refused() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("refused", 1);
    let world = World::of(kafka, &topic, &[("endingOffsets", "latest")]);
    let error = KafkaSourceFactory.open(&world.spec, world.context()).err().unwrap();
    assert!(error.to_string().contains("a stream has no end"), "{error}");
    let world = World::of(kafka, &topic, &[("startingOffsets", "latest")]);
    let error = world.open_bounded().err().unwrap();
    assert!(error.to_string().contains("begins at the end"), "{error}");
    let json = format!("{{\"{topic}\":{{\"0\":50}}}}");
    let error = World::of(kafka, &topic, &[("endingOffsets", &json)]).open_bounded().err().unwrap();
    assert!(describe_chain(&error).contains("offsets [0, 50) of partition 0"), "{error}");
    let error = World::with(kafka, &[("subscribe", "nowhere")]).open_bounded().err().unwrap();
    assert!(describe_chain(&error).contains("there is no topic `nowhere`"), "a query over nothing: {error}");
}

#[test]
fn what_is_available_now_is_fixed_once() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("now", 1);
    kafka.produce(&topic, &records(&["a", "b", "c"])).unwrap();
    let mut source = World::of(kafka, &topic, &[("maxOffsetsPerTrigger", "2")]).open();
    source.prepare_available_now().unwrap();
    kafka.produce(&topic, &records(&["d"])).unwrap();
    kafka.add_partitions(&topic, 2).unwrap();
    kafka.produce(&topic, &in_partition(1, &["e"])).unwrap();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(first, offset(json!({ topic.as_str(): {"0": 2} })));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, offset(json!({ topic.as_str(): {"0": 3} })));
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second));
}
