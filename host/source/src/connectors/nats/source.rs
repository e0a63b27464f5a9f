//! The source of a stream behind the contract of a source.

use super::columns::Columns;
use super::config::NatsConfig;
use super::loss::{self, Loss, Lost};
use super::offset::Position;
use super::outlook::{self, Outlook, is_old, outlook, removed, up_to};
use super::sequences::Sequences;
use super::starting::Start;
use crate::connectors::attempt::patiently;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec, sealed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use millstream_client::nats::{Connection, NatsError, Range, Retention, Stored, StreamState};
use millstream_common::{Options, ReadLimit};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many messages a batch query reads at a time, where the user names no limit.
const BATCH_QUERY_MESSAGES: u64 = 100_000;
/// In the source's folder of the checkpoint: where the query began.
const BEGINNING: &str = "beginning";

/// Makes sources of streams of NATS.
#[derive(Debug, Clone, Copy)]
pub struct NatsSourceFactory;

impl SourceFactory for NatsSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(NatsConfig::new(spec, false)?.schema())
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        // Servers may move; the stream says by itself whether it is the same one.
        NatsConfig::new(spec, false).ok().map(|config| format!("nats stream {}", config.stream))
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(NatsSource::new(spec, context, false)?))
    }

    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(NatsSource::new(spec, context, true)?))
    }
}

/// Where a query began.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Beginning {
    at: Position,
    /// What was gone behind it already, and is not missed.
    gone: Sequences,
}

/// Messages that were read to find the end of a range.
struct Read {
    begin: u64,
    end: Position,
    messages: Vec<Stored>,
}

/// A range that has nothing for the query.
struct Passed {
    begin: u64,
    end: Position,
}

/// The source.
struct NatsSource {
    name: String,
    config: NatsConfig,
    context: SourceContext,
    schema: SchemaRef,
    /// Whether it is read to its end once.
    is_bounded: bool,
    connection: Option<Connection>,
    /// Where the query began.
    beginning: Option<Beginning>,
    /// What there was when everything available was fixed.
    frozen: Option<Option<StreamState>>,
    /// The newest position that was seen.
    latest: Option<Position>,
    /// Of the last range that was answered, what was read already.
    read: Option<Read>,
    /// What was looked at and has nothing for the query.
    passed: Option<Passed>,
    /// How many messages are known to be lost.
    lost: u64,
}

impl NatsSource {
    fn new(spec: &SourceSpec, context: SourceContext, is_bounded: bool) -> Result<Self, SourceError> {
        let config = NatsConfig::new(spec, is_bounded)?;
        Ok(Self {
            name: spec.name.clone(),
            schema: config.schema(),
            config,
            context,
            is_bounded,
            connection: None,
            beginning: None,
            frozen: None,
            latest: None,
            read: None,
            passed: None,
            lost: 0,
        })
    }

    /// Asks something. After an error the connection is of no more use, and the next attempt opens another.
    fn ask<T>(
        &mut self,
        action: &str,
        mut question: impl FnMut(&Connection) -> Result<T, NatsError>,
    ) -> Result<T, SourceError> {
        let (name, stop) = (self.name.clone(), self.context.stop.clone());
        patiently(&name, &stop, || {
            let opened = match self.connection.take().filter(|connection| !connection.is_broken()) {
                Some(connection) => Ok(connection),
                None => Connection::open(&self.config.address, "millstream source", &stop),
            };
            let answer = opened.and_then(|connection| {
                let answer = question(&connection)?;
                self.connection = Some(connection);
                Ok(answer)
            });
            answer.map_err(|source| SourceError::Nats {
                name: self.name.clone(),
                action: format!("{action} stream `{}`", self.config.stream),
                source: Box::new(source),
            })
        })
    }

    /// The stream as it is now.
    fn look(&mut self, with_removed: bool) -> Result<Option<StreamState>, SourceError> {
        let stream = self.config.stream.clone();
        let now = self.ask("look at", |connection| connection.stream(&stream, with_removed))?;
        if now.as_ref().is_some_and(|now| now.retention == Retention::Acknowledged) {
            let reason = "it lets messages go when others have acknowledged them, so no range of it can be read again; name a \
                          stream with retention `limits`, which may have this one as its source";
            let owner = format!("source `{}`", self.name);
            return Err(Options::invalid(&owner, "stream", &stream, reason).into());
        }
        Ok(now)
    }

