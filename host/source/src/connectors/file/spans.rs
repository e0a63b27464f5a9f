//! The parts of an object that will be read, fetched in few requests and once.
//!
//! It stands between [`InputFile`] and the reader of Parquet, which goes through the wanted columns side by side and
//! asks for the head of each page, then for the page.
//!
//! ```text
//!   object   │ a a a a a a a a a a │ b │ c │   not wanted   │ d d d d d d d d │
//!   spans    └─────────────────────┘└──────┘                └─────────────────┘   small neighbours are one
//!   held            └───────┘       └──────┘                    └───────┘         a large one bit by bit
//! ```
//!
//! Rule of its life: whoever goes forward in each part causes the traffic of the parts and not more, and a fixed number
//! of bytes is held, however large the object is. What lies outside of the parts is fetched as it is asked for. Files of
//! this machine, and objects that are here as a whole, have no spans.

use super::bucket::WHOLE_BYTES;
use super::input::InputFile;
use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// How much of an object is held at a time.
const HELD_BYTES: u64 = 64 << 20;
/// The share of that for parts that are read side by side: those of the next ones come while these are still there.
const SIDE_BY_SIDE_BYTES: u64 = HELD_BYTES / 2;
/// How much is fetched at a time, at least.
const LEAST_BYTES: u64 = 32 << 10;
/// How much that nobody wants is fetched rather than asking twice.
const GAP_BYTES: u64 = 64 << 10;
/// How much is read outside of the spans where little is asked for.
const HEAD_BYTES: u64 = 8 << 10;

/// A file whose parts are read bit by bit, side by side.
#[derive(Debug, Clone)]
pub(super) struct Spans {
    file: InputFile,
    plan: Arc<Plan>,
    /// What was fetched of each span, by its beginning.
    held: Arc<Mutex<BTreeMap<u64, Window>>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// In the order of the file, none within another.
    spans: Vec<Range<u64>>,
    /// How much of one is fetched at a time; a smaller one is fetched whole.
    step: u64,
}

/// Bytes of a file, and where they stand in it.
#[derive(Debug)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Spans {
    /// The parts of a file in groups: those of a group are read side by side, the groups one after the other.
    pub(super) fn new(file: &InputFile, groups: &[Vec<Range<u64>>]) -> Self {
        let plan = if file.is_remote() { Plan::new(groups, file.len()) } else { Plan::default() };
        Self { file: file.clone(), plan: Arc::new(plan), held: Arc::default() }
    }

    /// What stands from a place on: so many bytes, and more if they are there already.
    fn fetch(&self, start: u64, least: u64) -> io::Result<Bytes> {
        let Some(span) = self.plan.span(start, least) else { return self.file.range(start, least) };
        // One thread reads a file: nobody waits here while a request is on its way.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = held.get(&span.start).map(|window| window.from(start)).unwrap_or_default();
        if kept.len() as u64 >= least {
            return Ok(kept);
        }
        let wanted = self.plan.window(span, start, least);
        let from = wanted.start + kept.len() as u64;
        let fetched = self.file.range(from, wanted.end.saturating_sub(from))?;
        let bytes = if kept.is_empty() { fetched } else { [kept, fetched].concat().into() };
        let window = Window { start: wanted.start, bytes };
        let found = window.from(start);
        held.insert(span.start, window);
        forget(&mut held, span.start);
        Ok(found)
    }

    /// The bytes of a range, all of them.
    fn range(&self, start: u64, length: u64) -> io::Result<Bytes> {
        if length == 0 {
            return self.file.range(start, length);
        }
        let mut bytes = self.fetch(start, length)?;
        if bytes.len() as u64 == length {
            self.read_through(start, length);
        }
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    /// Nothing is left of what is held there. A span that is fetched whole may still be wanted elsewhere.
    fn read_through(&self, start: u64, length: u64) {
        if let Some(span) = self.plan.span(start, length).filter(|span| !self.plan.is_whole(span)) {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&span.start);
        }
    }
}

