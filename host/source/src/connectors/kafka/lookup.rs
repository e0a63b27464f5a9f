//! Questions to the brokers: which partitions there are, at which offsets they begin and end, which ids topics have.
//!
//! The ids are read from what the client logs about metadata: its library has them, and hands them out nowhere else without
//! unsafe code. Brokers before 2.8 have none; then they are unknown.

use super::config::KafkaConfig;
use super::offset::{EARLIEST, LATEST, Positions, TopicPartition};
use super::topics::Topics;
use crate::SourceError;
use millstream_client::kafka::{Asking, KafkaError, KafkaLog, KafkaOptions};
use millstream_client::patience::pause;
use millstream_common::{StopSignal, describe_chain};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError as ClientError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::metadata::MetadataTopic;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Up to so many topics are asked for by name; beyond, all topics of the brokers are.
const BY_NAME: usize = 16;
/// An id that is none.
const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// Takes the log of the client, and the ids of topics out of it.
#[derive(Default)]
struct Listener {
    log: KafkaLog,
    /// How many lines there were.
    lines: AtomicU64,
    ids: Mutex<BTreeMap<String, String>>,
}

impl ClientContext for Listener {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.lines.fetch_add(1, Ordering::Relaxed);
        match topic_id(line) {
            Some((topic, NO_ID)) => drop(self.ids().remove(topic)),
            Some((topic, id)) => drop(self.ids().insert(topic.to_owned(), id.to_owned())),
            None => self.log.take(level, facility, line),
        }
    }

    fn error(&self, error: ClientError, reason: &str) {
        self.log.error(error, reason);
    }
}

impl ConsumerContext for Listener {}

