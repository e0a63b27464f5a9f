//! The last batch of a query, as the brokers have it: the offset of a group that nobody reads by.

use super::config::{KafkaConfig, Transactional};
use crate::SinkError;
use millstream_client::kafka::{Asking, KafkaError, KafkaLog};
use millstream_common::{BatchId, QueryId, StopSignal};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// The partition of the marker's topic; every topic has it.
const PARTITION: i32 = 0;
/// What stands beside the offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The query.
    query: String,
    /// The run of it that wrote the batch.
    run: String,
}

/// A batch that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) batch: BatchId,
    /// The run that wrote it; `None` when it does not say so.
    pub(super) run: Option<Uuid>,
}

/// Reads the marker, and makes the next.
pub(super) struct Markers {
    consumer: BaseConsumer<KafkaLog>,
    log: KafkaLog,
    topic: String,
    group: String,
    servers: String,
    stop: StopSignal,
    query: QueryId,
    run: Uuid,
}

impl Markers {
    /// Does not wait for a broker. With `sees_open`, what transactions do that are not done yet is not waited for.
    pub(super) fn new(
        config: &KafkaConfig,
        terms: &Transactional,
        (query, run): (QueryId, Uuid),
        sees_open: bool,
    ) -> Result<Self, KafkaError> {
        let (log, group) = (KafkaLog::new(), terms.group(query));
        let mut client = config.client.client_config();
        client.set("group.id", &group).set("enable.auto.commit", "false");
        client.set("isolation.level", if sees_open { "read_uncommitted" } else { "read_committed" });
        // A consumer has no use for them, and says so.
        for name in ["acks", "linger.ms", "batch.size", "batch.num.messages", "compression.type", "compression.codec"] {
            client.remove(name);
        }
        let servers = config.client.servers().to_owned();
        let consumer = client
            .create_with_context(log.clone())
            .map_err(|error| KafkaError::new("make a consumer", &servers, &error, &log))?;
        let stop = config.stop.clone();
        Ok(Self { consumer, log, topic: terms.marker_topic.clone(), group, servers, stop, query, run })
    }

    /// Where markers are, for people.
    pub(super) fn place(&self) -> String {
        format!("group {} on topic {} at {}", self.group, self.topic, self.servers)
    }

    /// The last batch that is committed; `None` when the brokers know of none. They are asked for so long.
    pub(super) fn last(&self, patience: Duration) -> Result<Option<Marker>, KafkaError> {
        let action = format!("ask for the last batch in group `{}`", self.group);
        let asking = Asking {
            owner: super::FORMAT,
            action: &action,
            servers: &self.servers,
            patience,
            stop: &self.stop,
            log: &self.log,
        };
        let listen = || while self.consumer.poll(Duration::ZERO).is_some() {};
        // The end of a transaction that an earlier run has left is waited for, too.
        asking.ask(listen, |step| self.committed(step))
    }

    fn committed(&self, timeout: Duration) -> Result<Option<Marker>, ClientError> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, PARTITION);
        let list = self.consumer.committed_offsets(list, timeout)?;
        let element = list.find_partition(&self.topic, PARTITION);
        let element = element.ok_or(ClientError::OffsetFetch(Code::UnknownPartition))?;
        element.error()?;
        Ok(match element.offset() {
            Offset::Offset(offset) => marker(offset, element.metadata()),
            _ => None,
        })
    }

    /// What a transaction commits to say that it has written a batch.
    pub(super) fn next(&self, batch: BatchId) -> Result<(TopicPartitionList, ConsumerGroupMetadata), ClientError> {
        let offset = i64::try_from(batch.0).ok().and_then(|id| id.checked_add(1));
        let offset = offset.ok_or(ClientError::SetPartitionOffset(Code::InvalidArgument))?;
        let note = Note { query: self.query.to_string(), run: self.run.to_string() };
        let note = serde_json::to_string(&note).expect("two strings always have a JSON form");
        let mut list = TopicPartitionList::new();
        let mut element = list.add_partition(&self.topic, PARTITION);
        element.set_offset(Offset::Offset(offset))?;
        element.set_metadata(note);
        let group = self.consumer.group_metadata();
        Ok((list, group.ok_or(ClientError::Subscription("the consumer has no group".into()))?))
    }

    /// The batch is next, and the brokers know of none before it.
    pub(super) fn lost(&self, next: BatchId) -> SinkError {
        SinkError::Elsewhere { sink: super::FORMAT.into(), place: self.place(), next }
    }
}

/// What an offset and the note beside it say.
fn marker(offset: i64, note: &str) -> Option<Marker> {
    let batch = u64::try_from(offset).ok()?.checked_sub(1)?;
    let note: Option<Note> = serde_json::from_str(note).ok();
    Some(Marker { batch: BatchId(batch), run: note.and_then(|note| Uuid::parse_str(&note.run).ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_says_which_batch_is_the_last_and_who_wrote_it() {
        let run = Uuid::from_u128(7);
        let note = format!("{{\"query\":\"q\",\"run\":\"{run}\"}}");
        assert_eq!(marker(1, &note), Some(Marker { batch: BatchId(0), run: Some(run) }));
        assert_eq!(marker(9, "{}"), Some(Marker { batch: BatchId(8), run: None }));
        assert_eq!(marker(9, "\u{0}garbage"), Some(Marker { batch: BatchId(8), run: None }));
        assert_eq!((marker(0, &note), marker(-5, &note)), (None, None));
    }
}
