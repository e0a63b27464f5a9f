//! A producer, and rows on their way into it.

use super::columns::{Columns, unfit};
use super::config::{KafkaConfig, topic_fault};
use super::verdict::{Verdict, verdict};
use crate::{SinkBatch, SinkError};
use millstream_client::kafka::{Asking, KafkaError, KafkaLog};
use millstream_common::{BatchId, StopSignal};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait at once for the client, which then looks whether there is more to do.
const STEP: Duration = Duration::from_millis(2);
/// How long a wait goes on after the query is to stop: what the brokers are about to answer is worth it.
const GRACE: Duration = Duration::from_secs(3);
/// How long a topic that was just made may take to be known.
const TOPIC: Duration = Duration::from_secs(10);

/// What the client tells while it writes.
pub(super) struct Reports {
    pub(super) log: KafkaLog,
    /// The first record since the last question that did not arrive: to which topic, and why.
    failed: Mutex<Option<(String, ClientError)>>,
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.log.take(level, facility, line);
    }

    fn error(&self, error: ClientError, reason: &str) {
        ClientContext::error(&self.log, error, reason);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        use rdkafka::Message;
        if let Err((error, message)) = result {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert_with(|| (message.topic().to_owned(), error.clone()));
        }
    }
}

/// Rows could not be written.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The rows are the reason.
    Rows(SinkError),
    /// The brokers or the client are.
    Client(Verdict, KafkaError),
}

/// A producer.
pub(super) struct Writer {
    pub(super) producer: BaseProducer<Reports>,
    servers: String,
    block: Duration,
    timeout: Duration,
    stop: StopSignal,
    /// The topics that are there.
    known: HashSet<String>,
}

impl Writer {
    /// A producer with the name of its transactions, if it has some. Does not wait for a broker.
    pub(super) fn new(config: &KafkaConfig, transaction: Option<&str>) -> Result<Self, SinkError> {
        let client = config.producer(transaction)?;
        let reports = Reports { log: KafkaLog::new(), failed: Mutex::default() };
        let log = reports.log.clone();
        let producer = client.create_with_context(reports);
        let servers = config.client.servers().to_owned();
        let producer = producer.map_err(|error| KafkaError::new("make a producer", &servers, &error, &log))?;
        let (block, timeout, stop) = (config.block, config.client.timeout(), config.stop.clone());
        Ok(Self { producer, servers, block, timeout, stop, known: HashSet::new() })
    }

    /// What an error means while `action` was tried.
    pub(super) fn explain(&self, action: impl Into<String>, error: &ClientError) -> KafkaError {
        match self.fatal() {
            // What comes after the death of a client says nothing of its reason.
            Some((code, reason)) if !matches!(verdict(error, Some(code)), Verdict::GiveUp) => {
                self.producer.context().log.take(RDKafkaLogLevel::Error, "FATAL", &reason);
                KafkaError::new(action, &self.servers, &ClientError::Global(code), &self.producer.context().log)
            }
            _ => KafkaError::new(action, &self.servers, error, &self.producer.context().log),
        }
    }

    /// What to do about an error, and what it means.
    pub(super) fn trouble(&self, action: impl Into<String>, error: &ClientError) -> Trouble {
        Trouble::Client(verdict(error, self.fatal().map(|(code, _)| code)), self.explain(action, error))
    }

    /// Whether what has been waited for since then is to be given up, because the query is to stop.
    pub(super) fn gives_up(&self, since: Instant, action: impl FnOnce() -> String) -> Result<(), Trouble> {
        match self.stop.is_set() && since.elapsed() >= GRACE {
            false => Ok(()),
            true => Err(Trouble::Client(Verdict::GiveUp, KafkaError::Stopped { action: action() })),
        }
    }

    fn fatal(&self) -> Option<(Code, String)> {
        self.producer.client().fatal_error()
    }

