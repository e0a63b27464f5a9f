//! Offsets without records: marks of transactions, and what was aborted.

use super::{World, next, offset, records, rows};
use kafka_tests::Kafka;
use rdkafka::producer::{BaseProducer, Producer};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn committed_records_alone_are_read_where_that_is_asked_for() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("committed", 1);
    kafka.produce_in_transaction(&topic, &records(&["a", "b"]), true).unwrap();
    kafka.produce_in_transaction(&topic, &records(&["x", "y"]), false).unwrap();
    kafka.produce_in_transaction(&topic, &records(&["c"]), true).unwrap();
    // a b mark x y mark c mark
    let whole = offset(json!({ topic.as_str(): {"0": 8} }));
    let mut all = World::of(kafka, &topic, &[]).open();
    let mut committed = World::of(kafka, &topic, &[("kafka.isolation.level", "read_committed")]).open();
    let begin = Instant::now();
    for (source, expected) in
        [(&mut all, &["0:0=a", "0:1=b", "0:3=x", "0:4=y", "0:6=c"][..]), (&mut committed, &["0:0=a", "0:1=b", "0:6=c"])]
    {
        assert_eq!(next(source.as_mut(), None), Some(whole.clone()));
        assert_eq!(rows(source.as_mut(), None, &whole), expected);
        assert_eq!(rows(source.as_mut(), None, &whole), expected);
        // Every range, with records and without, also where it ends in the middle of nothing.
        for (from, until) in [(2, 3), (3, 6), (5, 6), (2, 7), (7, 8), (4, 8), (0, 1)] {
            let (start, end) =
                (offset(json!({ topic.as_str(): {"0": from} })), offset(json!({ topic.as_str(): {"0": until} })));
            let within = |row: &&&str| {
                let at: i64 = row.split([':', '=']).nth(1).unwrap().parse().unwrap();
                (from..until).contains(&at)
            };
            let expected: Vec<&str> = expected.iter().filter(within).copied().collect();
            assert_eq!(rows(source.as_mut(), Some(&start), &end), expected, "[{from}, {until})");
        }
        // One offset at a time, each from where the one before ended.
        let mut one_by_one = Vec::new();
        for from in 0..8 {
            let (start, end) =
                (offset(json!({ topic.as_str(): {"0": from} })), offset(json!({ topic.as_str(): {"0": from + 1} })));
            one_by_one.extend(rows(source.as_mut(), Some(&start), &end));
        }
        assert_eq!(one_by_one, expected);
        assert!(!source.metrics(None).contains_key("offsetsLost"), "holes are no loss");
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "holes are not waited out: {:?}", begin.elapsed());
}

#[test]
fn batches_of_a_topic_that_is_written_in_transactions_follow_each_other_quickly() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("steady", 1);
    let mut source = World::of(kafka, &topic, &[("kafka.isolation.level", "read_committed")]).open();
    let mut at = None;
    let mut read = 0;
    let mut times = Vec::new();
    for n in 0..8 {
        kafka.produce_in_transaction(&topic, &records(&["a", "b"]), n % 4 != 3).unwrap();
        let until = (n + 1) * 3;
        let end = offset(json!({ topic.as_str(): {"0": until} }));
        let begin = Instant::now();
        while next(source.as_mut(), at.as_ref()).as_ref() != Some(&end) {
            assert!(begin.elapsed() < Duration::from_secs(20), "the mark of the transaction does not come");
        }
        let begin = Instant::now();
        read += rows(source.as_mut(), at.as_ref(), &end).len();
        times.push(begin.elapsed());
        at = Some(end);
    }
    assert_eq!(read, 12);
    times.sort();
    assert!(times[4] < Duration::from_millis(900), "a mark at the end is seen at once: {times:?}");
}

#[test]
fn a_transaction_that_is_open_ends_what_is_committed() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("open", 1);
    kafka.produce(&topic, &records(&["a"])).unwrap();
    let producer: BaseProducer = kafka.client().set("transactional.id", format!("open-{topic}")).create().unwrap();
    producer.init_transactions(Duration::from_secs(30)).unwrap();
    producer.begin_transaction().unwrap();
    kafka.produce_by(&producer, &topic, &records(&["b"])).unwrap();
    producer.flush(Duration::from_secs(30)).unwrap();
    kafka.produce(&topic, &records(&["c"])).unwrap();
    let mut committed = World::of(kafka, &topic, &[("kafka.isolation.level", "read_committed")]).open();
    let first = next(committed.as_mut(), None).unwrap();
    assert_eq!(rows(committed.as_mut(), None, &first), ["0:0=a"]);
    let mut all = World::of(kafka, &topic, &[]).open();
    let end = next(all.as_mut(), None).unwrap();
    assert_eq!(rows(all.as_mut(), None, &end).len(), 3);
    producer.commit_transaction(Duration::from_secs(30)).unwrap();
    let begin = Instant::now();
    let end = loop {
        match next(committed.as_mut(), Some(&first)).filter(|end| *end != first) {
            Some(end) => break end,
            None => assert!(begin.elapsed() < Duration::from_secs(20), "the commit does not come"),
        }
    };
    assert_eq!(rows(committed.as_mut(), Some(&first), &end), ["0:1=b", "0:2=c"]);
}
