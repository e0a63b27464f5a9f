//! A plugin's source behind the contract of a source.

use crate::{Offset, Source, SourceContext, SourceError, sealed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{Digest, ReadLimit};
use millstream_wasm::{SourceCalls, WasmError};
use std::collections::{HashSet, VecDeque};
use std::io;

/// The file of the log that holds the offset at which the query began.
const INITIAL: &str = "initial";
/// Pages that a range may have.
const PAGES: u64 = 1 << 16;
/// Pages without rows that may follow each other.
const EMPTY_PAGES: u64 = 1 << 10;
/// How many times as large as one result of the plugin a range may be.
const RESULTS: u64 = 16;
/// Offsets that were left behind and are remembered.
const LEFT_BEHIND: usize = 4096;

/// What was available when that was fixed.
enum Available {
    /// It is not fixed.
    Any,
    /// It is fixed with the next look.
    Unseen,
    /// Up to here.
    Until(String),
}

pub(super) struct PluginSource {
    name: String,
    calls: SourceCalls,
    schema: SchemaRef,
    limit: ReadLimit,
    context: SourceContext,
    /// Where the query began, once that is known.
    initial: Option<String>,
    available: Available,
    left: LeftBehind,
}

impl PluginSource {
    pub(super) fn open(
        name: &str,
        calls: SourceCalls,
        schema: SchemaRef,
        limit: ReadLimit,
        context: SourceContext,
    ) -> Result<Self, SourceError> {
        let files = context.files.as_ref();
        let initial = sealed::read(name, files, INITIAL)?;
        let (name, available, left) = (name.to_owned(), Available::Any, LeftBehind::default());
        Ok(Self { name, calls, schema, limit, context, initial, available, left })
    }

    fn failed(&self, action: &'static str) -> impl Fn(WasmError) -> SourceError {
        let name = self.name.clone();
        move |source| SourceError::Plugin { name: name.clone(), action, source: Box::new(source) }
    }

    fn broken(&self, reason: String) -> SourceError {
        let plugin = self.calls.slot().name().to_owned();
        SourceError::BrokenWord { name: self.name.clone(), plugin, reason }
    }

    fn text<'a>(&self, offset: &'a Offset) -> Result<&'a str, SourceError> {
        let foreign = || SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() };
        offset.0.as_str().ok_or_else(foreign)
    }

    /// The text of an offset; where the query began for none. That is asked once and written down, because a batch that begins
    /// there may have to be run again.
    fn start(&mut self, offset: Option<&Offset>) -> Result<String, SourceError> {
        if let Some(offset) = offset {
            return self.text(offset).map(str::to_owned);
        }
        if let Some(initial) = &self.initial {
            return Ok(initial.clone());
        }
        let initial = self.calls.initial_offset().map_err(self.failed("say where to begin"))?;
        sealed::write(&self.name, self.context.files.as_ref(), INITIAL, &initial)?;
        self.initial = Some(initial.clone());
        Ok(initial)
    }

    fn ask(&self, start: &str, until: Option<&str>, max_rows: Option<u64>) -> Result<String, SourceError> {
        self.calls.latest_offset(start, until, max_rows).map_err(self.failed("say what is new"))
    }

    /// The most bytes of a range.
    fn room(&self) -> usize {
        let bytes = self.calls.slot().limits().result_bytes.saturating_mul(RESULTS);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn check_stop(&self, range: (&str, &str)) -> Result<(), SourceError> {
        if !self.context.stop.is_set() {
            return Ok(());
        }
        Err(SourceError::Unavailable {
            name: self.name.clone(),
            action: "read",
            place: format!("({}, {}]", shown(range.0), shown(range.1)),
            source: Box::new(io::Error::new(io::ErrorKind::Interrupted, "the query is to stop")),
        })
    }
}

impl Source for PluginSource {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn description(&self) -> String {
        format!("PluginSource[{}.{}]", self.calls.slot().name(), self.calls.source())
    }

    fn read_limit(&self) -> ReadLimit {
        self.limit
    }

