//! The sink: a batch goes out, and the book says so.

use super::FORMAT;
use super::book::{Begun, Book, Entry};
use super::columns::Columns;
use super::config::NatsConfig;
use super::messages::Messages;
use crate::connectors::attempt::{self, patiently};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::datatypes::{Schema, SchemaRef};
use millstream_client::nats::{Connection, NatsError, Range, Retention, StreamState, matches};
use millstream_common::{BatchId, Clock, Options, OutputMode, QueryId, StopSignal, SystemClock};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the book is tried at once when somebody writes there.
const ATTEMPTS: u32 = 10;
/// So many messages go out before it is looked whether this run may still write.
const PIECE: usize = 10_000;
/// A stream must know the ids of messages for that long at least.
const SHORTEST_WINDOW: Duration = Duration::from_secs(10);

/// Makes sinks that write to streams of NATS.
#[derive(Debug, Clone, Copy, Default)]
pub struct NatsSinkFactory;

impl SinkFactory for NatsSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        NatsConfig::new(spec).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        Columns::of(schema, NatsConfig::new(spec)?.subject.as_deref()).map(drop)
    }

    fn check_place(&self, spec: &SinkSpec, schema: &SchemaRef, stop: &StopSignal) -> Result<(), SinkError> {
        self.check_columns(spec, schema)?;
        let nobody = QueryId(uuid::Uuid::nil());
        let mut sink = NatsSink::new(NatsConfig::new(spec)?, nobody, Arc::new(SystemClock::default()), stop.clone());
        sink.patiently("open", |sink| sink.look().map(drop))
    }

    fn open_idle(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let SinkContext { query, clock, stop, .. } = context;
        Ok(Box::new(NatsSink::new(NatsConfig::new(spec)?, query, clock, stop)))
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let SinkContext { query, clock, stop, .. } = context;
        let mut sink = NatsSink::new(NatsConfig::new(spec)?, query, clock, stop);
        sink.patiently("open", NatsSink::claim)?;
        Ok(Box::new(sink))
    }
}

/// Why an attempt failed.
pub(super) type Failure = attempt::Failure<NatsError>;

/// What this run knows of the book.
struct Page {
    /// The number of the run.
    run: u64,
    /// The message that says what the book says.
    revision: u64,
    entry: Entry,
    /// Whether an answer about it was lost since.
    is_doubtful: bool,
}

struct NatsSink {
    config: NatsConfig,
    query: QueryId,
    clock: Arc<dyn Clock>,
    /// Set when nothing is to be waited for any more.
    stop: StopSignal,
    book: Book,
    connection: Option<Connection>,
    page: Option<Page>,
    /// The newest batch that the book has confirmed to this run.
    confirmed: Option<BatchId>,
}

impl NatsSink {
    fn new(config: NatsConfig, query: QueryId, clock: Arc<dyn Clock>, stop: StopSignal) -> Self {
        let book = Book::new(&config.bucket, query, &config.stream);
        Self { config, query, clock, stop, book, connection: None, page: None, confirmed: None }
    }