    /// The position of a logged offset.
    fn position(&self, offset: &Offset) -> Result<Position, SourceError> {
        Position::parse(&self.config.stream, &offset.0)
            .ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn offset(&self, position: &Position) -> Offset {
        Offset(position.to_json(&self.config.stream))
    }

    /// Where the query began; decided once, and written down.
    fn beginning(&mut self) -> Result<Beginning, SourceError> {
        if let Some(beginning) = &self.beginning {
            return Ok(beginning.clone());
        }
        let files = Arc::clone(&self.context.files);
        let beginning = match sealed::read(&self.name, files.as_ref(), BEGINNING)? {
            Some(body) => {
                let json: Result<Value, _> = serde_json::from_str(&body);
                let parsed = json.ok().and_then(|json| {
                    let at = Position::parse(&self.config.stream, json.get("at")?)?;
                    Some(Beginning { at, gone: Sequences::parse(json.get("gone")?)? })
                });
                let reason = format!("it does not say where stream `{}` begins", self.config.stream);
                parsed.ok_or_else(|| sealed::damaged(&self.name, files.as_ref(), BEGINNING, &reason))?
            }
            None => {
                let beginning = self.begin()?;
                let at = beginning.at.to_json(&self.config.stream);
                let body = json!({ "at": at, "gone": beginning.gone.to_json() }).to_string();
                sealed::write(&self.name, files.as_ref(), BEGINNING, &body)?;
                beginning
            }
        };
        Ok(self.beginning.insert(beginning).clone())
    }

    /// Decides where the query begins.
    fn begin(&mut self) -> Result<Beginning, SourceError> {
        let Some(now) = self.look(true)? else {
            tracing::warn!(source = self.name, "stream `{}` is not there yet", self.config.stream);
            return Ok(Beginning { at: outlook::initial(&self.config.start, None), gone: Sequences::default() });
        };
        let start = match self.config.start.clone() {
            Start::Time(time) => {
                let stream = self.config.stream.clone();
                let before = self.ask("look at", |connection| connection.sequence_before(&stream, &time))?;
                // What has come since the stream was looked at is still to come.
                Start::At(before.min(now.last).saturating_add(1))
            }
            start => start,
        };
        let at = outlook::initial(&start, Some(&now));
        let gone = removed(&now, at.sequence, now.last.max(at.sequence));
        Ok(Beginning { at, gone })
    }

    /// Of what is gone from a stream, what is missed: not what was gone before the query began, and not what was seen to be
    /// nothing for it.
    fn missed(&mut self, gone: Sequences, begin: &Position) -> Result<Sequences, SourceError> {
        if gone.is_empty() {
            return Ok(gone);
        }
        let beginning = self.beginning()?;
        let is_same = beginning.at.created.is_some() && beginning.at.created == begin.created;
        let gone = if is_same { gone.without(&beginning.gone) } else { gone };
        Ok(gone.without(&Sequences::between(begin.sequence, self.passed_behind(begin))))
    }

    /// Up to which number it is known that there is nothing for the query behind a position.
    fn passed_behind(&self, begin: &Position) -> u64 {
        let passed = self.passed.as_ref();
        let passed = passed.filter(|passed| passed.end.created == begin.created && passed.begin <= begin.sequence);
        passed.map_or(begin.sequence, |passed| passed.end.sequence.max(begin.sequence))
    }

    fn has_passed(&self, begin: &Position, end: &Position) -> bool {
        begin.created == end.created && self.passed_behind(begin) >= end.sequence
    }

    /// A loss of these numbers, if there are any.
    fn loss(&self, numbers: Sequences, why: &str) -> Option<Loss> {
        let subjects = match self.config.filters.is_empty() {
            true => "",
            false => "; which subjects they had nobody knows any more",
        };
        (!numbers.is_empty()).then(|| Loss {
            stream: self.config.stream.clone(),
            what: Lost::Numbers(numbers),
            why: format!("{why}{subjects}"),
        })
    }

    /// What there is behind a position, and the stream as it is now.
    fn look_ahead(&mut self, at: &Position) -> Result<(Outlook, Option<StreamState>), SourceError> {
        let now = self.look(false)?;
        let stream = self.config.stream.as_str();
        let mut seen = outlook(stream, at, now.as_ref());
        self.latest = Some(seen.end.clone());
        if let Some(frozen) = &self.frozen {
            let then = frozen.as_ref().map(|then| outlook(stream, at, Some(then)));
            seen = up_to(seen, then).map_err(|reason| SourceError::Lost {
                name: self.name.clone(),
                range: format!("after {} of stream `{stream}`", at.sequence),
                reason: format!("{reason} since everything available was fixed"),
            })?;
        }
        Ok((seen, now))
    }

    /// Whether there is anything for the query behind a position, up to another.
    fn has_match(&mut self, begin: &Position, end: &Position) -> Result<bool, SourceError> {
        let stream = self.config.stream.clone();
        let after = self.passed_behind(begin);
        if after >= end.sequence {
            return Ok(false);
        }
        for filter in self.config.filters.clone() {
            let next = self.ask("look at", |connection| connection.next_match(&stream, after, &filter))?;
            if next.is_some_and(|next| next <= end.sequence) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes that a range has nothing for the query; not when some of it is gone, of which nobody knows that.
    fn pass(&mut self, begin: &Position, end: &Position, now: Option<&StreamState>) -> Result<bool, SourceError> {
        if self.has_passed(begin, end) {
            return Ok(true);
        }
        if now.is_some_and(|now| now.removed_between > 0) {
            let now = self.look(true)?.filter(|now| end.created.as_ref() == Some(&now.created));
            let gone = now.map_or(Sequences::default(), |now| removed(&now, begin.sequence, end.sequence));
            if !self.missed(gone, begin)?.is_empty() {
                return Ok(false);
            }
        }
        self.passed = Some(Passed { begin: begin.sequence, end: end.clone() });
        Ok(true)
    }

    /// The end of a range of at most so many messages, which are kept.
    fn end_within(&mut self, begin: &Position, end: &Position, most: u64) -> Result<Position, SourceError> {
        let mut messages = Vec::new();
        let last = self.messages(begin.sequence, end.sequence, most, &mut |page| {
            messages.extend(page);
            Ok(())
        })?;
        let end = Position { sequence: last, created: end.created.clone() };
        self.read = Some(Read { begin: begin.sequence, end: end.clone(), messages });
        Ok(end)
    }

    /// Reads messages behind the first number, up to the second, and at most so many; answers up to where nothing is left.
    fn messages(
        &mut self,
        after: u64,
        until: u64,
        most: u64,
        take: &mut dyn FnMut(Vec<Stored>) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        let (stream, filters) = (self.config.stream.clone(), self.config.filters.clone());
        let (mut at, mut room, mut failed) = (after, most, None);
        let last = self.ask("read", |connection| {
            let range = Range { stream: &stream, after: at, until, most: room, filters: &filters, headers_only: false };
            connection.read(&range, &mut |page| {
                if let Some(last) = page.last() {
                    at = last.sequence;
                    room = room.saturating_sub(page.len() as u64);
                    failed = failed.take().or(take(page).err());
                }
            })
        })?;
        failed.map_or(Ok(last), Err)
    }

    /// The rows of a range, and what is missed of it.
    fn rows(
        &mut self,
        (begin, end): (&Position, &Position),
        (schema, projection): (&SchemaRef, &[usize]),
    ) -> Result<(Vec<RecordBatch>, Option<Loss>), SourceError> {
        let is_there = |now: &StreamState| Some(&now.created) == end.created.as_ref();
        let all = Sequences::between(begin.sequence, end.sequence);
        let why = "the stream was removed after this range was logged";
        let mut columns = Columns::new(schema, projection);
        let mut found = Sequences::default();
        let name = self.name.clone();
        let mut append = |message: &Stored| {
            found.push(message.sequence);
            columns.append(message).map_err(|error| of_arrow(&name, &error))
        };
        match self.read.take().filter(|read| read.begin == begin.sequence && read.end == *end) {
            Some(read) => {
                read.messages.iter().try_for_each(&mut append)?;
                self.read = Some(read);
            }
            None => {
                if !self.look(false)?.is_some_and(|now| is_there(&now)) {
                    return Ok((Vec::new(), self.loss(all, why)));
                }
                self.messages(begin.sequence, end.sequence, u64::MAX, &mut |page| {
                    page.iter().try_for_each(&mut append)
                })?;
            }
        }
        // A stream that was made meanwhile has other messages of these numbers.
        let Some(now) = self.look(false)?.filter(is_there) else {
            return Ok((Vec::new(), self.loss(all, why)));
        };
        let gone = if self.config.filters.is_empty() {
            all
        } else if now.first > begin.sequence.saturating_add(1) || now.removed_between > 0 || now.last < end.sequence {
            let now = self.look(true)?.filter(is_there);
            now.map_or(all, |now| removed(&now, begin.sequence, end.sequence))
        } else {
            Sequences::default()
        };
        let missed = self.missed(gone.without(&found), begin)?;
        let rows = columns.finish().map_err(|error| of_arrow(&self.name, &error))?;
        Ok((rows, self.loss(missed, "they were removed before they were read")))
    }
}

fn of_arrow(name: &str, error: &ArrowError) -> SourceError {
    SourceError::Schema { name: name.to_owned(), reason: error.to_string() }
}

impl Source for NatsSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn description(&self) -> String {
        let filters = match self.config.filters.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.config.filters.join(", ")),
        };
        format!("NatsStream[{}{filters} at {}]", self.config.stream, self.config.address.place())
    }

