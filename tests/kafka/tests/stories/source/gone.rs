//! Topics and partitions that are removed, and topics that are made again.

use super::{World, next, offset, records, refusal, rows, try_rows};
use kafka_tests::Kafka;
use millstream_common::describe_chain;
use serde_json::json;

fn lost(source: &mut dyn millstream_source::Source) -> Option<String> {
    source.metrics(None).get("offsetsLost").cloned()
}

#[test]
fn a_topic_that_was_made_again_is_told_by_its_id_and_read_from_its_start() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("again", 1);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 2);
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    // More than the old one had: offsets alone tell nothing.
    kafka.produce(&topic, &records(&["A", "B", "C", "D"])).unwrap();
    let text = refusal(source.as_mut(), Some(&first));
    assert!(text.contains(&format!("offsets from 2 on of partition 0 of topic `{topic}`")), "{text}");
    assert!(text.contains("made again with another id"), "{text}");
    drop(source);
    let text = refusal(world.open().as_mut(), Some(&first));
    assert!(text.contains("made again"), "also by a new run: {text}");

    world.set("failOnDataLoss", "false");
    let mut source = world.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, offset(json!({ topic.as_str(): {"0": 4} })));
    assert_eq!(lost(source.as_mut()).as_deref(), Some("1"));
    drop(source);
    // The answer was not logged: it is the same again, also when there is more by now.
    kafka.produce(&topic, &records(&["E"])).unwrap();
    let mut source = world.open();
    assert_eq!(next(source.as_mut(), Some(&first)), Some(second.clone()));
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:0=A", "0:1=B", "0:2=C", "0:3=D"]);
    drop(source);
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), Some(&first), &second).len(), 4, "a batch that is run again has the same rows");
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third), ["0:4=E"]);
    assert_eq!(lost(source.as_mut()), None);
}

#[test]
fn a_new_topic_as_long_as_the_old_one_is_seen() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("equal", 1);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let world = World::of(kafka, &topic, &[("failOnDataLoss", "false")]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    kafka.produce(&topic, &records(&["A", "B"])).unwrap();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:0=A"]);
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third), ["0:1=B"]);
}

#[test]
fn a_topic_that_is_removed_is_named_or_left_behind() {
    let kafka = Kafka::shared();
    let (kept, removed) = (kafka.topic("kept", 1), kafka.topic("removed", 1));
    let both = format!("{kept},{removed}");
    for topic in [&kept, &removed] {
        kafka.produce(topic, &records(&["a"])).unwrap();
    }
    let mut world = World::of(kafka, &both, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 2);
    kafka.delete_topic(&removed).unwrap();
    let text = refusal(source.as_mut(), Some(&first));
    assert!(text.contains(&format!("offsets from 1 on of partition 0 of topic `{removed}`")), "{text}");
    drop(source);
    let error = describe_chain(&try_rows(world.open().as_mut(), None, &first).unwrap_err());
    assert!(error.contains(&format!("offsets [0, 1) of partition 0 of topic `{removed}`")), "{error}");

    world.set("failOnDataLoss", "false");
    kafka.produce(&kept, &records(&["b"])).unwrap();
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), None, &first), ["0:0=a"], "what is left of a batch that is run again");
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, offset(json!({ kept.as_str(): {"0": 2} })));
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:1=b"]);
    kafka.create_topic(&removed, 1, &[]).unwrap();
    kafka.produce(&removed, &records(&["new"])).unwrap();
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third), ["0:0=new"], "one that comes back begins at its start");
}

#[test]
fn what_vanishes_while_all_that_is_available_is_read_ends_the_query() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("vanishes", 1);
    kafka.produce(&topic, &records(&["a"])).unwrap();
    let mut source = World::of(kafka, &topic, &[("failOnDataLoss", "false")]).open();
    source.prepare_available_now().unwrap();
    kafka.delete_topic(&topic).unwrap();
    let text = refusal(source.as_mut(), None);
    assert!(text.contains(&format!("partition 0 of topic `{topic}` was there")), "{text}");
    kafka.create_topic(&topic, 1, &[]).unwrap();
    let text = refusal(source.as_mut(), None);
    assert!(text.contains("made again with another id"), "{text}");
    kafka.produce(&topic, &records(&["A", "B"])).unwrap();
    let text = refusal(source.as_mut(), None);
    assert!(text.contains("made again with another id"), "also when it has as much as was fixed: {text}");
}

#[test]
fn an_empty_topic_that_was_made_again_is_read_like_any_other() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("hollow", 1);
    let world = World::of(kafka, &topic, &[("failOnDataLoss", "false")]);
    let mut source = world.open();
    assert_eq!(next(source.as_mut(), None), None, "there is nothing");
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    assert_eq!(next(source.as_mut(), None), None, "and nothing again");
    kafka.produce(&topic, &records(&["A", "B"])).unwrap();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first), ["0:0=A", "0:1=B"]);
    drop(source);
    let mut source = world.open();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 2, "a new run reads the same");
    assert_eq!(next(source.as_mut(), Some(&first)), Some(first));
}

#[test]
fn a_topic_that_is_made_again_after_its_range_was_planned_is_not_taken_for_the_old_one() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("swapped", 1);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    kafka.produce(&topic, &records(&["A", "B", "C"])).unwrap();
    let text = describe_chain(&try_rows(source.as_mut(), None, &first).unwrap_err());
    assert!(text.contains(&format!("offsets [0, 2) of partition 0 of topic `{topic}` are gone")), "{text}");
    assert!(text.contains("made again with another id"), "{text}");
    drop(source);

    // Without a word of failure the rows of the old one are counted, and the new one is read from its start.
    world.files = std::sync::Arc::default();
    world.set("failOnDataLoss", "false");
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    kafka.produce(&topic, &records(&["x", "y", "z", "w"])).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first), [""; 0]);
    assert_eq!(lost(source.as_mut()).as_deref(), Some("3"));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:0=x", "0:1=y", "0:2=z", "0:3=w"]);
}

#[test]
fn a_topic_that_is_made_again_with_fewer_partitions_is_read_as_it_is() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("fewer", 3);
    for partition in 0..3 {
        kafka.produce(&topic, &super::in_partition(partition, &["a", "b"])).unwrap();
    }
    let world = World::with(
        kafka,
        &[("subscribePattern", &topic), ("startingOffsets", "earliest"), ("failOnDataLoss", "false")],
    );
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first).len(), 6);
    kafka.delete_topic(&topic).unwrap();
    kafka.create_topic(&topic, 1, &[]).unwrap();
    kafka.produce(&topic, &records(&["A", "B", "C"])).unwrap();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, offset(json!({ topic.as_str(): {"0": 3} })));
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:0=A", "0:1=B", "0:2=C"]);
    assert_eq!(lost(source.as_mut()).as_deref(), Some("3"), "one per partition, for nobody knows how much there was");
    let text = {
        let mut strict = World { files: std::sync::Arc::default(), ..world };
        strict.set("failOnDataLoss", "true");
        let mut source = strict.open();
        assert!(next(source.as_mut(), None).is_some());
        refusal(source.as_mut(), Some(&first))
    };
    for partition in [1, 2] {
        let named = format!("offsets from 2 on of partition {partition} of topic `{topic}` are gone");
        assert!(text.contains(&named), "{text}");
    }
}
