//! The source of Redis' streams behind the contract of a source.

use super::columns::{BadEntry, Columns};
use super::config::RedisConfig;
use super::id::EntryId;
use super::look::{StreamState, look};
use super::loss::{self, Loss};
use super::offset::{self, Position, Positions};
use super::outlook::{self, Outlook, outlook, shares, up_to};
use super::pages::{Entry, PageSize, page};
use crate::connectors::attempt::patiently;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec, sealed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use millstream_client::redis::{Connection, RedisError};
use millstream_common::ReadLimit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many entries a batch query reads at a time, where the user names no limit.
const BATCH_QUERY_ENTRIES: u64 = 100_000;
/// In the source's folder of the checkpoint: where the query began.
const BEGINNING: &str = "beginning";

/// Makes sources of Redis' streams.
#[derive(Debug, Clone, Copy)]
pub struct RedisSourceFactory;

impl SourceFactory for RedisSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(RedisConfig::new(spec, false)?.schema())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(RedisSource::new(spec, context, false)?))
    }

    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(RedisSource::new(spec, context, true)?))
    }
}

/// Entries that were read to find the end of a range.
struct Read {
    begin: EntryId,
    end: EntryId,
    entries: Vec<Entry>,
}

/// The source.
struct RedisSource {
    name: String,
    config: RedisConfig,
    context: SourceContext,
    schema: SchemaRef,
    /// Whether it is read to its end once.
    is_bounded: bool,
    connection: Option<Connection>,
    pages: PageSize,
    /// Where the query began.
    beginning: Option<Positions>,
    /// What there was when everything available was fixed.
    frozen: Option<BTreeMap<String, Option<StreamState>>>,
    /// The newest positions that were seen.
    latest: Option<Positions>,
    /// Of the last range that was answered, what was read already.
    read: BTreeMap<String, Read>,
    /// How many entries are known to be lost.
    lost: u64,
}