/// Lets go of the first ones, which are read through, until there is room; never of the one that was just fetched.
fn forget(held: &mut BTreeMap<u64, Window>, fetched: u64) {
    while held.values().map(|window| window.bytes.len() as u64).sum::<u64>() > HELD_BYTES
        && let Some(first) = held.keys().copied().find(|start| *start != fetched)
    {
        held.remove(&first);
    }
}

impl Plan {
    fn new(groups: &[Vec<Range<u64>>], file: u64) -> Self {
        let clip = |part: &Range<u64>| part.start..part.end.min(file);
        let bytes = |part: Range<u64>| part.end.saturating_sub(part.start);
        let of_group = |group: &Vec<Range<u64>>| group.iter().map(clip).map(bytes).fold(0, u64::saturating_add);
        let most = groups.iter().map(of_group).max().unwrap_or_default();
        let parts = groups.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let step = if most <= SIDE_BY_SIDE_BYTES { WHOLE_BYTES } else { SIDE_BY_SIDE_BYTES / parts as u64 };
        let step = step.clamp(LEAST_BYTES, WHOLE_BYTES);
        let mut parts: Vec<Range<u64>> = groups.iter().flatten().map(clip).filter(|part| !part.is_empty()).collect();
        parts.sort_by_key(|part| part.start);
        let mut spans: Vec<Range<u64>> = Vec::new();
        for part in parts {
            match spans.last_mut() {
                Some(last)
                    if part.start <= last.end.saturating_add(GAP_BYTES)
                        && part.end.max(last.end) - last.start <= step =>
                {
                    last.end = part.end.max(last.end);
                }
                // No writer does that.
                Some(last) if part.start < last.end => {}
                _ => spans.push(part),
            }
        }
        Self { spans, step }
    }

    /// The span that holds a range.
    fn span(&self, start: u64, length: u64) -> Option<&Range<u64>> {
        let at = self.spans.partition_point(|span| span.start <= start).checked_sub(1)?;
        let end = start.checked_add(length)?;
        self.spans.get(at).filter(|span| end <= span.end)
    }

    fn is_whole(&self, span: &Range<u64>) -> bool {
        span.end - span.start <= self.step
    }

    /// What is to be held of a span for a range in it.
    fn window(&self, span: &Range<u64>, start: u64, least: u64) -> Range<u64> {
        if self.is_whole(span) { span.clone() } else { start..span.end.min(start.saturating_add(least.max(self.step))) }
    }
}

impl Window {
    /// What is held from a place on.
    fn from(&self, start: u64) -> Bytes {
        let at = start.checked_sub(self.start).filter(|at| *at < self.bytes.len() as u64);
        at.map(|at| self.bytes.slice(at as usize..)).unwrap_or_default()
    }
}

impl Length for Spans {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Spans {
    type T = SpanReader;

