//! Brokers that go away, and records that compaction has taken: with a broker of its own, which can be killed.

use super::{World, next, offset, records, refusal, rows, try_rows};
use kafka_tests::{Isolation, Kafka, Record};
use millstream_common::{Fault, Hint, describe_chain};
use millstream_source::SourceError;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_broker_that_is_away_is_named_and_stopping_waits_for_nothing() {
    let Some(kafka) = Kafka::mortal() else { return };
    let topic = kafka.topic("away", 2);
    kafka.produce(&topic, &records(&["a", "b"])).unwrap();
    let mut world = World::of(&kafka, &topic, &[]);
    let mut source = world.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(rows(source.as_mut(), None, &first), ["0:0=a", "0:1=b"]);
    let second = offset(json!({ topic.as_str(): {"0": 3, "1": 0} }));
    kafka.kill(1).unwrap();

    // Asking fails after the time that the user grants, twice because of the retries.
    world.set("kafka.default.api.timeout.ms", "1000");
    world.set("kafkaConsumer.pollTimeoutMs", "2500");
    let mut hasty = world.open();
    let begin = Instant::now();
    let error = hasty.latest_offset(Some(&first), hasty.read_limit()).unwrap_err();
    let text = describe_chain(&error);
    assert!(text.contains(&format!("no broker of `{}` answers", kafka.bootstrap())), "{text}");
    assert!(matches!(error, SourceError::Kafka { .. }) && error.fault() == Fault::Outside, "{error:?}");
    assert!(error.hint().unwrap().contains(kafka.bootstrap()), "{error:?}");
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(15), "{waited:?}");

    // A query that is to stop does not wait.
    let stop = world.stop.clone();
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        stop.set();
        Instant::now()
    });
    let text = describe_chain(&try_rows(source.as_mut(), Some(&first), &second).unwrap_err());
    let late = stopping.join().unwrap().elapsed();
    assert!(text.contains("the query is to stop"), "{text}");
    assert!(late < Duration::from_secs(4), "{late:?}");
    let begin = Instant::now();
    source.stop();
    source.stop();
    hasty.stop();
    drop((source, hasty));
    assert!(begin.elapsed() < Duration::from_secs(8), "clients end although nobody answers: {:?}", begin.elapsed());

    // Nor does a whole query, and that it was waiting is no failure of it.
    drop(stuck(&kafka, &topic));

    // The broker comes back with what it had, and so does the query.
    kafka.start_again(1).unwrap();
    kafka.produce(&topic, &records(&["c"])).unwrap();
    world.stop = millstream_common::StopSignal::new();
    world.set("kafka.default.api.timeout.ms", "30000");
    world.set("kafkaConsumer.pollTimeoutMs", "30000");
    let mut source = world.open();
    let end = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(end, second);
    assert_eq!(rows(source.as_mut(), Some(&first), &second), ["0:2=c"]);

    // A client that was there before goes on, too.
    kafka.kill(1).unwrap();
    kafka.start_again(1).unwrap();
    kafka.produce(&topic, &records(&["d"])).unwrap();
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(rows(source.as_mut(), Some(&second), &third), ["0:3=d"]);
}

/// Stops a query that waits for a broker which is away.
fn stuck(kafka: &Kafka, topic: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let session = millstream_runtime::Session::new().unwrap();
    let records = session.read_stream().format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap());
    let records = records.option("subscribe", topic).load().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let writer = records.write_stream().format("noop").option("checkpointLocation", checkpoint.to_str().unwrap());
    let query = writer.start().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    query.stop().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert!(!query.is_active() && query.exception().is_none(), "{:?}", query.exception());
    folder
}

#[test]
fn nobody_at_the_address_is_one_clear_error() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("nobody", 1);
    let mut world =
        World::of(kafka, &topic, &[("kafka.default.api.timeout.ms", "600"), ("fetchOffset.numRetries", "1")]);
    world.set("kafka.bootstrap.servers", "127.0.0.1:1");
    let text = refusal(world.open().as_mut(), None);
    assert!(text.contains("no broker of `127.0.0.1:1` answers") && text.contains("refused"), "{text}");
}

#[test]
fn what_compaction_has_taken_is_no_loss() {
    let kafka = Kafka::shared();
    if kafka.brokers() == 0 {
        // Somebody else's broker compacts when it likes.
        return;
    }
    let topic = format!("compacted-{}", kafka.topic("like", 1));
    let topic = topic.as_str();
    let config = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("segment.ms", "200"),
        ("max.compaction.lag.ms", "300"),
    ];
    kafka.create_topic(topic, 1, &config).unwrap();
    let keyed = |key: u8, value: &str| Record { partition: Some(0), key: Some(vec![key]), ..Record::of(value) };
    for round in 0..5 {
        let batch: Vec<Record> = (0..4).map(|key| keyed(key, &format!("{round}-{key}"))).collect();
        kafka.produce(topic, &batch).unwrap();
    }
    // New segments let old ones be compacted.
    let begin = Instant::now();
    let mut seen = Vec::new();
    let mut filler = 10;
    while begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(400));
        kafka.produce(topic, &[keyed(filler, "filler")]).unwrap();
        filler = filler.saturating_add(1);
        seen = kafka.read(topic, Isolation::Uncommitted);
        if seen.first().is_some_and(|record| record.offset >= 12) {
            break;
        }
    }
    let left = seen.iter().filter(|record| record.offset < 16).count();
    assert!(left < 16, "the broker does not compact: {left}");

    let mut source = World::of(kafka, topic, &[]).open();
    let whole = next(source.as_mut(), None).unwrap();
    let all = rows(source.as_mut(), None, &whole);
    for key in 0..4 {
        let latest = format!("0:{}=4-{key}", 16 + key);
        assert!(all.contains(&latest), "{latest} is missing in {all:?}");
    }
    let begin = Instant::now();
    let mut one_by_one = Vec::new();
    for from in 0..16 {
        let (start, end) = (offset(json!({ topic: {"0": from} })), offset(json!({ topic: {"0": from + 1} })));
        one_by_one.extend(rows(source.as_mut(), Some(&start), &end));
    }
    let expected: Vec<&String> = all
        .iter()
        .filter(|row| row.split([':', '=']).nth(1).is_some_and(|at| at.parse::<i64>().is_ok_and(|at| at < 16)))
        .collect();
    assert_eq!(one_by_one.len(), expected.len(), "{one_by_one:?} {expected:?}");
    assert!(begin.elapsed() < Duration::from_secs(20), "holes are not waited out: {:?}", begin.elapsed());
    assert!(!source.metrics(None).contains_key("offsetsLost"));
}
