//! Reads pieces of partitions: one client, one thread at a time, each partition from a queue of its own.
//!
//! The client fetches ahead while nobody reads, so a batch that begins where the one before ended finds its records in
//! memory. What stands elsewhere is sought.
//!
//! How a piece ends, when its last offsets hold no record: by a record behind its end, which is kept for the next piece;
//! by the client's position, which counts the marks of transactions; or, after compaction, because the partition was
//! looked at anew and nothing follows. Never because nothing came for a while.

use super::admission::ahead;
use super::columns::Columns;
use super::config::KafkaConfig;
use super::lookup::Lookup;
use super::loss::Loss;
use super::offset::TopicPartition;
use super::ranges::Piece;
use crate::SourceError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::kafka::{KafkaError, KafkaLog};
use millstream_common::StopSignal;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError as ClientError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::{Message, OwnedMessage};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait for a record before it is looked around.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// After that long without a record it is asked whether any follows, and the user is told.
const SILENCE: Duration = Duration::from_secs(1);
/// A replica that is read in place of the leader may be behind: that long nothing must follow.
const REPLICA_LAG: Duration = Duration::from_secs(5);
/// So long the client may take to be at other offsets.
const SETTLES: Duration = Duration::from_secs(10);
/// So often a position may be refused that the brokers say is there.
const REFUSALS: u32 = 5;

/// What a read is about.
pub(super) struct Task<'a> {
    pub(super) config: &'a KafkaConfig,
    pub(super) name: &'a str,
    pub(super) lookup: &'a Lookup,
    pub(super) stop: &'a StopSignal,
    /// The projected columns, and which of the source they are.
    pub(super) schema: &'a SchemaRef,
    pub(super) projection: &'a [usize],
}

/// Batches by the number of their piece, and what was lost.
pub(super) type ReadPieces = (Vec<(usize, Vec<RecordBatch>)>, Vec<Loss>);

/// A client with partitions.
pub(super) struct Reader {
    consumer: Arc<BaseConsumer<KafkaLog>>,
    log: KafkaLog,
    queues: HashMap<TopicPartition, Queue>,
}

struct Queue {
    queue: PartitionQueue<KafkaLog>,
    /// Up to where the partition has been read.
    done: i64,
    /// A record from behind that.
    held: Option<OwnedMessage>,
}

/// How a piece is going.
struct Progress {
    at: i64,
    until: i64,
    /// Since when nothing came.
    silent: Option<Instant>,
    /// The client said that nothing follows: after the piece was looked at anew, or some time before.
    end: End,
    /// When it was asked last whether anything follows.
    asked: Option<Instant>,
    wait: Duration,
    refusals: u32,
    is_told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Unknown,
    /// Asked; the answer is to come.
    Asked,
    /// Nothing follows.
    Reached,
}

impl Reader {
    /// `partitions` is about how many there are, for all readers together; `group` names them to the brokers.
    pub(super) fn new(name: &str, config: &KafkaConfig, partitions: usize, group: &str) -> Result<Self, SourceError> {
        let options = &config.client;
        let mut settings = options.client_config();
        options.default_to(&mut settings, "group.id", group);
        settings.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        settings.set("auto.offset.reset", "error").set("enable.partition.eof", "true");
        let ahead = ahead(partitions);
        for (setting, value) in [
            ("isolation.level", "read_uncommitted"),
            ("queued.max.messages.kbytes", ahead.to_string().as_str()),
            // A partition may have one answer more than its queue takes. A record that is larger comes all the same.
            ("fetch.message.max.bytes", (ahead << 10).min(1 << 20).to_string().as_str()),
            // A partition that is sought waits for the answer to the others.
            ("fetch.wait.max.ms", "100"),
            // The queue is emptied in bursts: it must fill again at once.
            ("fetch.queue.backoff.ms", "10"),
        ] {
            options.default_to(&mut settings, setting, value);
        }
        let log = KafkaLog::new();
        let consumer = settings.create_with_context(log.clone()).map_err(|error| SourceError::Kafka {
            name: name.to_owned(),
            source: Box::new(KafkaError::new("connect", options.servers(), &error, &log)),
        })?;
        Ok(Self { consumer: Arc::new(consumer), log, queues: HashMap::new() })
    }

    /// Reads pieces, each with its number, one after the other.
    pub(super) fn read(&mut self, task: &Task<'_>, pieces: &[(usize, Piece)]) -> Result<ReadPieces, SourceError> {
        self.seek(task, pieces)?;
        let (mut read, mut losses) = (Vec::with_capacity(pieces.len()), Vec::new());
        for (number, piece) in pieces {
            let batches = self.read_piece(task, piece, &mut losses);
            if batches.is_err() {
                // Where the partition stands is not known.
                self.forget(&piece.place);
            }
            read.push((*number, batches?));
        }
        // Errors of brokers come as events; they go to the log.
        while self.consumer.poll(Duration::ZERO).is_some() {}
        Ok((read, losses))
    }