    fn get_read(&self, start: u64) -> parquet::errors::Result<SpanReader> {
        Ok(SpanReader { spans: self.clone(), at: start, fetched: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.range(start, length as u64).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// A file from one place on.
#[derive(Debug)]
pub(super) struct SpanReader {
    spans: Spans,
    at: u64,
    fetched: Bytes,
}

impl Read for SpanReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.fetched.is_empty() {
            let left = self.spans.len().saturating_sub(self.at);
            if left == 0 || buffer.is_empty() {
                return Ok(0);
            }
            let is_inside = self.spans.plan.span(self.at, 1).is_some();
            self.fetched = self.spans.fetch(self.at, if is_inside { 1 } else { HEAD_BYTES.min(left) })?;
            self.at += self.fetched.len() as u64;
        }
        let taken = buffer.len().min(self.fetched.len());
        self.fetched.copy_to_slice(&mut buffer[..taken]);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::file::bucket::Bucket;

    /// An object of so many bytes that is not here as a whole.
    fn object(name: &str, bytes: u64) -> (Arc<Bucket>, InputFile, Vec<u8>) {
        let bucket = Arc::new(Bucket::open(&format!("memory://{name}/"), &[]).unwrap());
        let mut content = (0..251).collect::<Vec<u8>>().repeat(bytes as usize / 251 + 1);
        content.truncate(bytes as usize);
        bucket.put("object", &content);
        let file = InputFile::stored(&bucket, &format!("memory://{name}/object")).unwrap();
        (bucket, file, content)
    }

    #[test]
    fn small_neighbours_are_one_and_large_groups_go_in_smaller_steps() {
        let kib = |from: u64, to: u64| from << 10..to << 10;
        let plan = Plan::new(&[vec![kib(300, 400), kib(0, 100), kib(100, 110)], vec![kib(420, 500)]], 490 << 10);
        assert_eq!(plan, Plan { spans: vec![kib(0, 110), kib(300, 490)], step: WHOLE_BYTES });
        let large = Plan::new(&[(0..100).map(|n| kib(n << 10, (n + 1) << 10)).collect()], u64::MAX);
        assert_eq!((large.spans.len(), large.step), (100, SIDE_BY_SIDE_BYTES / 100));
        let hostile = Plan::new(&[vec![0..u64::MAX, 1..u64::MAX]], u64::MAX);
        assert_eq!((hostile.spans.len(), hostile.spans[0].clone()), (1, 0..u64::MAX));
    }

    #[test]
    fn pages_of_columns_side_by_side_are_fetched_once_and_little_is_held() {
        const COLUMN: u64 = 3 << 20;
        let (bucket, file, content) = object("spans-once", 20 * COLUMN);
        let columns: Vec<Range<u64>> = (0..20).map(|n| n * COLUMN..(n + 1) * COLUMN).collect();
        let spans = Spans::new(&file, std::slice::from_ref(&columns));
        let before = bucket.traffic();
        // Pages of odd sizes, some larger than what is fetched at a time.
        let sizes = [100_001, 7, 3_000, 2_000_000, 40_000, COLUMN];
        let mut at = 0;
        for size in sizes {
            for column in &columns {
                let start = column.start + at;
                let mut head = [0; 7];
                spans.get_read(start).unwrap().read_exact(&mut head).unwrap();
                assert_eq!(head, content[start as usize..][..7]);
                let length = size.min(column.end - start);
                let page = spans.get_bytes(start, length as usize).unwrap();
                assert!(page == content[start as usize..][..length as usize], "{size} at {start}");
                let held: usize = spans.held.lock().unwrap().values().map(|window| window.bytes.len()).sum();
                assert!(held as u64 <= HELD_BYTES, "{held}");
            }
            at += size;
        }
        let after = bucket.traffic();
        assert_eq!(after.bytes - before.bytes, 20 * COLUMN, "nothing is fetched twice");
        assert!(after.requests - before.requests <= 20 * 8, "{after:?}");
        assert!(spans.held.lock().unwrap().is_empty(), "what was read through is let go");
    }

    #[test]
    fn what_lies_outside_is_fetched_as_it_is_asked_for() {
        let (bucket, file, content) = object("spans-outside", WHOLE_BYTES + 100);
        let chunk = 10..20;
        let spans = Spans::new(&file, &[vec![chunk]]);
        let before = bucket.traffic();
        assert_eq!(spans.get_bytes(15, 10).unwrap(), content[15..25]);
        assert_eq!(spans.get_bytes(12, 0).unwrap(), Bytes::new());
        let mut tail = Vec::new();
        spans.get_read(WHOLE_BYTES).unwrap().read_to_end(&mut tail).unwrap();
        assert_eq!(tail, content[WHOLE_BYTES as usize..]);
        assert!(spans.get_bytes(WHOLE_BYTES, 101).is_err() && spans.get_bytes(u64::MAX, 1).is_err());
        let after = bucket.traffic();
        assert_eq!((after.requests - before.requests, after.bytes - before.bytes), (2, 110));
    }
}
