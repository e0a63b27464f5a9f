//! Records, written and read by plain clients.

use crate::Kafka;
use crate::topics::wait;
use anyhow::{Context, Result, bail};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a reader sees of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Only what is committed, after the end of transactions that are open.
    Committed,
    /// Only what is committed at this moment, up to the first transaction that is open.
    Stable,
    /// All that was ever written.
    Uncommitted,
}

/// A record, as Kafka has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The partition; `None` lets the client choose.
    pub partition: Option<i32>,
    /// The place in the partition; not for writing.
    pub offset: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since 1970; `None` is now, and so is 0 when it is written.
    pub timestamp: Option<i64>,
    /// The headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record with a value only.
    pub fn of(value: &str) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// The value as text, empty when there is none.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

impl Kafka {
    /// Writes records and waits until the brokers have them.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn produce(&self, topic: &str, records: &[Record]) -> Result<()> {
        let producer: BaseProducer = self.client().set("linger.ms", "5").set("acks", "all").create()?;
        self.produce_by(&producer, topic, records)?;
        Ok(producer.flush(PATIENCE)?)
    }

    /// Writes records as a transaction that is committed or aborted.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn produce_in_transaction(&self, topic: &str, records: &[Record], is_committed: bool) -> Result<()> {
        let id = format!("test-{}", uuid::Uuid::new_v4());
        let producer: BaseProducer = self.client().set("transactional.id", id).create()?;
        producer.init_transactions(PATIENCE)?;
        producer.begin_transaction()?;
        self.produce_by(&producer, topic, records)?;
        producer.flush(PATIENCE)?;
        if is_committed {
            producer.commit_transaction(PATIENCE)?
        } else {
            producer.abort_transaction(PATIENCE)?
        }
        Ok(())
    }

    /// Hands records to a client; [`flush`](Producer::flush) waits for them.
    ///
    /// # Errors
    /// When one is refused.
    pub fn produce_by(&self, producer: &BaseProducer, topic: &str, records: &[Record]) -> Result<()> {
        for record in records {
            let mut to_send = BaseRecord::<[u8], [u8]>::to(topic);
            to_send.key = record.key.as_deref();
            to_send.payload = record.value.as_deref();
            to_send.partition = record.partition;
            to_send.timestamp = record.timestamp;
            if !record.headers.is_empty() {
                let headers = record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
                    headers.insert(Header { key, value: value.as_deref() })
                });
                to_send.headers = Some(headers);
            }
            let begin = Instant::now();
            while let Err((error, back)) = producer.send(to_send) {
                let is_full = matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
                if !is_full || begin.elapsed() > PATIENCE {
                    return Err(error).context("a record is refused");
                }
                producer.poll(Duration::from_millis(5));
                to_send = back;
            }
        }
        Ok(())
    }

    /// All records of a topic that are there now, by partition and offset.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn read(&self, topic: &str, isolation: Isolation) -> Vec<Record> {
        self.try_read(topic, isolation).unwrap_or_else(|error| panic!("topic `{topic}` cannot be read: {error:#}"))
    }

    /// The values of all records of a topic that are committed now, as text, sorted.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn values(&self, topic: &str) -> Vec<String> {
        let mut values: Vec<String> = self.read(topic, Isolation::Committed).iter().map(Record::text).collect();
        values.sort();
        values
    }

    /// As [`read`](Self::read).
    ///
    /// # Errors
    /// When they cannot be read, as when a transaction stays open.
    pub fn try_read(&self, topic: &str, isolation: Isolation) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        self.for_each(topic, isolation, |record| records.push(record))?;
        records.sort_by_key(|record| (record.partition, record.offset));
        Ok(records)
    }

    /// Hands over each record of a topic that is there now.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn for_each(&self, topic: &str, isolation: Isolation, mut each: impl FnMut(Record)) -> Result<()> {
        let level = if isolation == Isolation::Uncommitted { "read_uncommitted" } else { "read_committed" };
        let mut config = self.client();
        config.set("group.id", "test").set("enable.auto.commit", "false").set("isolation.level", level);
        config.set("enable.partition.eof", "true").set("fetch.wait.max.ms", "20");
        let consumer: BaseConsumer = config.create()?;
        let all: BaseConsumer = self.client().create()?;
        let (mut list, mut open) = (TopicPartitionList::new(), BTreeSet::new());
        for partition in 0..i32::try_from(self.partitions(topic)?)? {
            let (first, end) = all.fetch_watermarks(topic, partition, Duration::from_secs(20))?;
            if isolation == Isolation::Committed {
                // The markers of a transaction are written after its commit is answered.
                wait(&format!("the end of transactions in partition {partition} of `{topic}`"), || {
                    Ok(consumer.fetch_watermarks(topic, partition, Duration::from_secs(20))?.1 >= end)
                })?;
            }
            if first < end {
                list.add_partition_offset(topic, partition, Offset::Offset(first))?;
                open.insert(partition);
            }
        }
        consumer.assign(&list)?;
        let mut last = Instant::now();
        while !open.is_empty() {
            match consumer.poll(Duration::from_millis(100)) {
                None => {}
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
                Some(Err(error)) if last.elapsed() > PATIENCE => return Err(error.into()),
                Some(Err(_)) => {}
                Some(Ok(message)) => {
                    last = Instant::now();
                    each(record(&message));
                }
            }
            if last.elapsed() > PATIENCE {
                bail!("partitions {open:?} of topic `{topic}` do not come to their end");
            }
        }
        Ok(())
    }
}

fn record(message: &rdkafka::message::BorrowedMessage<'_>) -> Record {
    let headers = message.headers().map(|headers| {
        let owned = headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
        owned.collect::<Vec<_>>()
    });
    Record {
        partition: Some(message.partition()),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        timestamp: message.timestamp().to_millis(),
        headers: headers.unwrap_or_default(),
    }
}