    /// Makes the first piece of each partition the next that comes.
    fn seek(&mut self, task: &Task<'_>, pieces: &[(usize, Piece)]) -> Result<(), SourceError> {
        let mut seen = BTreeSet::new();
        let first = pieces.iter().map(|(_, piece)| piece).filter(|piece| seen.insert(&piece.place));
        let elsewhere = first.filter(|piece| self.queues.get(&piece.place).is_none_or(|q| q.done != piece.from));
        let places: Vec<(&TopicPartition, i64)> = elsewhere.map(|piece| (&piece.place, piece.from)).collect();
        self.place(task, &places)
    }

    /// Puts partitions at offsets. Nothing that was fetched before is seen again.
    fn place(&mut self, task: &Task<'_>, places: &[(&TopicPartition, i64)]) -> Result<(), SourceError> {
        if places.is_empty() {
            return Ok(());
        }
        let failed = |error: &ClientError, log: &KafkaLog| {
            let action = format!("go to the offsets of {}", places[0].0);
            kafka_error(task, KafkaError::new(action, task.config.client.servers(), error, log))
        };
        let (mut old, mut new) = (TopicPartitionList::new(), TopicPartitionList::new());
        for (place, offset) in places {
            if self.queues.remove(*place).is_some() {
                old.add_partition(&place.topic, place.partition);
            }
            new.add_partition_offset(&place.topic, place.partition, Offset::Offset(*offset))
                .map_err(|error| failed(&error, &self.log))?;
        }
        if old.count() > 0 {
            self.consumer.incremental_unassign(&old).map_err(|error| failed(&error, &self.log))?;
        }
        for (place, offset) in places {
            // Before the partition is assigned, so that no record goes to the queue of all.
            let queue = self.consumer.split_partition_queue(&place.topic, place.partition);
            let queue = queue.ok_or_else(|| failed(&ClientError::Canceled, &self.log))?;
            self.queues.insert((*place).clone(), Queue { queue, done: *offset, held: None });
        }
        self.consumer.incremental_assign(&new).map_err(|error| failed(&error, &self.log))?;
        // Until the client has forgotten where it was, its positions are not those of the new places.
        let moved: BTreeSet<&TopicPartition> = places.iter().map(|(place, _)| *place).collect();
        let begin = Instant::now();
        while self.has_position(&moved).map_err(|error| failed(&error, &self.log))? {
            if begin.elapsed() >= SETTLES {
                return Err(failed(&ClientError::Seek("the client does not let go of its position".into()), &self.log));
            }
            if task.stop.is_set() {
                return Err(kafka_error(
                    task,
                    KafkaError::Stopped { action: format!("go to the offsets of {}", places[0].0) },
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Whether the client has given out anything of one of these partitions.
    fn has_position(&self, places: &BTreeSet<&TopicPartition>) -> KafkaResult<bool> {
        let positions = self.consumer.position()?;
        let is_one = |topic: &str, partition: i32| places.contains(&TopicPartition::new(topic, partition));
        let elements = positions.elements();
        let mut given = elements.iter().filter(|element| matches!(element.offset(), Offset::Offset(_)));
        Ok(given.any(|element| is_one(element.topic(), element.partition())))
    }

    /// Gives a partition back.
    fn forget(&mut self, place: &TopicPartition) {
        if self.queues.remove(place).is_some() {
            let mut list = TopicPartitionList::new();
            list.add_partition(&place.topic, place.partition);
            if let Err(error) = self.consumer.incremental_unassign(&list) {
                tracing::debug!("{place} cannot be given back: {error}");
            }
        }
    }

    /// Gives all partitions of a topic back, with what was fetched ahead of them.
    pub(super) fn forget_topic(&mut self, topic: &str) {
        let places: Vec<TopicPartition> = self.queues.keys().filter(|place| &*place.topic == topic).cloned().collect();
        places.iter().for_each(|place| self.forget(place));
    }

    fn read_piece(
        &mut self,
        task: &Task<'_>,
        piece: &Piece,
        losses: &mut Vec<Loss>,
    ) -> Result<Vec<RecordBatch>, SourceError> {
        let mut columns = Columns::new(task.schema, task.projection, &piece.place);
        let mut going = Progress {
            at: piece.from,
            until: piece.until,
            silent: None,
            end: End::Unknown,
            asked: None,
            wait: Duration::ZERO,
            refusals: 0,
            is_told: false,
        };
        if self.queues.get(&piece.place).is_none_or(|queue| queue.done != piece.from) {
            self.place(task, &[(&piece.place, piece.from)])?;
        }
        self.take_held(task, &piece.place, &mut going, &mut columns)?;
        while going.at < going.until {
            let Some(queue) = self.queues.get_mut(&piece.place) else { break };
            // Most of the time is spent here: record after record, as long as there are.
            let other = loop {
                match queue.queue.poll(going.wait) {
                    Some(Ok(message)) if message.offset() >= going.until => {
                        queue.held = Some(message.detach());
                        going.at = going.until;
                    }
                    Some(Ok(message)) => take(task, &piece.place, &message, &mut going, &mut columns)?,
                    Some(Err(error)) => break Some(error),
                    None => break None,
                }
                if going.at >= going.until {
                    break None;
                }
            };
            match other {
                _ if going.at >= going.until => {}
                Some(error) => {
                    self.trouble(task, &piece.place, &error, &mut going, losses)?;
                    // Troubles that follow each other without a record are a silence, too.
                    if going.at < going.until {
                        self.silence(task, &piece.place, &mut going)?;
                    }
                }
                None => self.silence(task, &piece.place, &mut going)?,
            }
        }
        if let Some(queue) = self.queues.get_mut(&piece.place) {
            queue.done = piece.until;
        }
        columns.finish().map_err(|error| schema_error(task, &error))
    }

    /// The record that an earlier piece found behind its end.
    fn take_held(
        &mut self,
        task: &Task<'_>,
        place: &TopicPartition,
        going: &mut Progress,
        columns: &mut Columns,
    ) -> Result<(), SourceError> {
        let Some(queue) = self.queues.get_mut(place) else { return Ok(()) };
        match queue.held.take() {
            // This piece has no record at all.
            Some(held) if held.offset() >= going.until => {
                going.at = going.until;
                queue.held = Some(held);
                Ok(())
            }
            Some(held) => take(task, place, &held, going, columns),
            None => Ok(()),
        }
    }

    /// Nothing came for a while.
    fn silence(&mut self, task: &Task<'_>, place: &TopicPartition, going: &mut Progress) -> Result<(), SourceError> {
        if task.stop.is_set() {
            return Err(kafka_error(task, KafkaError::Stopped { action: format!("read {place}") }));
        }
        // Marks of transactions are no records, and count.
        going.at = going.at.max(self.position(place).unwrap_or(going.at));
        let now = Instant::now();
        let silent = now.duration_since(*going.silent.get_or_insert(now));
        going.wait = (going.wait * 2).clamp(Duration::from_millis(1), LOOK_AROUND);
        while self.consumer.poll(Duration::ZERO).is_some() {}
        let may_lag = task.config.client.get("client.rack").is_some();
        if going.end == End::Reached && (!may_lag || silent >= REPLICA_LAG) {
            going.at = going.until;
        }
        if going.at >= going.until || silent < SILENCE {
            return Ok(());
        }
        if silent >= task.config.poll_timeout {
            let error = ClientError::MessageConsumption(Code::OperationTimedOut);
            let action = format!(
                "read {place} from offset {} on within kafkaConsumer.pollTimeoutMs of {} ms",
                going.at,
                task.config.poll_timeout.as_millis()
            );
            return Err(kafka_error(task, KafkaError::new(action, task.config.client.servers(), &error, &self.log)));
        }
        let is_due = going.asked.is_none_or(|asked| now.duration_since(asked) >= SILENCE);
        if going.end == End::Unknown && is_due {
            going.asked = Some(now);
        }
        if going.end == End::Unknown && is_due && self.is_within(task, place, going)? {
            // Whatever the client says from now on about an end is about one behind the piece.
            self.place(task, &[(place, going.at)])?;
            going.end = End::Asked;
        }
        if silent >= SILENCE * 5 && !std::mem::replace(&mut going.is_told, true) {
            let complaint = self.log.complaint().unwrap_or_else(|| "nobody says why".into());
            tracing::warn!(
                source = task.name,
                "records of {place} from offset {} on do not come: {complaint}",
                going.at
            );
        }
        Ok(())
    }

    /// Whether the end of the piece is one that its broker has reached.
    fn is_within(&self, task: &Task<'_>, place: &TopicPartition, going: &Progress) -> Result<bool, SourceError> {
        let latest = task.lookup.latest(&BTreeSet::from([place.clone()]))?;
        Ok(latest.get(place).is_some_and(|latest| *latest >= going.until))
    }

    /// Up to where the client has given out a partition.
    fn position(&self, place: &TopicPartition) -> Option<i64> {
        let positions = self.consumer.position().ok()?;
        let element = positions.find_partition(&place.topic, place.partition)?;
        match element.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// The client says something else than a record.
    fn trouble(
        &mut self,
        task: &Task<'_>,
        place: &TopicPartition,
        error: &ClientError,
        going: &mut Progress,
        losses: &mut Vec<Loss>,
    ) -> Result<(), SourceError> {
        if let ClientError::PartitionEOF(_) = error {
            if going.end == End::Asked {
                going.end = End::Reached;
            }
            return Ok(());
        }
        let failed = |log: &KafkaLog| {
            let action = format!("read {place} from offset {} on", going.at);
            Err(kafka_error(task, KafkaError::new(action, task.config.client.servers(), error, log)))
        };
        if let ClientError::MessageConsumptionFatal(_) = error {
            return failed(&self.log);
        }
        match error.rdkafka_error_code() {
            Some(Code::AutoOffsetReset | Code::OffsetOutOfRange | Code::LogTruncation | Code::NoOffset) => {
                going.refusals += 1;
                if going.refusals > REFUSALS {
                    return failed(&self.log);
                }
                self.out_of_range(task, place, going, losses)
            }
            Some(
                Code::UnknownPartition | Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownTopicId,
            ) => {
                if task.lookup.partitions(&task.config.topics)?.contains(place) {
                    // A broker that has just come may not know it yet.
                    task.lookup.pause();
                    return Ok(());
                }
                let why = "the partition is no longer there".to_owned();
                let loss = Loss { place: place.clone(), from: going.at, until: Some(going.until), why };
                lose(task, losses, loss)?;
                going.at = going.until;
                self.forget(place);
                Ok(())
            }
            Some(
                Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::BadMessage
                | Code::BadCompression
                | Code::InvalidMessage
                | Code::InvalidMessageSize
                | Code::MessageSizeTooLarge
                | Code::UnsupportedCompressionType
                | Code::NotImplemented,
            ) => failed(&self.log),
            // A broker that goes away comes back, or records do not come in time.
            _ => Ok(()),
        }
    }

    /// The brokers do not have the offset: it is gone, or was never there.
    fn out_of_range(
        &mut self,
        task: &Task<'_>,
        place: &TopicPartition,
        going: &mut Progress,
        losses: &mut Vec<Loss>,
    ) -> Result<(), SourceError> {
        let places = BTreeSet::from([place.clone()]);
        let low = task.lookup.earliest(&places)?.get(place).copied().unwrap_or(0);
        let high = task.lookup.latest(&places)?.get(place).copied().unwrap_or(0);
        let (lost, why) = if going.at < low {
            (going.at..low.min(going.until), format!("the partition begins at offset {low} now"))
        } else if going.at > high {
            (going.at..going.until, format!("the partition ends at offset {high} now"))
        } else {
            // It is there after all.
            return self.place(task, &[(place, going.at)]);
        };
        going.at = lost.end;
        lose(task, losses, Loss { place: place.clone(), from: lost.start, until: Some(lost.end), why })?;
        match going.at < going.until {
            true => self.place(task, &[(place, going.at)]),
            false => {
                // What comes next is sought.
                self.forget(place);
                Ok(())
            }
        }
    }
}

/// A record of the piece.
fn take<M: Message>(
    task: &Task<'_>,
    place: &TopicPartition,
    message: &M,
    going: &mut Progress,
    columns: &mut Columns,
) -> Result<(), SourceError> {
    let offset = message.offset();
    if offset < going.at {
        return Ok(());
    }
    columns.append(message).map_err(|_| SourceError::Malformed {
        name: task.name.to_owned(),
        place: format!("offset {offset} of {place}"),
        reason: "the key of a header is not UTF-8; read without includeHeaders".into(),
    })?;
    if columns.is_full() {
        columns.cut().map_err(|error| schema_error(task, &error))?;
        if task.stop.is_set() {
            return Err(kafka_error(task, KafkaError::Stopped { action: format!("read {place}") }));
        }
    }
    going.at = offset + 1;
    going.wait = Duration::ZERO;
    going.silent = None;
    going.end = End::Unknown;
    Ok(())
}

/// A loss ends the read, or is kept.
fn lose(task: &Task<'_>, losses: &mut Vec<Loss>, loss: Loss) -> Result<(), SourceError> {
    super::loss::judge(task.name, std::slice::from_ref(&loss), task.config.fails_on_loss)?;
    losses.push(loss);
    Ok(())
}

fn kafka_error(task: &Task<'_>, error: KafkaError) -> SourceError {
    SourceError::Kafka { name: task.name.to_owned(), source: Box::new(error) }
}

fn schema_error(task: &Task<'_>, error: &arrow::error::ArrowError) -> SourceError {
    SourceError::Schema { name: task.name.to_owned(), reason: error.to_string() }
}