impl Listener {
    fn ids(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Topic and id of a line that tells about a new id.
fn topic_id(line: &str) -> Option<(&str, &str)> {
    let (topic, ids) = line.split_once(" changed id from ")?;
    let topic = topic.rsplit_once("Topic ")?.1;
    let id = ids.rsplit_once(" to ")?.1.trim();
    Some((topic, id))
}

/// The client for questions.
pub(super) struct Lookup {
    name: String,
    options: KafkaOptions,
    consumer: BaseConsumer<Listener>,
    stop: StopSignal,
    attempts: u32,
    retry_interval: Duration,
}

impl Lookup {
    pub(super) fn new(name: &str, config: &KafkaConfig, stop: StopSignal) -> Result<Self, SourceError> {
        let options = config.client.clone();
        let mut settings = options.client_config();
        settings.remove("group.id");
        settings.set("enable.auto.commit", "false");
        // For the ids of topics.
        settings.set("debug", "metadata").set_log_level(RDKafkaLogLevel::Debug);
        options.default_to(&mut settings, "isolation.level", "read_uncommitted");
        let consumer = settings.create_with_context(Listener::default()).map_err(|error| SourceError::Kafka {
            name: name.to_owned(),
            source: Box::new(KafkaError::new("connect", options.servers(), &error, &KafkaLog::new())),
        })?;
        Ok(Self {
            name: name.to_owned(),
            options,
            consumer,
            stop,
            attempts: config.attempts.max(1),
            retry_interval: config.retry_interval,
        })
    }

    /// The partitions there are, of those that are wanted.
    pub(super) fn partitions(&self, wanted: &Topics) -> Result<BTreeSet<TopicPartition>, SourceError> {
        let mut there = BTreeMap::new();
        match wanted.by_name() {
            Some(names) if names.len() <= BY_NAME => {
                for topic in names {
                    there.extend(self.topic(topic)?.map(|partitions| (topic.to_owned(), partitions)));
                }
            }
            _ => {
                there = self.ask("list the topics", |timeout| {
                    let metadata = self.consumer.fetch_metadata(None, timeout)?;
                    let wanted = metadata.topics().iter().filter(|topic| wanted.names(topic.name()));
                    let found = wanted.filter_map(|topic| {
                        partitions_of(topic).map(|found| Some((topic.name().to_owned(), found?))).transpose()
                    });
                    found.collect()
                })?;
                // The client keeps the id of a topic from the first time on that it is asked for by its name.
                for topic in there.keys() {
                    if !self.consumer.context().ids().contains_key(topic) {
                        self.topic(topic)?;
                    }
                }
            }
        }
        Ok(wanted.choose(&there))
    }

    /// The partitions of a topic; `None` when it is not there.
    fn topic(&self, topic: &str) -> Result<Option<Vec<i32>>, SourceError> {
        let found = self.ask(&format!("list the partitions of topic `{topic}`"), |timeout| {
            let metadata = self.consumer.fetch_metadata(Some(topic), timeout)?;
            match metadata.topics().iter().find(|found| found.name() == topic) {
                Some(found) => partitions_of(found),
                None => Ok(None),
            }
        })?;
        if found.is_none() {
            self.consumer.context().ids().remove(topic);
        }
        Ok(found)
    }

    /// The id of a topic, as of the last question about its partitions; `None` when brokers have no ids.
    pub(super) fn topic_id(&self, topic: &str) -> Option<String> {
        self.consumer.context().ids().get(topic).cloned()
    }

    /// For each partition the offset that is asked for: -2 the earliest, -1 the one after the last, otherwise the first
    /// whose record is not older than the time. `None` when no record is that young.
    pub(super) fn offsets(&self, wanted: &Positions) -> Result<BTreeMap<TopicPartition, Option<i64>>, SourceError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let first = wanted.keys().next().map(TopicPartition::to_string).unwrap_or_default();
        let action = match wanted.len() {
            1 => format!("find offsets of {first}"),
            more => format!("find offsets of {more} partitions, such as {first}"),
        };
        self.ask(&action, |timeout| {
            let mut list = TopicPartitionList::with_capacity(wanted.len());
            for (place, offset) in wanted {
                list.add_partition_offset(&place.topic, place.partition, Offset::from_raw(*offset))?;
            }
            let answer = self.consumer.offsets_for_times(list, timeout)?;
            let mut found = BTreeMap::new();
            for element in answer.elements() {
                element.error()?;
                let offset = match element.offset() {
                    Offset::Offset(offset) => Some(offset),
                    Offset::End => None,
                    _ => return Err(ClientError::OffsetFetch(Code::NoOffset)),
                };
                found.insert(TopicPartition::new(element.topic(), element.partition()), offset);
            }
            Ok(found)
        })
    }

    /// The earliest offsets of partitions.
    pub(super) fn earliest(&self, places: &BTreeSet<TopicPartition>) -> Result<Positions, SourceError> {
        self.ends(places, EARLIEST)
    }

    /// The offsets after the last records of partitions.
    pub(super) fn latest(&self, places: &BTreeSet<TopicPartition>) -> Result<Positions, SourceError> {
        self.ends(places, LATEST)
    }

    fn ends(&self, places: &BTreeSet<TopicPartition>, which: i64) -> Result<Positions, SourceError> {
        let wanted = places.iter().map(|place| (place.clone(), which)).collect();
        Ok(self.offsets(&wanted)?.into_iter().map(|(place, offset)| (place, offset.unwrap_or(0))).collect())
    }

    /// Waits a moment before something is asked again.
    pub(super) fn pause(&self) {
        pause(self.retry_interval.clamp(Duration::from_millis(100), Duration::from_secs(5)), &self.stop);
    }

    /// How often something is tried.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Hears all that the client has said: what it knew when it gave an answer, it said before.
    fn listen(&self) {
        let lines = &self.consumer.context().lines;
        loop {
            let before = lines.load(Ordering::Relaxed);
            // One event at a time: an error, or a line, of which the answer tells nothing.
            if self.consumer.poll(Duration::ZERO).is_none() && lines.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// Asks until there is an answer, or the attempts are over.
    fn ask<T>(&self, action: &str, question: impl Fn(Duration) -> KafkaResult<T>) -> Result<T, SourceError> {
        let mut attempt = 1;
        loop {
            let error = match self.attempt(action, &question) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if attempt >= self.attempts || !error.is_passing() {
                return Err(SourceError::Kafka { name: self.name.clone(), source: Box::new(error) });
            }
            let (source, of) = (self.name.as_str(), self.attempts);
            tracing::warn!(source, "attempt {attempt} of {of} failed: {}", describe_chain(&error));
            pause(self.retry_interval, &self.stop);
            attempt += 1;
        }
    }

    /// One attempt: as long as the clients of Java would try.
    fn attempt<T>(&self, action: &str, question: impl Fn(Duration) -> KafkaResult<T>) -> Result<T, KafkaError> {
        let asking = Asking {
            owner: &self.name,
            action,
            servers: self.options.servers(),
            patience: self.options.timeout(),
            stop: &self.stop,
            log: &self.consumer.context().log,
        };
        asking.ask(|| self.listen(), question)
    }
}

/// The partitions of a topic in metadata; `None` when the topic is not there.
fn partitions_of(topic: &MetadataTopic) -> KafkaResult<Option<Vec<i32>>> {
    match topic.error().map(Code::from) {
        None => Ok(Some(topic.partitions().iter().map(|partition| partition.id()).collect())),
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownTopicId) => Ok(None),
        Some(code) => Err(ClientError::MetadataFetch(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_topics_are_heard_from_the_log() {
        let listener = Listener::default();
        let say = |line: &str| listener.log(RDKafkaLogLevel::Debug, "METADATA", line);
        say("[thrd:main]: Topic a changed id from AAAAAAAAAAAAAAAAAAAAAA to Wq1tSxVPQD2HdCCMDsKWYQ");
        say("[thrd:main]: Topic a.b changed id from AAAAAAAAAAAAAAAAAAAAAA to NVCWkuDASnCv8zvXvwyNpw");
        assert_eq!(listener.ids().get("a").map(String::as_str), Some("Wq1tSxVPQD2HdCCMDsKWYQ"));
        say("Topic a changed id from Wq1tSxVPQD2HdCCMDsKWYQ to NVCWkuDASnCv8zvXvwyNpw");
        assert_eq!(listener.ids().get("a").map(String::as_str), Some("NVCWkuDASnCv8zvXvwyNpw"));
        say("Topic a changed id from NVCWkuDASnCv8zvXvwyNpw to AAAAAAAAAAAAAAAAAAAAAA");
        say("Topic a has 3 partitions");
        assert_eq!(listener.ids().keys().collect::<Vec<_>>(), ["a.b"]);
    }
}