impl RedisSource {
    fn new(spec: &SourceSpec, context: SourceContext, is_bounded: bool) -> Result<Self, SourceError> {
        let config = RedisConfig::new(spec, is_bounded)?;
        Ok(Self {
            name: spec.name.clone(),
            schema: config.schema(),
            config,
            context,
            is_bounded,
            connection: None,
            pages: PageSize::first(),
            beginning: None,
            frozen: None,
            latest: None,
            read: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Asks something about a stream. After an error the connection is of no more use, and the next attempt opens another.
    fn ask<T>(
        &mut self,
        action: &str,
        stream: &str,
        mut question: impl FnMut(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, SourceError> {
        let (name, stop) = (self.name.clone(), self.context.stop.clone());
        patiently(&name, &stop, || {
            let opened = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => Connection::open(&self.config.address, "millstream source"),
            };
            let answer = opened.and_then(|mut connection| {
                let answer = question(&mut connection)?;
                self.connection = Some(connection);
                Ok(answer)
            });
            answer.map_err(|source| self.failed(format!("{action} stream `{stream}`"), source))
        })
    }

    fn failed(&self, action: String, source: RedisError) -> SourceError {
        SourceError::Redis { name: self.name.clone(), action, source: Box::new(source) }
    }

    /// A stream as it is now.
    fn look(&mut self, stream: &str) -> Result<Option<StreamState>, SourceError> {
        let state = self.ask("look at", stream, |connection| look(connection, stream))?;
        if self.config.fails_on_loss && state.is_some_and(|state| state.added.is_none()) {
            let (place, message) =
                (self.config.address.place(), "it does not count what is added to a stream".to_owned());
            return Err(self.failed(format!("look at stream `{stream}`"), RedisError::Old { place, message }));
        }
        Ok(state)
    }

    /// The positions of a logged offset.
    fn positions(&self, offset: &Offset) -> Result<Positions, SourceError> {
        offset::parse(&offset.0)
            .map_err(|_| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    /// Where the query began; decided once, and written down.
    fn beginning(&mut self) -> Result<Positions, SourceError> {
        if let Some(beginning) = &self.beginning {
            return Ok(beginning.clone());
        }
        let files = Arc::clone(&self.context.files);
        let beginning = match sealed::read(&self.name, files.as_ref(), BEGINNING)? {
            Some(body) => {
                let parsed = serde_json::from_str(&body).map_err(|error| error.to_string());
                parsed
                    .and_then(|json| offset::parse(&json))
                    .map_err(|reason| sealed::damaged(&self.name, files.as_ref(), BEGINNING, &reason))?
            }
            None => {
                let mut beginning = Positions::new();
                for (stream, start) in self.config.starts.clone() {
                    let now = self.look(&stream)?;
                    if now.is_none() {
                        tracing::warn!(source = self.name, "stream `{stream}` is not there yet");
                    }
                    beginning.insert(stream, outlook::initial(start, now.as_ref()));
                }
                sealed::write(&self.name, files.as_ref(), BEGINNING, offset::to_json(&beginning).to_string())?;
                beginning
            }
        };
        Ok(self.beginning.insert(beginning).clone())
    }

    /// What there is behind positions.
    fn outlooks(&mut self, at: &Positions) -> Result<Vec<(String, Outlook)>, SourceError> {
        let mut found = Vec::new();
        for stream in self.config.streams.clone() {
            // What is named later is read from its start.
            let position = at.get(&stream).copied().unwrap_or(Position::start(0));
            let now = self.look(&stream)?;
            let mut seen = outlook(&stream, &position, now.as_ref());
            self.latest.get_or_insert_default().insert(stream.clone(), seen.end);
            if let Some(frozen) = &self.frozen {
                let then = frozen.get(&stream).copied().flatten().map(|then| outlook(&stream, &position, Some(&then)));
                seen = up_to(seen, then).map_err(|reason| SourceError::Lost {
                    name: self.name.clone(),
                    range: format!("after {} of stream `{stream}`", position.id),
                    reason: format!("{reason} since everything available was fixed"),
                })?;
            }
            found.push((stream, seen));
        }
        Ok(found)
    }

    /// The end of a range of at most so many entries, which are kept.
    fn end_within(&mut self, stream: &str, seen: &Outlook, most: u64) -> Result<Position, SourceError> {
        let (begin, end) = (seen.begin, seen.end);
        let mut entries: Vec<Entry> = Vec::new();
        self.each_page(stream, (begin.id, end.id), most, |page| {
            entries.extend(page);
            Ok(())
        })?;
        let count = entries.len() as u64;
        let last = match entries.last() {
            Some(last) if count == most && last.id < end.id => last.id,
            // All that is there.
            _ => end.id,
        };
        self.read.insert(stream.to_owned(), Read { begin: begin.id, end: last, entries });
        if last == end.id {
            return Ok(end);
        }
        let added = begin.added.map(|before| before.saturating_add(seen.front).saturating_add(count));
        Ok(Position { id: last, added: added.map(|added| added.min(end.added.unwrap_or(u64::MAX))), life: begin.life })
    }

    /// Reads the entries behind the first id, up to the second, and at most so many; answers how many there were.
    fn each_page(
        &mut self,
        stream: &str,
        (mut after, until): (EntryId, EntryId),
        most: u64,
        mut take: impl FnMut(Vec<Entry>) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        let mut count = 0;
        while count < most && after < until {
            let wanted = self.pages.entries(most - count);
            let found = self.ask("read", stream, |connection| page(connection, stream, (after, until), wanted))?;
            let Some(last) = found.last() else { break };
            if last.id <= after || last.id > until {
                let place = self.config.address.place();
                let reason = "it gives entries that were not asked for".to_owned();
                return Err(self.failed(format!("read stream `{stream}`"), RedisError::Foreign { place, reason }));
            }
            after = last.id;
            count += found.len() as u64;
            let is_last = found.len() < wanted;
            self.pages.adapt(&found);
            take(found)?;
            if is_last {
                break;
            }
        }
        Ok(count)
    }

    /// The rows of one stream between two positions, and how many they are.
    fn rows(
        &mut self,
        stream: &str,
        (begin, end): (&Position, &Position),
        (schema, projection): (&SchemaRef, &[usize]),
    ) -> Result<(Vec<RecordBatch>, u64), SourceError> {
        let mut columns = Columns::new(schema, projection, stream, self.config.has_binary_values);
        let name = self.name.clone();
        let mut append = |entry: &Entry| {
            columns.append(entry).map_err(|error| match error {
                BadEntry::Malformed(reason) => SourceError::Malformed {
                    name: name.clone(),
                    place: format!("entry {} of stream {stream}", entry.id),
                    reason,
                },
                BadEntry::Arrow(error) => of_arrow(&name, &error),
            })
        };
        let count = match self.read.get(stream) {
            Some(read) if (read.begin, read.end) == (begin.id, end.id) => {
                read.entries.iter().try_for_each(&mut append)?;
                read.entries.len() as u64
            }
            _ => self.each_page(stream, (begin.id, end.id), u64::MAX, |page| page.iter().try_for_each(&mut append))?,
        };
        Ok((columns.finish().map_err(|error| of_arrow(&name, &error))?, count))
    }
}

fn of_arrow(name: &str, error: &ArrowError) -> SourceError {
    SourceError::Schema { name: name.to_owned(), reason: error.to_string() }
}

impl Source for RedisSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn description(&self) -> String {
        format!("RedisStreams[{} at {}]", self.config.streams.join(", "), self.config.address.place())
    }

    fn read_limit(&self) -> ReadLimit {
        match self.config.most_entries {
            Some(most) => ReadLimit::MaxRows(most),
            None if self.is_bounded => ReadLimit::MaxRows(BATCH_QUERY_ENTRIES),
            None => ReadLimit::AllAvailable,
        }
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let at = match start {
            Some(start) => self.positions(start)?,
            None => self.beginning()?,
        };
        let outlooks = self.outlooks(&at)?;
        if self.config.fails_on_loss {
            let losses: Vec<Loss> = outlooks.iter().filter_map(|(_, seen)| seen.loss.clone()).collect();
            loss::judge(&self.name, &losses, true)?;
        }
        let limit = match limit {
            ReadLimit::MaxRows(most) => most.max(1),
            _ => u64::MAX,
        };
        let backlogs: Vec<Option<u64>> = outlooks.iter().map(|(_, seen)| seen.backlog()).collect();
        self.read.clear();
        let mut until = Positions::new();
        for ((stream, seen), share) in outlooks.into_iter().zip(shares(&backlogs, limit)) {
            let fits = limit == u64::MAX || seen.backlog().is_some_and(|backlog| backlog <= share);
            let end = if fits { seen.end } else { self.end_within(&stream, &seen, share)? };
            until.insert(stream, end);
        }
        Ok(if until == at { start.cloned() } else { Some(Offset(offset::to_json(&until))) })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        self.latest.as_ref().map(|latest| Offset(offset::to_json(latest)))
    }

    fn metrics(&mut self, at: Option<&Offset>) -> BTreeMap<String, String> {
        let mut metrics = BTreeMap::new();
        let at = at.and_then(|at| self.positions(at).ok());
        if let Some((at, latest)) = at.zip(self.latest.as_ref()) {
            let behind = |(stream, newest): (&String, &Position)| {
                let read = at.get(stream).filter(|read| read.life == newest.life).map_or(Some(0), |read| read.added)?;
                Some(newest.added?.saturating_sub(read))
            };
            if let Some(sum) = latest.iter().map(behind).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?))) {
                metrics.insert("entriesBehindLatest".to_owned(), sum.to_string());
            }
        }
        if self.lost > 0 {
            metrics.insert("entriesLost".to_owned(), self.lost.to_string());
        }
        metrics
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let to = self.positions(end)?;
        let from = match start {
            Some(start) => self.positions(start)?,
            None => self.beginning()?,
        };
        let schema = self.schema.project(projection).map_err(|error| of_arrow(&self.name, &error))?;
        let schema: SchemaRef = Arc::new(schema);
        let (mut lists, mut losses) = (Vec::new(), Vec::new());
        for (stream, until) in &to {
            let before = from.get(stream).copied();
            // Another stream of the name, and one that was named later, are read from their start.
            let begin = before.filter(|read| read.life == until.life).unwrap_or(Position::start(until.life));
            if before.is_some_and(|read| read.life != until.life) {
                let (after, why) = (before.map_or(EntryId::ZERO, |read| read.id), "the stream was removed".to_owned());
                losses.push(Loss { stream: stream.clone(), after, until: None, count: None, why });
            }
            if until.id <= begin.id {
                continue;
            }
            let (rows, count) = self.rows(stream, (&begin, until), (&schema, projection))?;
            let added = until.added.zip(begin.added).map_or(0, |(until, begin)| until.saturating_sub(begin));
            if added > count {
                losses.push(Loss {
                    stream: stream.clone(),
                    after: begin.id,
                    until: Some(until.id),
                    count: Some(added - count),
                    why: format!(
                        "{added} were added, and {count} are there: some were trimmed or deleted before they were read"
                    ),
                });
            }
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
        let mut frozen = BTreeMap::new();
        for stream in self.config.streams.clone() {
            let now = self.look(&stream)?;
            frozen.insert(stream, now);
        }
        self.frozen = Some(frozen);
        Ok(())
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}
