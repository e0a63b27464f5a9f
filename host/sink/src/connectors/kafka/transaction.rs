//! Batches as transactions: exactly once.

use super::FORMAT;
use super::columns::Columns;
use super::config::{KafkaConfig, Transactional};
use super::marker::Markers;
use super::verdict::Verdict;
use super::writer::{Reports, Trouble, Writer};
use crate::{SinkBatch, SinkError};
use arrow::array::RecordBatch;
use millstream_client::kafka::KafkaError;
use millstream_client::patience::pause;
use millstream_common::{BatchId, QueryId, describe_chain};
use rdkafka::error::{KafkaError as ClientError, KafkaResult};
use rdkafka::producer::{BaseProducer, Producer};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often a batch is written before its trouble is told.
const ATTEMPTS: u32 = 4;
/// How long to wait after the first trouble; longer after each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the client is called at once: it goes on by itself, and is asked again.
const CALL: Duration = Duration::from_secs(3);
/// How long the last batch is asked for before a transaction that nobody will end is believed to hold it back.
const HELD: Duration = Duration::from_secs(5);

/// How long a marker is left as it is by batches without rows: brokers forget one that is never renewed, after a week, or after
/// a day where they are older.
const MARKED: Duration = Duration::from_secs(12 * 60 * 60);

/// Writes batches as transactions of one query.
pub(super) struct Transactions {
    config: KafkaConfig,
    terms: Transactional,
    query: QueryId,
    /// This run of the query.
    run: Uuid,
    writer: Writer,
    markers: Markers,
    /// The last batch that is written.
    last: Option<BatchId>,
    /// When this run wrote a marker last.
    marked: Option<Instant>,
    /// The writer is of no use any more.
    is_broken: bool,
    /// Another run has taken over; this one does nothing any more, for a new client would lock out the other.
    is_over: bool,
}

impl Transactions {
    /// Ends what an earlier run has left open, locks it out, and asks for the last batch.
    pub(super) fn open(config: KafkaConfig, terms: Transactional, query: QueryId) -> Result<Self, SinkError> {
        let run = Uuid::new_v4();
        let markers = Markers::new(&config, &terms, (query, run), false)?;
        let writer = connect(&config, &terms, query)?;
        let mut transactions = Self {
            config,
            terms,
            query,
            run,
            writer,
            markers,
            last: None,
            marked: None,
            is_broken: false,
            is_over: false,
        };
        transactions.last = transactions.last_committed()?;
        Ok(transactions)
    }

    /// Writes a batch, unless it is there; answers how many rows it wrote.
    pub(super) fn add(&mut self, batch: &SinkBatch<'_>, columns: &Columns) -> Result<u64, SinkError> {
        if self.is_over {
            return Err(self.taken_over("this run writes no more".into()));
        }
        if self.is_broken {
            self.reconnect()?;
        }
        if self.last >= Some(batch.id) {
            return Ok(0);
        }
        let rows = batch.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        match self.last {
            None if batch.id > BatchId::FIRST && !self.terms.goes_on_without_marker => {
                return Err(self.markers.lost(batch.id));
            }
            Some(_) if rows == 0 && self.marked.is_some_and(|at| at.elapsed() < MARKED) => {
                // Nothing could be there twice.
                self.last = Some(batch.id);
                return Ok(0);
            }
            _ => {}
        }
        let mut attempt = 1;
        loop {
            let Err(trouble) = self.attempt(batch, columns) else { break };
            let error = self.recover(trouble)?;
            if self.last >= Some(batch.id) {
                // It had arrived, only the answer had not.
                break;
            }
            if attempt == ATTEMPTS {
                return Err(error.into());
            }
            tracing::warn!(batch = batch.id.0, attempt, "the batch is written once more: {error}");
            pause(PAUSE * attempt, &self.config.stop);
            attempt += 1;
        }
        (self.last, self.marked) = (Some(batch.id), Some(Instant::now()));
        Ok(rows)
    }

    fn attempt(&mut self, batch: &SinkBatch<'_>, columns: &Columns) -> Result<(), Trouble> {
        let action = format!("write batch {}", batch.id);
        self.call(&action, |producer, _| producer.begin_transaction())?;
        self.writer.write(batch, columns, self.config.topic.as_deref())?;
        self.writer.drain(batch.id)?;
        self.mark(&action, batch.id)?;
        self.call(&action, |producer, timeout| producer.commit_transaction(timeout))
    }

    /// Puts the marker of a batch into the open transaction.
    fn mark(&self, action: &str, batch: BatchId) -> Result<(), Trouble> {
        let (offsets, group) = self.markers.next(batch).map_err(|error| self.writer.trouble(action, &error))?;
        // Unlike the others it cannot be resumed, so it has its whole time at once.
        let whole = self.config.client.timeout();
        self.call(action, |producer, _| producer.send_offsets_to_transaction(&offsets, &group, whole))
    }

    /// Makes the next attempt possible, and answers why there must be one.
    fn recover(&mut self, trouble: Trouble) -> Result<KafkaError, SinkError> {
        match trouble {
            Trouble::Rows(error) => {
                self.abort()?;
                Err(error)
            }
            Trouble::Client(Verdict::Fenced, error) => Err(self.taken_over(error.into())),
            Trouble::Client(Verdict::GiveUp, error) => {
                self.abort()?;
                Err(error.into())
            }
            Trouble::Client(Verdict::Abort, error) => {
                self.abort()?;
                if self.is_broken {
                    self.reconnect()?;
                }
                Ok(error)
            }
            Trouble::Client(Verdict::Again | Verdict::Reconnect, error) => {
                self.reconnect()?;
                Ok(error)
            }
        }
    }

