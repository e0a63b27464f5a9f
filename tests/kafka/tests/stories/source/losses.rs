//! Records that Kafka no longer has: named to the offset, or counted.

use super::{World, next, offset, records, rows, try_rows};
use kafka_tests::Kafka;
use millstream_common::{Fault, Hint, describe_chain};
use serde_json::json;

#[test]
fn a_gap_of_retention_is_named_with_its_exact_range_or_counted() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("gap", 1);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 2);
    drop(source);
    kafka.produce(&topic, &records(&["c", "d", "e", "f"])).unwrap();
    kafka.delete_records_before(&topic, 0, 5).unwrap();

    let mut source = world.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    let error = try_rows(source.as_mut(), Some(&first), &second).unwrap_err();
    let text = describe_chain(&error);
    assert!(text.contains(&format!("offsets [2, 5) of partition 0 of topic `{topic}` are gone")), "{text}");
    assert!(text.contains("begins at offset 5 now"), "{text}");
    assert_eq!(error.fault(), Fault::Data);
    assert!(error.hint().unwrap().contains("failOnDataLoss"), "{error}");
    assert!(try_rows(source.as_mut(), Some(&first), &second).is_err(), "asking again does not help");
    drop(source);

    world.set("failOnDataLoss", "false");
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:5=f"]);
    assert_eq!(source.metrics(Some(&second)).get("offsetsLost").map(String::as_str), Some("3"));
    kafka.produce(&topic, &records(&["g"])).unwrap();
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third), ["0:6=g"], "the next range is whole again");
}

#[test]
fn a_range_that_is_gone_as_a_whole_is_an_empty_batch() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("gone", 2);
    kafka.produce(&topic, &records(&["a", "b", "c"])).unwrap();
    kafka.produce(&topic, &super::in_partition(1, &["x"])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    kafka.produce(&topic, &records(&["d", "e"])).unwrap();
    kafka.delete_records_before(&topic, 0, 4).unwrap();
    drop(source);
    world.set("failOnDataLoss", "false");
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), None, &first), ["1:0=x"], "the other partition is read");
    assert_eq!(source.metrics(None).get("offsetsLost").map(String::as_str), Some("3"));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:4=e"]);
    assert_eq!(source.metrics(None).get("offsetsLost").map(String::as_str), Some("4"));
}

#[test]
fn records_that_are_removed_behind_the_query_are_no_loss() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("behind", 1);
    kafka.produce(&topic, &records(&["a", "b", "c"])).unwrap();
    let mut source = World::of(kafka, &topic, &[]).open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 3);
    kafka.delete_records_before(&topic, 0, 3).unwrap();
    kafka.produce(&topic, &records(&["d"])).unwrap();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:3=d"]);
    assert!(!source.metrics(Some(&second)).contains_key("offsetsLost"));
}

#[test]
fn a_partition_that_is_found_late_must_begin_at_its_start() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("late", 1);
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    assert_eq!(next(source.as_mut(), None), None);
    kafka.add_partitions(&topic, 2).unwrap();
    kafka.produce(&topic, &super::in_partition(1, &["a", "b", "c"])).unwrap();
    kafka.delete_records_before(&topic, 1, 2).unwrap();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(end, offset(json!({ topic.as_str(): {"0": 0, "1": 3} })));
    let text = describe_chain(&try_rows(source.as_mut(), None, &end).unwrap_err());
    assert!(text.contains(&format!("offsets [0, 2) of partition 1 of topic `{topic}`")), "{text}");
    drop(source);
    world.set("failOnDataLoss", "false");
    assert_eq!(rows(world.open().as_mut(), None, &end), ["1:2=c"]);
    // What is gone takes no room in a batch.
    world.set("maxOffsetsPerTrigger", "1");
    let mut source = world.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(end, offset(json!({ topic.as_str(): {"0": 0, "1": 3} })));
    assert_eq!(rows(source.as_mut(), None, &end), ["1:2=c"]);
}

#[test]
fn a_long_gap_is_not_crossed_batch_by_batch() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("chasm", 1);
    kafka.produce(&topic, &records(&["v"; 1000])).unwrap();
    let options = [("failOnDataLoss", "false"), ("maxOffsetsPerTrigger", "10")];
    let mut source = World::of(kafka, &topic, &options).open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 10);
    kafka.delete_records_before(&topic, 0, 900).unwrap();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    // What was fetched ahead may still be had.
    let had = rows(source.as_mut(), Some(&first), &second).len();
    let mut at = second;
    let mut batches = 0;
    while at != offset(json!({ topic.as_str(): {"0": 1000} })) {
        let end = next(source.as_mut(), Some(&at)).unwrap();
        let read = rows(source.as_mut(), Some(&at), &end).len();
        assert!(read <= 10);
        at = end;
        batches += 1;
        assert!(batches < 100, "the gap is crossed in small steps");
    }
    let lost: usize = source.metrics(Some(&at)).get("offsetsLost").map_or(0, |lost| lost.parse().unwrap());
    assert!(lost <= 890 && (had == 10 || lost == 890), "{lost} of 890 are lost, {had} were fetched ahead");
}
