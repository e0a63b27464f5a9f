//! Runs of one query that overlap, and queries whose last batch nobody knows.

use super::{add, open, query, spec, text, values};
use kafka_tests::{Isolation, Kafka, Zombie};
use millstream_sink::SinkError;

#[test]
fn an_older_run_that_still_lives_writes_nothing_and_disturbs_nobody() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("fence", 2);
    let (spec, query) = (spec(kafka, &[("topic", &topic)]), query());
    let mut old = open(&spec, query).unwrap();
    add(old.as_mut(), 0, &values(&["a"])).unwrap();
    let mut young = open(&spec, query).unwrap();
    assert_eq!(add(young.as_mut(), 0, &values(&["a"])).unwrap(), 0, "the younger run knows what the older wrote");

    let refused = add(old.as_mut(), 1, &values(&["zombie"]));
    assert!(matches!(refused, Err(SinkError::TakenOver { .. })), "{refused:?}");
    assert_eq!(add(young.as_mut(), 1, &values(&["b"])).unwrap(), 1);
    for batch in [1, 2] {
        let error = text(add(old.as_mut(), batch, &values(&["zombie"])));
        assert!(error.contains(&format!("another run of query {query} has taken over")), "{error}");
    }
    assert_eq!(add(young.as_mut(), 2, &values(&["c"])).unwrap(), 1);
    assert_eq!(kafka.values(&topic), ["a", "b", "c"]);
}

#[test]
fn queries_with_one_topic_do_not_lock_each_other_out() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("shared", 2);
    let spec = spec(kafka, &[("topic", &topic)]);
    let (mut one, mut two) = (open(&spec, query()).unwrap(), open(&spec, query()).unwrap());
    for batch in 0..2 {
        add(one.as_mut(), batch, &values(&["one"])).unwrap();
        add(two.as_mut(), batch, &values(&["two"])).unwrap();
    }
    assert_eq!(kafka.values(&topic), ["one", "one", "two", "two"]);
}

#[test]
fn a_query_whose_last_batch_is_not_known_goes_on_only_when_told_to() {
    let kafka = Kafka::shared();
    let (topic, other) = (kafka.topic("lost", 1), kafka.topic("other", 1));
    let query = query();
    let mut sink = open(&spec(kafka, &[("topic", &topic)]), query).unwrap();
    add(sink.as_mut(), 0, &values(&["a"])).unwrap();
    drop(sink);
    let mut sink = open(&spec(kafka, &[("topic", &other)]), query).unwrap();
    let refused = add(sink.as_mut(), 1, &values(&["b"]));
    assert!(matches!(refused, Err(SinkError::Elsewhere { .. })), "{refused:?}");
    let mut sink = open(&spec(kafka, &[("topic", &other), ("onLostMarker", "write")]), query).unwrap();
    assert_eq!(add(sink.as_mut(), 1, &values(&["b"])).unwrap(), 1);
    assert_eq!(add(sink.as_mut(), 1, &values(&["b"])).unwrap(), 0);
    assert_eq!(kafka.values(&other), ["b"]);
}

#[test]
fn what_a_killed_run_left_open_is_ended_by_the_next() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("left", 1);
    let (spec, query) = (spec(kafka, &[("topic", &topic)]), query());
    // As a run that dies in the middle: its transaction stays open at the broker.
    let id = format!("millstream-{query}");
    let producer: rdkafka::producer::BaseProducer = kafka.client().set("transactional.id", id).create().unwrap();
    use rdkafka::producer::Producer;
    let patience = std::time::Duration::from_secs(30);
    producer.init_transactions(patience).unwrap();
    producer.begin_transaction().unwrap();
    kafka.produce_by(&producer, &topic, &[kafka_tests::Record::of("half")]).unwrap();
    producer.flush(patience).unwrap();
    assert_eq!(kafka.read(&topic, Isolation::Stable), []);

    let mut sink = open(&spec, query).unwrap();
    add(sink.as_mut(), 0, &values(&["whole"])).unwrap();
    assert_eq!(kafka.values(&topic), ["whole"]);
    assert_eq!(kafka.read(&topic, Isolation::Uncommitted).len(), 2);
    drop(producer);
}

#[test]
fn an_offset_that_a_killed_run_sent_too_late_holds_up_nobody() {
    // Brokers that ask whether a transaction is open let it through in rare cases only.
    let properties = [("transaction.partition.verification.enable", "false")];
    let Some(kafka) = Kafka::of_own_with(1, &properties) else { return };
    let topic = kafka.topic("late", 1);
    let (spec, query) = (spec(&kafka, &[("topic", &topic)]), query());
    let mut killed = open(&spec, query).unwrap();
    add(killed.as_mut(), 0, &values(&["a"])).unwrap();
    drop(killed);
    let (transaction, group) = (format!("millstream-{query}"), format!("millstream-sink-{query}"));
    kafka.leave_hanging(Zombie { transaction: &transaction, group: &group, topic: &topic, offset: 7 }).unwrap();
    assert_eq!(last_offset(&kafka, &group, &topic, Isolation::Uncommitted), Ok(1));
    let held = last_offset(&kafka, &group, &topic, Isolation::Stable);
    assert_eq!(held, Err(rdkafka::types::RDKafkaErrorCode::OperationTimedOut), "the offset does not hang");

    let mut next = open(&spec, query).unwrap();
    assert_eq!(add(next.as_mut(), 0, &values(&["a"])).unwrap(), 0);
    assert_eq!(add(next.as_mut(), 1, &values(&["b"])).unwrap(), 1);
    assert_eq!(last_offset(&kafka, &group, &topic, Isolation::Stable), Ok(2));
    assert_eq!(kafka.values(&topic), ["a", "b"]);
}

/// What a plain client sees as the offset of a group.
fn last_offset(
    kafka: &Kafka,
    group: &str,
    topic: &str,
    isolation: Isolation,
) -> Result<i64, rdkafka::types::RDKafkaErrorCode> {
    use rdkafka::consumer::{BaseConsumer, Consumer};
    let level = match isolation {
        Isolation::Stable | Isolation::Committed => "read_committed",
        Isolation::Uncommitted => "read_uncommitted",
    };
    let consumer: BaseConsumer = kafka.client().set("group.id", group).set("isolation.level", level).create().unwrap();
    let mut list = rdkafka::TopicPartitionList::new();
    list.add_partition(topic, 0);
    let list = consumer.committed_offsets(list, std::time::Duration::from_secs(3));
    let list = list.map_err(|error| error.rdkafka_error_code().unwrap())?;
    Ok(list.find_partition(topic, 0).unwrap().offset().to_raw().unwrap())
}