    fn is_on_its_word(&self) -> bool {
        true
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.start(start)?;
        if let Available::Unseen = self.available {
            self.available = Available::Until(self.ask(&from, None, None)?);
        }
        let until = match &self.available {
            Available::Until(until) => Some(until.as_str()),
            Available::Any | Available::Unseen => None,
        };
        if until == Some(from.as_str()) {
            return Ok(start.cloned());
        }
        let max_rows = match limit {
            ReadLimit::MaxRows(rows) => Some(rows),
            ReadLimit::AllAvailable | ReadLimit::MaxFiles(_) | ReadLimit::MaxBytes(_) => None,
        };
        let end = match (until, max_rows) {
            (Some(until), None) => until.to_owned(),
            (until, max_rows) => self.ask(&from, until, max_rows)?,
        };
        if end == from {
            return Ok(start.cloned());
        }
        if self.left.contains(&end) {
            let (end, from) = (shown(&end), shown(&from));
            return Err(self.broken(format!("after `{from}` it went back to the offset `{end}`")));
        }
        self.left.add(&from);
        Ok(Some(Offset(end.into())))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let to = self.text(end)?.to_owned();
        let from = self.start(start)?;
        if from == to {
            return Ok(Vec::new());
        }
        let range = (from.as_str(), to.as_str());
        let in_range = || format!("({}, {}]", shown(&from), shown(&to));
        let (mut batches, mut cursor): (Vec<RecordBatch>, Option<String>) = (Vec::new(), None);
        let (mut room, mut empty) = (self.room(), 0);
        for page in 0..PAGES {
            self.check_stop(range)?;
            let read = self.calls.read(range, cursor.as_deref(), page).map_err(self.failed("read its rows"))?;
            if read.rows.num_rows() > 0 {
                let left = room.checked_sub(read.rows.get_array_memory_size());
                room = left.ok_or_else(|| {
                    self.broken(format!("the rows of {} have more than {} bytes", in_range(), self.room()))
                })?;
                if read.rows.schema_ref() != &self.schema {
                    return Err(self.broken("its rows have other columns than they had".to_owned()));
                }
                let cut = read.rows.project(projection).map_err(|error| self.broken(error.to_string()))?;
                batches.push(cut);
                empty = 0;
            } else {
                empty += 1;
            }
            if read.next.is_none() {
                return Ok(if batches.is_empty() { Vec::new() } else { vec![batches] });
            }
            if read.next == cursor || empty > EMPTY_PAGES {
                return Err(self.broken(format!("page {page} of {} leads nowhere", in_range())));
            }
            cursor = read.next;
        }
        Err(self.broken(format!("{} has more than {PAGES} pages", in_range())))
    }

    /// Best effort: what could not be told now is told with the next range.
    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let end = self.text(end)?;
        if let Err(error) = self.calls.commit(end) {
            let (source, text) = (self.name.as_str(), millstream_common::describe_chain(&error));
            tracing::warn!(source, "a source cannot be told that its rows are done: {text}");
        }
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        if let Available::Any = self.available {
            self.available = Available::Unseen;
        }
        Ok(())
    }
}

/// The last offsets at which a batch began: one that was left behind never comes again.
#[derive(Default)]
struct LeftBehind {
    known: HashSet<Digest>,
    order: VecDeque<Digest>,
}

impl LeftBehind {
    fn contains(&self, offset: &str) -> bool {
        self.known.contains(&Digest::of(offset.as_bytes()))
    }

    fn add(&mut self, offset: &str) {
        let digest = Digest::of(offset.as_bytes());
        if !self.known.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > LEFT_BEHIND
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// An offset for a message: short and printable.
fn shown(offset: &str) -> String {
    let mut text: String = offset.chars().filter(|c| !c.is_control()).take(60).collect();
    if text.len() < offset.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_behind_is_known_up_to_a_limit() {
        let mut left = LeftBehind::default();
        (0..LEFT_BEHIND + 10).for_each(|number| left.add(&number.to_string()));
        left.add("20");
        assert!(left.contains("20") && left.contains(&(LEFT_BEHIND + 9).to_string()));
        assert!(!left.contains("9") && !left.contains("another"));
        assert_eq!((left.known.len(), left.order.len()), (LEFT_BEHIND, LEFT_BEHIND));
    }

    #[test]
    fn offsets_in_messages_are_short() {
        assert_eq!(shown("a\nb"), "ab…");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 61);
    }
}