    fn read_limit(&self) -> ReadLimit {
        match self.config.most {
            Some(most) => ReadLimit::MaxRows(most),
            None if self.is_bounded => ReadLimit::MaxRows(BATCH_QUERY_MESSAGES),
            None => ReadLimit::AllAvailable,
        }
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let at = match start {
            Some(start) => self.position(start)?,
            None => self.beginning()?.at,
        };
        let (seen, now) = self.look_ahead(&at)?;
        let (begin, end) = (&seen.begin, &seen.end);
        let front = self.missed(seen.front.clone(), begin)?;
        let losses: Vec<Loss> =
            seen.loss.clone().into_iter().chain(self.loss(front, "they were removed before they were read")).collect();
        if self.config.fails_on_loss {
            loss::judge(&self.name, &losses, true)?;
        }
        self.read = None;
        let limit = match limit {
            ReadLimit::MaxRows(most) => most.max(1),
            _ => u64::MAX,
        };
        let until = if end.sequence <= begin.sequence {
            end.clone()
        } else if self.config.filters.is_empty() {
            // No batch is made of what is gone.
            let first = now.as_ref().map_or(0, |now| now.first.saturating_sub(1));
            let sequence = begin.sequence.max(first).saturating_add(limit).min(end.sequence);
            Position { sequence, created: end.created.clone() }
        } else if self.has_match(begin, end)? {
            if limit == u64::MAX { end.clone() } else { self.end_within(begin, end, limit)? }
        } else if self.pass(begin, end, now.as_ref())?
            && losses.is_empty()
            && !now.is_some_and(|now| is_old(begin, &now))
        {
            at.clone()
        } else {
            end.clone()
        };
        Ok(if until == at { start.cloned() } else { Some(self.offset(&until)) })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        self.latest.as_ref().map(|latest| self.offset(latest))
    }