    /// Ends the transaction so that nobody sees its records. A client that cannot is broken.
    fn abort(&mut self) -> Result<(), SinkError> {
        self.writer.discard();
        match self.call("abort a batch", |producer, timeout| producer.abort_transaction(timeout)) {
            Ok(()) => Ok(()),
            Err(Trouble::Client(Verdict::Fenced, error)) => Err(self.taken_over(error.into())),
            Err(trouble) => {
                tracing::debug!("the transaction is left to the next client: {trouble:?}");
                self.is_broken = true;
                Ok(())
            }
        }
    }

    /// Takes a new client, which ends what the old one left, and asks what became of it.
    fn reconnect(&mut self) -> Result<(), SinkError> {
        self.is_broken = true;
        // Whoever has taken over is not locked out by this run again.
        let identity = (self.query, self.run);
        let seen = Markers::new(&self.config, &self.terms, identity, true)?.last(self.config.client.timeout())?;
        if let Some(marker) = seen
            && Some(marker.batch) > self.last
            && marker.run != Some(self.run)
        {
            return Err(self.taken_over(format!("it has written batch {}", marker.batch).into()));
        }
        self.writer = connect(&self.config, &self.terms, self.query)?;
        let last = self.last_committed()?;
        // Batches without rows leave no marker.
        self.last = self.last.max(last);
        self.is_broken = false;
        Ok(())
    }

    /// Asks the brokers for the last batch, when everything before this client has been ended.
    ///
    /// What a killed run sent may reach the keeper of the group after the end of its transaction. Then the group waits for
    /// an end that never comes, and answers nobody (KIP-890 tells how). It is the next transaction of the same name that
    /// ends it.
    fn last_committed(&mut self) -> Result<Option<BatchId>, SinkError> {
        let held = match self.markers.last(HELD.min(self.config.client.timeout())) {
            Err(error) if error.is_passing() => error,
            answer => return Ok(answer?.map(|marker| marker.batch)),
        };
        tracing::warn!("an empty transaction is to end what holds back the last batch: {}", describe_chain(&held));
        self.end_what_hangs()?;
        Ok(self.markers.last(self.config.client.timeout())?.map(|marker| marker.batch))
    }

    /// A transaction that takes part in the group, and is aborted.
    fn end_what_hangs(&mut self) -> Result<(), SinkError> {
        let action = format!("end what earlier runs have left in {}", self.markers.place());
        let touched = self.call(&action, |producer, _| producer.begin_transaction()).and_then(|()| {
            self.mark(&action, BatchId::FIRST)?;
            self.call(&action, |producer, timeout| producer.abort_transaction(timeout))
        });
        touched.map_err(|trouble| match trouble {
            Trouble::Client(Verdict::Fenced, error) => self.taken_over(error.into()),
            trouble => told(trouble),
        })
    }

    /// Calls the client until it has an answer.
    fn call(
        &self,
        action: &str,
        call: impl Fn(&BaseProducer<Reports>, Duration) -> KafkaResult<()>,
    ) -> Result<(), Trouble> {
        again(&self.writer, self.config.client.timeout(), action, call)
    }

    fn taken_over(&mut self, source: Box<dyn std::error::Error + Send + Sync>) -> SinkError {
        self.is_over = true;
        SinkError::TakenOver { sink: FORMAT.into(), place: self.markers.place(), query: self.query, source }
    }
}

/// A client for the transactions of a query, which locks out the one before.
fn connect(config: &KafkaConfig, terms: &Transactional, query: QueryId) -> Result<Writer, SinkError> {
    let mut writer = Writer::new(config, Some(&terms.transaction(query)))?;
    writer.find(&terms.marker_topic).map_err(told)?;
    if let Some(topic) = &config.topic {
        writer.find(topic).map_err(told)?;
    }
    let action = format!("take over the transactions `{}`", terms.transaction(query));
    let begun =
        again(&writer, config.client.timeout(), &action, |producer, timeout| producer.init_transactions(timeout));
    begun.map_err(told)?;
    Ok(writer)
}

/// Trouble as the query is told of it.
fn told(trouble: Trouble) -> SinkError {
    match trouble {
        Trouble::Rows(error) => error,
        Trouble::Client(_, error) => error.into(),
    }
}

/// Calls a client until it has an answer, or not in time: then nobody knows what became of it. It is called for a short time,
/// and resumed.
fn again(
    writer: &Writer,
    timeout: Duration,
    action: &str,
    call: impl Fn(&BaseProducer<Reports>, Duration) -> KafkaResult<()>,
) -> Result<(), Trouble> {
    let begin = Instant::now();
    loop {
        writer.gives_up(begin, || action.to_owned())?;
        let left = timeout.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
        let error: ClientError = match call(&writer.producer, left.min(CALL)) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        writer.producer.poll(Duration::from_millis(20));
        match writer.trouble(action, &error) {
            // What no waiting mends, such as a login that fails, is in the log of the client alone.
            Trouble::Client(Verdict::Again, said) if begin.elapsed() < timeout && said.is_passing() => {}
            trouble => return Err(trouble),
        }
    }
}
