//! Offsets in a consumer group of Kafka: written when a program asks for it, read where a query is to begin at them.
//!
//! ```text
//!   commit_offsets ──► queue ──► a thread with a client of its own ──► the group at the brokers ──► the program is told
//! ```
//!
//! Rule of its life: nothing is written unless a program says so, and nobody goes on by it: that is the checkpoint's. The
//! end gives what is in the queue a few seconds.

use super::config::KafkaConfig;
use super::offset::{Positions, TopicPartition};
use crate::{CommitCallback, SourceError};
use millstream_client::kafka::{Asking, KafkaError, KafkaLog, KafkaOptions};
use millstream_common::{Options, StopSignal, guarded};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end waits for brokers that have not answered.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A client with the group of the options.
pub(super) struct Group {
    name: String,
    group: String,
    options: KafkaOptions,
    consumer: BaseConsumer<KafkaLog>,
    log: KafkaLog,
    stop: StopSignal,
}

impl Group {
    /// The group `kafka.group.id`; refused where there is none.
    pub(super) fn new(name: &str, config: &KafkaConfig, stop: StopSignal) -> Result<Self, SourceError> {
        let options = config.client.clone();
        let Some(group) = options.get("group.id").map(str::to_owned) else {
            let owner = format!("source `{name}`");
            let reason = "offsets are kept in a consumer group; set it to the name of one";
            return Err(Options::invalid(&owner, "kafka.group.id", "", reason).into());
        };
        let mut settings = options.client_config();
        settings.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        // A commit is answered when the client has an answer: it must not be too patient.
        options.default_to(&mut settings, "socket.timeout.ms", "10000");
        let log = KafkaLog::new();
        let consumer = settings.create_with_context(log.clone()).map_err(|error| SourceError::Kafka {
            name: name.to_owned(),
            source: Box::new(KafkaError::new("connect", options.servers(), &error, &log)),
        })?;
        Ok(Self { name: name.to_owned(), group, options, consumer, log, stop })
    }

    /// What the group has for partitions.
    pub(super) fn committed(&self, places: &BTreeSet<TopicPartition>) -> Result<Positions, SourceError> {
        let action = format!("read the offsets of group `{}`", self.group);
        let found = self.asking(&action, self.options.timeout()).ask(
            || while self.consumer.poll(Duration::ZERO).is_some() {},
            |step| {
                let mut list = TopicPartitionList::with_capacity(places.len());
                for place in places {
                    list.add_partition(&place.topic, place.partition);
                }
                let list = self.consumer.committed_offsets(list, step)?;
                let mut found = Positions::new();
                for element in list.elements() {
                    element.error()?;
                    if let Offset::Offset(offset) = element.offset() {
                        found.insert(TopicPartition::new(element.topic(), element.partition()), offset);
                    }
                }
                Ok(found)
            },
        );
        found.map_err(|error| self.failed(error))
    }

    /// Writes offsets into the group.
    fn commit(&self, offsets: &Positions) -> Result<(), SourceError> {
        let action = format!("write offsets to group `{}`", self.group);
        let answer = self.asking(&action, self.options.timeout()).ask(
            || while self.consumer.poll(Duration::ZERO).is_some() {},
            |_| {
                let mut list = TopicPartitionList::with_capacity(offsets.len());
                for (place, offset) in offsets {
                    list.add_partition_offset(&place.topic, place.partition, Offset::Offset(*offset))?;
                }
                self.consumer.commit(&list, CommitMode::Sync)
            },
        );
        answer.map_err(|error| self.failed(error))
    }

    fn asking<'a>(&'a self, action: &'a str, patience: Duration) -> Asking<'a> {
        let servers = self.options.servers();
        Asking { owner: &self.name, action, servers, patience, stop: &self.stop, log: &self.log }
    }

    fn failed(&self, error: KafkaError) -> SourceError {
        SourceError::Kafka { name: self.name.clone(), source: Box::new(error) }
    }
}

type Request = (Positions, CommitCallback);

/// The thread that writes.
pub(super) struct Committer {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    stop: StopSignal,
}

impl Committer {
    pub(super) fn start(name: &str, config: &KafkaConfig) -> Result<Self, SourceError> {
        let stop = StopSignal::new();
        let group = Group::new(name, config, stop.clone())?;
        let (requests, queue) = channel();
        let thread = std::thread::Builder::new().name(format!("commits-{name}"));
        let thread = thread.spawn(move || work(&group, &queue)).map_err(|error| SourceError::Unavailable {
            name: name.to_owned(),
            action: "start a thread for",
            place: "commits".to_owned(),
            source: error.into(),
        })?;
        Ok(Self { requests: Some(requests), thread: Some(thread), stop })
    }

    /// Writes offsets soon, and tells.
    pub(super) fn commit(&self, offsets: Positions, done: CommitCallback) {
        if let Some(requests) = &self.requests
            && requests.send((offsets, done)).is_err()
        {
            tracing::warn!("offsets are not committed: the thread for that has ended");
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.requests = None;
        let Some(thread) = self.thread.take() else { return };
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop.set();
        if !thread.is_finished() {
            // It ends by itself when the client gives up, and keeps nobody.
            tracing::warn!("the brokers do not answer the last commit of offsets; nobody waits for it");
        } else if thread.join().is_err() {
            tracing::error!("the thread that commits offsets panicked");
        }
    }
}

/// What is asked for until the source ends. What came while the brokers were asked goes in one; what fails is told and not
/// tried again, for the next one says more.
fn work(group: &Group, queue: &Receiver<Request>) {
    while let Ok((mut offsets, done)) = queue.recv() {
        let mut told = vec![done];
        for (more, done) in queue.try_iter() {
            merge(&mut offsets, more);
            told.push(done);
        }
        let outcome = group.commit(&offsets).map_err(Arc::new);
        for done in told {
            let outcome = outcome.clone();
            // It is code of the program.
            if guarded(|| done(outcome)).is_err() {
                tracing::error!(source = group.name, "what a program does after a commit panicked");
            }
        }
    }
}

/// The higher offset of each partition.
fn merge(offsets: &mut Positions, more: Positions) {
    for (place, offset) in more {
        let known = offsets.entry(place).or_insert(offset);
        *known = offset.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_offset_of_a_partition_stays() {
        let of = |offsets: &[(i32, i64)]| -> Positions {
            offsets.iter().map(|(partition, offset)| (TopicPartition::new("t", *partition), *offset)).collect()
        };
        let mut offsets = of(&[(0, 5), (1, 7)]);
        merge(&mut offsets, of(&[(1, 6), (0, 9), (2, 1)]));
        assert_eq!(offsets, of(&[(0, 9), (1, 7), (2, 1)]));
    }
}
