//! Rows that brokers refuse, and brokers that go away.

use super::{add, open, open_until, query, rows, spec, text, values};
use arrow::array::{ArrayRef, Int32Array, StringArray};
use kafka_tests::{Isolation, Kafka};
use millstream_common::StopSignal;
use millstream_sink::SinkError;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_batch_that_fails_half_way_leaves_nothing_that_is_committed() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("half", 1);
    let mut sink = open(&spec(kafka, &[("topic", &topic)]), query()).unwrap();
    let of = |partitions: Vec<i32>| {
        let text: Vec<String> = partitions.iter().map(|partition| format!("to {partition}")).collect();
        rows(vec![
            ("value", Arc::new(StringArray::from(text)) as ArrayRef),
            ("partition", Arc::new(Int32Array::from(partitions))),
        ])
    };
    add(sink.as_mut(), 0, &values(&["before"])).unwrap();
    let error = text(add(sink.as_mut(), 1, &of(vec![0, 0, 99])));
    assert!(error.contains("batch 1") && error.contains(&topic), "{error}");
    let error = add(sink.as_mut(), 1, &of(vec![0, -1]));
    assert!(matches!(error, Err(SinkError::Schema { .. })), "{error:?}");
    assert_eq!(kafka.values(&topic), ["before"]);
    assert_eq!(add(sink.as_mut(), 1, &of(vec![0])).unwrap(), 1);
    assert_eq!(kafka.values(&topic), ["before", "to 0"]);
}

#[test]
fn a_record_that_is_too_large_is_refused_and_nothing_of_its_batch_is_seen() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("big", 1);
    kafka.configure_topic(&topic, &[("max.message.bytes", "2000")]).unwrap();
    let big = "x".repeat(5000);
    for guarantee in ["exactly-once", "at-least-once"] {
        let options = [("topic", topic.as_str()), ("deliveryGuarantee", guarantee)];
        let mut sink = open(&spec(kafka, &options), query()).unwrap();
        let error = text(add(sink.as_mut(), 0, &values(&[&big])));
        assert!(error.contains("batch 0"), "{guarantee}: {error}");
        // It may be changed so that it fits, and the sink goes on.
        assert_eq!(add(sink.as_mut(), 0, &values(&[guarantee])).unwrap(), 1);
    }
    assert_eq!(kafka.values(&topic), ["at-least-once", "exactly-once"]);
}

#[test]
fn a_broker_that_is_killed_and_comes_back_costs_nothing_and_doubles_nothing() {
    let Some(kafka) = Kafka::mortal() else { return };
    let topic = kafka.topic("restart", 2);
    let mut sink = open(&spec(&kafka, &[("topic", &topic)]), query()).unwrap();
    let mut wanted = Vec::new();
    std::thread::scope(|scope| {
        let broker = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            kafka.kill(1)?;
            std::thread::sleep(Duration::from_millis(300));
            kafka.start_again(1)
        });
        let mut batch = 0;
        while !broker.is_finished() || batch < 3 {
            let lines: Vec<String> = (0..20).map(|line| format!("{batch:0>5} {line:0>2}")).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(add(sink.as_mut(), batch, &values(&lines)).unwrap(), 20);
            wanted.extend(lines.into_iter().map(str::to_owned));
            batch += 1;
        }
        broker.join().unwrap().unwrap();
    });
    assert_eq!(kafka.values(&topic), wanted, "{}", kafka.log(1));
    assert!(kafka.read(&topic, Isolation::Uncommitted).len() >= wanted.len());
    slow(&kafka);
    stopped(&kafka);
}

/// A transaction that takes longer than it may is ended by the brokers, and its batch is written once all the same.
fn slow(kafka: &Kafka) {
    let topic = kafka.topic("slow", 1);
    let (query, options) = (query(), [("topic", topic.as_str()), ("kafka.transaction.timeout.ms", "1000")]);
    let mut sink = open(&spec(kafka, &options), query).unwrap();
    add(sink.as_mut(), 0, &values(&["a"])).unwrap();
    let outcome = std::thread::scope(|scope| {
        kafka.pause(1).unwrap();
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(3500));
            kafka.resume(1).unwrap();
        });
        add(sink.as_mut(), 1, &values(&["b"]))
    });
    if let Err(error) = outcome {
        let hint = millstream_common::Hint::hint(&error).unwrap_or_default();
        assert!(hint.contains("kafka.transaction.timeout.ms"), "{error:?}");
        drop(sink);
        sink = open(&spec(kafka, &options), query).unwrap();
        add(sink.as_mut(), 1, &values(&["b"])).unwrap();
    }
    add(sink.as_mut(), 2, &values(&["c"])).unwrap();
    assert_eq!(kafka.values(&topic), ["a", "b", "c"]);
}

/// A query that is to stop does not wait for a broker that is away, wherever it is.
fn stopped(kafka: &Kafka) {
    let topic = kafka.topic("stopped", 1);
    let mut begun = ["exactly-once", "at-least-once"].map(|guarantee| {
        let spec = spec(kafka, &[("topic", &topic), ("deliveryGuarantee", guarantee)]);
        let (query, stop) = (query(), StopSignal::new());
        let mut sink = open_until(&spec, query, &stop).unwrap();
        add(sink.as_mut(), 0, &values(&["before"])).unwrap();
        (spec, query, stop, Some(sink))
    });
    kafka.kill(1).unwrap();
    for (spec, query, stop, sink) in &mut begun {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(800));
                stop.set();
            });
            let error = text(add(sink.as_deref_mut().unwrap(), 1, &values(&["late"])));
            assert!(error.contains("the query is to stop"), "{spec:?}: {error}");
            let error = text(open_until(spec, *query, stop).map(|sink| sink.description()));
            assert!(error.contains("the query is to stop"), "{spec:?}: {error}");
        });
        *sink = None;
        assert!(begin.elapsed() < Duration::from_secs(20), "{spec:?}: {:?}", begin.elapsed());
    }
    kafka.start_again(1).unwrap();
    for (spec, query, ..) in begun {
        let mut sink = open(&spec, query).unwrap();
        add(sink.as_mut(), 1, &values(&["at last"])).unwrap();
    }
    let written = kafka.values(&topic);
    assert_eq!(written.iter().filter(|value| *value == "at last").count(), 2, "{written:?}");
}

#[test]
fn a_transaction_that_may_not_be_that_long_is_refused_with_the_option() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("long", 1);
    let options = [("topic", topic.as_str()), ("kafka.transaction.timeout.ms", "2000000000")];
    let error = open(&spec(kafka, &options), query()).err().unwrap();
    let hint = millstream_common::Hint::hint(&error).unwrap_or_default();
    assert!(hint.contains("kafka.transaction.timeout.ms"), "{error:?}");
}

#[test]
fn brokers_that_are_not_there_are_named() {
    let options =
        [("topic", "t"), ("kafka.bootstrap.servers", "127.0.0.1:1"), ("kafka.default.api.timeout.ms", "1500")];
    let options = options.iter().fold(millstream_common::Options::new(), |all, (key, value)| all.with(*key, *value));
    let spec = millstream_sink::SinkSpec { format: "kafka".into(), options };
    let error = text(open(&spec, query()).map(|sink| sink.description()));
    assert!(error.contains("no broker of `127.0.0.1:1` answers"), "{error}");
}
