//! How much a batch takes.

use super::{World, in_partition, next, offset, records, rows};
use kafka_tests::Kafka;
use millstream_common::ReadLimit;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_limit_is_shared_by_how_far_partitions_are_behind() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("share", 3);
    kafka.produce(&topic, &in_partition(0, &["v"; 30])).unwrap();
    kafka.produce(&topic, &in_partition(1, &["v"; 10])).unwrap();
    let mut source = World::of(kafka, &topic, &[("maxOffsetsPerTrigger", "20")]).open();
    assert_eq!(source.read_limit(), ReadLimit::MaxRows(20));
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(first, offset(json!({ topic.as_str(): {"0": 15, "1": 5, "2": 0} })));
    assert_eq!(rows(source.as_mut(), None, &first).len(), 20);
    let metrics = source.metrics(Some(&first));
    let metric = |name: &str| metrics.get(name).map(String::as_str);
    assert_eq!(metric("minOffsetsBehindLatest"), Some("0"));
    assert_eq!(metric("maxOffsetsBehindLatest"), Some("15"));
    assert_eq!((metric("avgOffsetsBehindLatest"), metric("offsetsLost")), (Some("6.666666666666667"), None));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, offset(json!({ topic.as_str(): {"0": 30, "1": 10, "2": 0} })));
    let once = source.latest_offset(None, ReadLimit::AllAvailable).unwrap();
    assert_eq!(once, Some(second), "the trigger Once knows no limit");
}

#[test]
fn a_batch_waits_for_enough_records_or_long_enough() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("least", 1);
    let world = World::of(kafka, &topic, &[("minOffsetsPerTrigger", "3"), ("maxTriggerDelay", "5m")]);
    let mut source = world.open();
    kafka.produce(&topic, &records(&["a"])).unwrap();
    let first = next(source.as_mut(), None).unwrap();
    kafka.produce(&topic, &records(&["b", "c"])).unwrap();
    assert_eq!(next(source.as_mut(), Some(&first)), Some(first.clone()), "two are too few");
    world.clock.advance(Duration::from_secs(300));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:1=b", "0:2=c"], "five minutes are long enough");
    kafka.produce(&topic, &records(&["d", "e", "f"])).unwrap();
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third).len(), 3, "three are enough");
}
