//! The brokers that other tests stand on: they start, die, come back with what they had, and leave nothing behind.

use kafka_tests::{Isolation, Kafka, Record};

fn letters() -> Vec<Record> {
    ["a", "b", "c"].map(Record::of).into()
}

#[test]
fn records_come_back_as_they_were() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("plain", 2);
    let headers = vec![("h".to_owned(), Some(b"1".to_vec())), ("none".to_owned(), None)];
    let whole = Record {
        partition: Some(1),
        offset: 0,
        key: Some(b"k".to_vec()),
        value: Some(b"v".to_vec()),
        timestamp: Some(1_700_000_000_000),
        headers,
    };
    let empty = Record { partition: Some(0), timestamp: Some(1), ..Record::default() };
    kafka.produce(&topic, &[whole.clone(), empty.clone()]).unwrap();
    assert_eq!(kafka.read(&topic, Isolation::Uncommitted), [empty, whole]);
    assert_eq!(kafka.offsets(&topic, 1).unwrap(), (0, 1));

    kafka.add_partitions(&topic, 3).unwrap();
    assert_eq!(kafka.partitions(&topic).unwrap(), 3);
    kafka.delete_records_before(&topic, 1, 1).unwrap();
    assert_eq!(kafka.offsets(&topic, 1).unwrap(), (1, 1));
    kafka.configure_topic(&topic, &[("cleanup.policy", "compact")]).unwrap();
    kafka.delete_topic(&topic).unwrap();
    assert!(kafka.partitions(&topic).is_err());
}

#[test]
fn a_reader_of_committed_records_sees_no_aborted_ones() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("transactions", 1);
    kafka.produce_in_transaction(&topic, &letters(), false).unwrap();
    kafka.produce_in_transaction(&topic, &[Record::of("d")], true).unwrap();
    assert_eq!(kafka.values(&topic), ["d"]);
    assert_eq!(kafka.read(&topic, Isolation::Uncommitted).len(), 4);
}

#[test]
fn a_broker_that_is_killed_comes_back_with_what_it_had() {
    let Some(kafka) = Kafka::mortal() else { return };
    let topic = kafka.topic("lasting", 1);
    kafka.produce(&topic, &letters()).unwrap();
    for kill in [true, false] {
        if kill {
            kafka.kill(1).unwrap()
        } else {
            kafka.stop(1).unwrap()
        }
        kafka.start_again(1).unwrap();
        assert_eq!(kafka.values(&topic), ["a", "b", "c"], "{}", kafka.log(1));
    }
}

#[test]
fn three_brokers_go_on_when_one_is_killed() {
    let Some(kafka) = Kafka::of_own(3) else { return };
    let topic = kafka.topic("three", 3);
    kafka.kill(2).unwrap();
    kafka.produce(&topic, &letters()).unwrap();
    assert_eq!(kafka.values(&topic), ["a", "b", "c"]);
    kafka.start_again(2).unwrap();
}