    fn connection(&mut self) -> Result<&Connection, NatsError> {
        let connection = match self.connection.take().filter(|connection| !connection.is_broken()) {
            Some(connection) => connection,
            None => Connection::open(&self.config.address, "millstream sink", &self.stop)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Tries until it goes well, or fails in a way that waiting does not mend, or has taken long enough, or nobody wants it any
    /// more. A failed attempt leaves no connection, and doubt about the book.
    fn patiently<T>(
        &mut self,
        action: &'static str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, SinkError> {
        let (stop, retry, place) = (self.stop.clone(), self.config.retry, self.config.place());
        let attempt = || {
            attempt(self).inspect_err(|_| {
                self.connection = None;
                if let Some(page) = &mut self.page {
                    page.is_doubtful = true;
                }
            })
        };
        patiently(FORMAT, (&stop, retry), attempt, |source| SinkError::Nats { action, place, source })
    }

    /// The stream as it is now.
    fn stream(&mut self) -> Result<StreamState, Failure> {
        let stream = self.config.stream.clone();
        let connection = self.connection()?;
        let missing = NatsError::NoStream { place: connection.place().to_owned(), stream: stream.clone() };
        Ok(connection.stream(&stream, false)?.ok_or(missing)?)
    }

    /// The stream, if rows can go there.
    fn look(&mut self) -> Result<StreamState, Failure> {
        let state = self.stream()?;
        let stream = &self.config.stream;
        let unfit = |reason: String| {
            let owner = format!("sink `{FORMAT}`");
            Failure::Sink(Options::invalid(&owner, "stream", stream, &reason).into())
        };
        if let Some(why) = state.takes_nothing {
            return Err(unfit(format!("nothing can be written there: {why}")));
        }
        if state.duplicate_window < SHORTEST_WINDOW {
            return Err(unfit(format!(
                "it knows the ids of messages for {} ms only, and what a connection that broke still delivers would be there \
                 twice; let it be 2 minutes, and no less than {} seconds: `nats stream edit --dupe-window 2m`",
                state.duplicate_window.as_millis(),
                SHORTEST_WINDOW.as_secs()
            )));
        }
        let is_taken = |subject: &String| state.subjects.iter().any(|filter| matches(filter, subject));
        if let Some(subject) = self.config.subject.as_ref().filter(|subject| !is_taken(subject)) {
            let (place, subject) = (self.config.place(), subject.clone());
            return Err(NatsError::NotTaken { place, subject }.into());
        }
        Ok(state)
    }

    /// Takes the book for this run.
    fn claim(&mut self) -> Result<(), Failure> {
        let replicas = self.look()?.replicas;
        let book = self.book.clone();
        let connection = self.connection()?;
        for _ in 0..ATTEMPTS {
            let (revision, before) = match book.read(connection)? {
                Some(found) => found,
                None => {
                    book.make(connection, replicas)?;
                    (0, Entry::default())
                }
            };
            let entry = Entry { run: before.run + 1, ..before };
            if let Some(revision) = book.write(connection, revision, &entry)? {
                self.confirmed = entry.newest();
                self.page = Some(Page { run: entry.run, revision, entry, is_doubtful: false });
                return Ok(());
            }
        }
        Err(self.disturbed())
    }

    /// Somebody writes into the book all the time.
    fn disturbed(&self) -> Failure {
        let message = "somebody else changes the account of batches all the time".to_owned();
        NatsError::Busy { place: self.config.place(), message }.into()
    }

    /// What the book says, if this run may write. What was said last is believed, unless an answer about it was lost; the book
    /// itself notices when somebody else has written.
    fn entry(&mut self, batch: BatchId) -> Result<Entry, Failure> {
        match &self.page {
            Some(page) if !page.is_doubtful => Ok(page.entry.clone()),
            Some(_) => self.reread(batch),
            None => self.claimed(),
        }
    }

    /// Reads the book.
    fn reread(&mut self, batch: BatchId) -> Result<Entry, Failure> {
        let book = self.book.clone();
        let found = book.read(self.connection()?)?;
        let (sink, place) = (FORMAT.to_owned(), self.config.place());
        let run = self.page.as_ref().map(|page| page.run);
        let newest = found.as_ref().and_then(|(_, entry)| entry.newest());
        match (found, self.confirmed) {
            (Some((_, entry)), _) if Some(entry.run) > run => Err(SinkError::Fenced { sink, place, batch }.into()),
            (_, Some(confirmed)) if newest < Some(confirmed) => {
                let found = newest.map_or("none".to_owned(), |found| format!("batch {found}"));
                Err(SinkError::WentBack { sink, place, batch, confirmed, found }.into())
            }
            (Some((revision, entry)), _) if Some(entry.run) == run => {
                self.page = Some(Page { run: entry.run, revision, entry: entry.clone(), is_doubtful: false });
                Ok(entry)
            }
            // The server has forgotten this run, and nothing that it had confirmed.
            _ => self.claimed(),
        }
    }

    /// Takes the book for this run; answers what it says.
    fn claimed(&mut self) -> Result<Entry, Failure> {
        self.claim()?;
        Ok(self.page.as_ref().map(|page| page.entry.clone()).unwrap_or_default())
    }

    /// Writes into the book, as long as this run may.
    fn note(&mut self, batch: BatchId, change: impl Fn(&mut Entry)) -> Result<(), Failure> {
        let book = self.book.clone();
        for _ in 0..ATTEMPTS {
            let mut entry = self.entry(batch)?;
            let revision = self.page.as_ref().map_or(0, |page| page.revision);
            change(&mut entry);
            match book.write(self.connection()?, revision, &entry)? {
                Some(revision) => {
                    self.confirmed = entry.newest();
                    self.page = Some(Page { run: entry.run, revision, entry, is_doubtful: false });
                    return Ok(());
                }
                None => {
                    self.reread(batch)?;
                }
            }
        }
        Err(self.disturbed())
    }

    /// Writes a batch; `there` is of which messages it is known that the stream has them. Answers whether any went out now.
    fn write(&mut self, batch: BatchId, messages: &Messages<'_>, there: &mut [bool]) -> Result<bool, Failure> {
        let entry = self.entry(batch)?;
        if entry.newest() >= Some(batch) {
            self.confirmed = entry.newest();
            return Ok(false);
        }
        let state = self.stream()?;
        let most = state.most_bytes.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let most = most.min(self.connection()?.most_bytes());
        if let Some(size) = messages.size_beyond(most) {
            let reason = format!("a row makes a message of {size} bytes, and no more than {most} are taken");
            return Err(self.bad_rows(batch, reason).into());
        }
        match entry.begun.filter(|begun| begun.batch == batch.0) {
            Some(begun) => self.find(&begun, &state, batch, messages, there)?,
            None => {
                let (at, server) = (self.clock.now_ms(), self.connection()?.server_id());
                let (after, created) = (state.last, state.created.clone());
                let begun = Begun { batch: batch.0, after, created, server, at };
                self.note(batch, |entry| entry.begun = Some(begun.clone()))?;
            }
        }
        let left: Vec<usize> = (0..messages.len()).filter(|number| !there[*number]).collect();
        let mut looked = Instant::now();
        for piece in left.chunks(PIECE) {
            // Whoever was held up for long may have been replaced, and the ids be forgotten.
            if looked.elapsed() > state.duplicate_window / 2 {
                self.reread(batch)?;
                looked = Instant::now();
            }
            let mut bad = None;
            let outgoing =
                piece.iter().map_while(|number| messages.get(*number).map_err(|reason| bad = Some(reason)).ok());
            let mut acked = |at: u64| {
                if let Some(number) = usize::try_from(at).ok().and_then(|at| piece.get(at)) {
                    there[*number] = true;
                }
            };
            self.connection()?.publish(outgoing, &mut acked)?;
            if let Some(reason) = bad {
                return Err(self.bad_rows(batch, reason).into());
            }
        }
        self.note(batch, |entry| entry.done = Some(batch.0))?;
        Ok(!left.is_empty())
    }

    fn bad_rows(&self, batch: BatchId, reason: String) -> SinkError {
        SinkError::Rows { sink: FORMAT.to_owned(), place: self.config.place(), batch, reason }
    }

    /// Finds what the stream has of a batch that has begun before.
    fn find(
        &mut self,
        begun: &Begun,
        state: &StreamState,
        batch: BatchId,
        messages: &Messages<'_>,
        there: &mut [bool],
    ) -> Result<(), Failure> {
        // In another stream of the name, and in one that went back, it may be anywhere.
        let is_same = begun.created == state.created && begun.after <= state.last;
        let after = if is_same { begun.after } else { 0 };
        let (stream, filters) = (self.config.stream.clone(), Vec::from_iter(self.config.subject.clone()));
        let finder = messages.finder();
        let range =
            Range { stream: &stream, after, until: state.last, most: u64::MAX, filters: &filters, headers_only: true };
        // Of a work queue nobody can read beside those who work.
        let is_readable = state.retention == Retention::Limits;
        let connection = self.connection()?;
        if is_readable {
            connection.read(&range, &mut |page| {
                for message in page {
                    if let Some(number) = message.header("Nats-Msg-Id").and_then(|id| finder.find(id)) {
                        there[number] = true;
                    }
                }
            })?;
        }
        let (now, server) = (connection.stream(&stream, true)?, connection.server_id());
        let is_whole = is_readable
            && now.as_ref().is_some_and(|now| {
                let is_removed = now.removed.iter().any(|number| *number > after && *number <= state.last);
                now.created == state.created && now.first <= after + 1 && !is_removed
            });
        let missing = there.iter().filter(|is_there| !**is_there).count();
        let window = i64::try_from(state.duplicate_window.as_millis()).unwrap_or(i64::MAX);
        // The server itself still knows what it had.
        let is_known = begun.server == server && self.clock.now_ms().saturating_sub(begun.at) < window / 2;
        if is_whole || missing == 0 || (is_known && is_same) {
            return Ok(());
        }
        let why = match is_readable {
            true => format!("messages behind {after} are gone, which may have been these"),
            false => {
                "they may have been taken out of it, for it is a work queue or keeps what is of interest".to_owned()
            }
        };
        let reason = format!("of {} messages {missing} are not known to be in the stream, and {why}", messages.len());
        if self.config.writes_on_loss {
            tracing::warn!(sink = FORMAT, "{reason}; they go out, perhaps once more");
            return Ok(());
        }
        Err(SinkError::Uncertain { sink: FORMAT.to_owned(), place: self.config.place(), batch, reason }.into())
    }
}

impl Sink for NatsSink {
    fn description(&self) -> String {
        format!("NatsSink[{}]", self.config.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let config = self.config.clone();
        let schema: &Schema = batch.schema;
        let target = (config.stream.as_str(), config.subject.as_deref());
        let messages = Messages::new((self.query, batch.id), target, (schema, batch.rows))?;
        let messages = messages.map_err(|reason| self.bad_rows(batch.id, reason))?;
        if messages.len() == 0 {
            return Ok(SinkReport { rows: 0 });
        }
        let mut there = vec![false; messages.len()];
        let mut tried = false;
        let written = self.patiently("write", |sink| {
            // What an earlier attempt of this call may have written is of this call.
            let again = std::mem::replace(&mut tried, true);
            Ok(sink.write(batch.id, &messages, &mut there)? || again)
        })?;
        Ok(SinkReport { rows: if written { messages.len() as u64 } else { 0 } })
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}
