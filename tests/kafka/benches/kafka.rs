//! Kafka → filter → Kafka.
//!
//! Baseline: a loop that takes each record from a bare client and hands those that pass the filter to another, with the same
//! settings. It has no log, no batches, no recovery, and doubles records after a crash. CPU time of this process, which the
//! broker has no part in; candidates interleaved, medians of the rounds after the first. Run with `./x bench kafka [ROWS]`.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a program for people")]

use kafka_tests::{Kafka, Record};
use millstream_runtime::{Session, Trigger};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::time::Duration;

const ROWS: u64 = 1_000_000;
const ROUNDS: usize = 3;
const PARTITIONS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(ROWS);
    let kafka = Kafka::start_with(1, 512, &[]).unwrap_or_else(|error| panic!("{error:#}"));
    let input = kafka.topic("input", PARTITIONS);
    fill(&kafka, &input, rows);
    let (mut bare, mut once, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let times = [
            cpu(|| by_loop(&kafka, &input, rows)),
            cpu(|| by_query(&kafka, &input, rows, "exactly-once")),
            cpu(|| by_query(&kafka, &input, rows, "at-least-once")),
        ];
        // In the first round a broker that has just started is slow, and who waits for it looks around.
        if round > 0 {
            bare.push(times[0]);
            once.push(times[1]);
            least.push(times[2]);
        }
    }
    println!("{rows} records of 100 bytes, half of them pass the filter; records per second of CPU time");
    let rate = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        rows as f64 / times[times.len() / 2].as_secs_f64()
    };
    let bare = rate(&mut bare);
    println!("{:<34}{bare:>12.0}", "bare clients");
    for (name, times) in [("query, exactly once", &mut once), ("query, at least once", &mut least)] {
        let rate = rate(times);
        println!("{name:<34}{rate:>12.0}   {:.2} of the bare clients", rate / bare);
    }
}

/// CPU time of this process for some work.
fn cpu(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    work();
    now() - before
}

fn fill(kafka: &Kafka, topic: &str, rows: u64) {
    let producer: BaseProducer = kafka.client().set("linger.ms", "20").create().unwrap();
    let mut next = 0;
    while next < rows {
        let end = (next + 50_000).min(rows);
        let record = |number: u64| Record {
            partition: Some((number % PARTITIONS as u64) as i32),
            key: Some(format!("k{}", number / 7 % 10).into_bytes()),
            value: Some(format!("{number:0>100}").into_bytes()),
            ..Record::default()
        };
        let records: Vec<Record> = (next..end).map(record).collect();
        kafka.produce_by(&producer, topic, &records).unwrap();
        next = end;
    }
    producer.flush(PATIENCE).unwrap();
}

fn by_query(kafka: &Kafka, input: &str, rows: u64, guarantee: &str) {
    let output = kafka.topic("query", PARTITIONS);
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new().unwrap();
    let records = session.read_stream().format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap());
    let records = records.option("subscribe", input).option("startingOffsets", "earliest");
    let records = records.option("maxOffsetsPerTrigger", (rows / 5).max(1)).load().unwrap();
    records.create_or_replace_temp_view("records").unwrap();
    let passing = session.sql("SELECT key, value FROM records WHERE CAST(key AS STRING) < 'k5'").unwrap();
    let writer = passing.write_stream().format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap());
    let writer = writer.option("topic", &output).option("deliveryGuarantee", guarantee);
    let writer = writer.option("checkpointLocation", folder.path().join("checkpoint").display());
    let query = writer.trigger(Trigger::AvailableNow).start().unwrap();
    query.await_termination().unwrap_or_else(|error| panic!("{}", millstream_common::describe_chain(&*error)));
    check(kafka, &output, rows);
}

fn by_loop(kafka: &Kafka, input: &str, rows: u64) {
    let output = kafka.topic("bare", PARTITIONS);
    let mut config = kafka.client();
    config.set("group.id", "bare").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS as i32 {
        list.add_partition_offset(input, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let mut config = kafka.client();
    config.set("enable.idempotence", "true").set("partitioner", "murmur2_random");
    config.set("queue.buffering.max.kbytes", "65536").set("queue.buffering.max.messages", "1000000");
    let producer: BaseProducer = config.set("delivery.report.only.error", "true").create().unwrap();
    let mut open = PARTITIONS;
    while open > 0 {
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(error)) => panic!("{error}"),
            Some(Ok(message)) => {
                let (Some(key), Some(value)) = (message.key(), message.payload()) else { continue };
                if key >= b"k5".as_slice() {
                    continue;
                }
                let mut record = BaseRecord::to(&output).key(key).payload(value);
                while let Err((error, back)) = producer.send(record) {
                    assert_eq!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
                    producer.poll(Duration::from_millis(2));
                    record = back;
                }
            }
        }
    }
    producer.flush(PATIENCE).unwrap();
    check(kafka, &output, rows);
}

/// That all records have come.
fn check(kafka: &Kafka, output: &str, rows: u64) {
    let count = |partition: i32| {
        let (first, end) = kafka.offsets(output, partition).unwrap();
        (end - first) as u64
    };
    let written: u64 = (0..PARTITIONS as i32).map(count).sum();
    let wanted = (0..rows).filter(|number| number / 7 % 10 < 5).count() as u64;
    // Each commit of a transaction is a record, too, that no reader sees.
    assert!((wanted..wanted + 100).contains(&written), "{written} of {wanted} records");
}