    fn metrics(&mut self, at: Option<&Offset>) -> BTreeMap<String, String> {
        let mut metrics = BTreeMap::new();
        let at = at.and_then(|at| self.position(at).ok());
        if let Some((at, latest)) = at.zip(self.latest.as_ref()) {
            let read = if at.created == latest.created { self.passed_behind(&at) } else { 0 };
            metrics.insert("offsetsBehindLatest".to_owned(), latest.sequence.saturating_sub(read).to_string());
        }
        if self.lost > 0 {
            metrics.insert("offsetsLost".to_owned(), self.lost.to_string());
        }
        metrics
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let until = self.position(end)?;
        let from = match start {
            Some(start) => self.position(start)?,
            None => self.beginning()?.at,
        };
        let schema = self.schema.project(projection).map_err(|error| of_arrow(&self.name, &error))?;
        let schema: SchemaRef = Arc::new(schema);
        let (mut lists, mut losses) = (Vec::new(), Vec::new());
        let is_other = from.created.is_some() && from.created != until.created;
        let begin = Position { sequence: if is_other { 0 } else { from.sequence }, created: until.created.clone() };
        let after = |after: u64, why: &str| Loss {
            stream: self.config.stream.clone(),
            what: Lost::After(after),
            why: why.to_owned(),
        };
        if is_other {
            losses.push(after(from.sequence, "the stream was removed"));
        } else if until.sequence < from.sequence {
            losses.push(after(until.sequence, "the server went back to what it was before"));
        }
        if until.sequence > begin.sequence && until.created.is_some() {
            let (rows, loss) = self.rows((&begin, &until), (&schema, projection))?;
            losses.extend(loss);
            if !rows.is_empty() {
                lists.push(rows);
            }
        }
        let lost = loss::judge(&self.name, &losses, self.config.fails_on_loss)?;
        self.lost = self.lost.saturating_add(lost);
        Ok(lists)
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.beginning()?;
        self.frozen = Some(self.look(false)?);
        Ok(())
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}