    /// Sees that a topic is there, so that its absence is told now and not when its records are too old.
    pub(super) fn find(&mut self, topic: &str) -> Result<(), Trouble> {
        if self.known.contains(topic) {
            return Ok(());
        }
        if let Some(reason) = topic_fault(topic) {
            return Err(Trouble::Rows(unfit(format!("a row has `{topic}` as its `topic`: {reason}"))));
        }
        let begin = Instant::now();
        loop {
            let action = || format!("write to topic `{topic}`");
            let asking = Asking {
                owner: super::FORMAT,
                action: &action(),
                servers: &self.servers,
                patience: self.timeout,
                stop: &self.stop,
                log: &self.producer.context().log,
            };
            let listen = || self.producer.poll(Duration::ZERO);
            let found = asking.ask(listen, |step| self.producer.client().fetch_metadata(Some(topic), step));
            let found = found.map_err(|error| {
                let verdict = if error.is_passing() { Verdict::Abort } else { Verdict::GiveUp };
                Trouble::Client(verdict, error)
            })?;
            match found.topics().first().map(|found| found.error().map(Code::from)) {
                Some(None) => break,
                Some(Some(code @ (Code::UnknownTopicOrPartition | Code::LeaderNotAvailable))) => {
                    // A broker that makes topics by itself does it now.
                    if begin.elapsed() > TOPIC {
                        return Err(self.trouble(action(), &ClientError::MessageProduction(code)));
                    }
                }
                Some(Some(code)) => return Err(self.trouble(action(), &ClientError::MessageProduction(code))),
                None => return Err(self.trouble(action(), &ClientError::NoMessageReceived)),
            }
            self.producer.poll(Duration::from_millis(100));
        }
        self.known.insert(topic.to_owned());
        Ok(())
    }

    /// Hands all rows of a batch to the client, and answers how many. They are on their way then.
    pub(super) fn write(
        &mut self,
        batch: &SinkBatch<'_>,
        columns: &Columns,
        topic: Option<&str>,
    ) -> Result<u64, Trouble> {
        let mut written = 0;
        for rows in batch.rows {
            let parts = columns.read(rows).map_err(Trouble::Rows)?;
            let mut last = topic.unwrap_or_default();
            for row in 0..rows.num_rows() {
                if topic.is_none() {
                    let own = parts.topic(row).map_err(Trouble::Rows)?;
                    if own != last {
                        self.find(own)?;
                        last = own;
                    }
                }
                let mut record = BaseRecord::<[u8], [u8]>::to(last);
                record.payload = parts.value(row);
                record.key = parts.key(row);
                record.partition = parts.partition(row).map_err(Trouble::Rows)?;
                record.headers = parts.headers(row).map_err(Trouble::Rows)?;
                self.send(record, batch.id)?;
                written += 1;
                if u64::is_multiple_of(written, 1024) {
                    self.producer.poll(Duration::ZERO);
                    self.arrived(batch.id)?;
                }
            }
        }
        Ok(written)
    }

    /// Hands a record to the client, and waits for room when it is full.
    fn send(&self, mut record: BaseRecord<'_, [u8], [u8]>, batch: BatchId) -> Result<(), Trouble> {
        let mut full_since = None;
        loop {
            let (error, back) = match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            record = back;
            let action = || format!("write batch {batch} to topic `{}`", record.topic);
            if !matches!(error, ClientError::MessageProduction(Code::QueueFull)) {
                return Err(self.trouble(action(), &error));
            }
            if full_since.get_or_insert_with(Instant::now).elapsed() > self.block {
                return Err(self.trouble(action(), &ClientError::MessageProduction(Code::MessageTimedOut)));
            }
            self.producer.poll(STEP);
            self.arrived(batch)?;
            self.gives_up(full_since.unwrap_or_else(Instant::now), action)?;
        }
    }

    /// Waits until the brokers have all records, or one of them has failed. Each waits as long as the client lets it.
    pub(super) fn drain(&self, batch: BatchId) -> Result<(), Trouble> {
        let begin = Instant::now();
        loop {
            let flushed = self.producer.flush(STEP);
            self.arrived(batch)?;
            self.gives_up(begin, || format!("write batch {batch}"))?;
            if let Some((code, _)) = self.fatal() {
                return Err(self.trouble(format!("write batch {batch}"), &ClientError::Global(code)));
            }
            match flushed {
                Ok(()) => return Ok(()),
                Err(ClientError::Flush(Code::OperationTimedOut)) => {}
                Err(error) => return Err(self.trouble(format!("write batch {batch}"), &error)),
            }
        }
    }

    /// Drops what waits, and lets what is with the brokers come to its end: a transaction can be aborted then.
    pub(super) fn discard(&self) {
        self.producer.purge(PurgeConfig::default().queue());
        let begin = Instant::now();
        let is_enough = || begin.elapsed() >= if self.stop.is_set() { GRACE } else { self.timeout };
        while self.producer.in_flight_count() > 0 && !is_enough() {
            self.producer.poll(STEP);
        }
        drop(self.take_failure());
    }

    /// Whether no record has failed so far.
    fn arrived(&self, batch: BatchId) -> Result<(), Trouble> {
        match self.take_failure() {
            None => Ok(()),
            Some((topic, error)) => Err(self.trouble(format!("write batch {batch} to topic `{topic}`"), &error)),
        }
    }

    fn take_failure(&self) -> Option<(String, ClientError)> {
        self.producer.context().failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
