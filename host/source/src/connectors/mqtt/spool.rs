//! Files of messages in the checkpoint, numbered through.
//!
//! ```text
//!   spool/00000000000000000001.000000     messages 1 to 250, and which of quality 2 are still owed to the broker then
//!   spool/00000000000000000251.000000     messages 251 …
//! ```
//!
//! A name has the number of the first message in it. Where only what is owed changes, a file without messages says so; it
//! has the number of the next message, and files with one number are told apart by what stands behind the dot. The newest
//! file is never removed: it knows where the numbers go on, and what is owed.
//!
//! Rule of its life: a file is written once and never changed, so a number has one message for ever. Who writes holds no lock
//! while doing so; who reads takes the list of files and reads them by itself.

use crate::{SourceError, kept_rows, sealed};
use arrow::array::RecordBatch;
use bytes::Bytes;
use millstream_common::DurableFiles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

const FOLDER: &str = "spool";
/// How many bytes of new messages stay in memory, so that nobody must read what was just written.
const RECENT_BYTES: u64 = 32 << 20;

/// What a file says in its first line.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Head {
    /// How many messages it has.
    rows: u64,
    /// How many bytes all files have until its end.
    total: u64,
    /// The number of the session in which the broker gave the packets that are owed.
    pub(super) session: u64,
    /// The packets of quality 2 that are in the spool, and which the broker has not yet released.
    pub(super) owed: BTreeSet<u16>,
}

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// The number of its first message.
    first: u64,
    /// How many files of that number were before it.
    turn: u64,
    rows: u64,
    /// About how many bytes all files have until its end.
    total: u64,
}

impl Piece {
    fn path(&self) -> String {
        format!("{FOLDER}/{:020}.{:06}", self.first, self.turn)
    }

    /// The number of the last message until its end.
    fn last(&self) -> u64 {
        self.first + self.rows - 1
    }
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Spool {
    pieces: VecDeque<Piece>,
    /// The newest messages, by the number of the first.
    recent: VecDeque<(u64, RecordBatch)>,
}

impl Spool {
    /// The spool in the folder of a source, and what its newest file says.
    pub(super) fn open(name: &str, files: &dyn DurableFiles) -> Result<(Self, Head), SourceError> {
        let names = files.list(FOLDER).map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
        let mut pieces = VecDeque::with_capacity(names.len());
        for file in &names {
            let path = format!("{FOLDER}/{file}");
            let wrong = || sealed::damaged(name, files, &path, "it has no name of a file of messages");
            let (first, turn) = file.split_once('.').ok_or_else(wrong)?;
            let (Ok(first), Ok(turn)) = (first.parse::<u64>(), turn.parse()) else { return Err(wrong()) };
            if first == 0 {
                return Err(wrong());
            }
            pieces.push_back(Piece { first, turn, rows: 0, total: 0 });
        }
        let Some(newest) = pieces.back().copied() else { return Ok((Self::default(), Head::default())) };
        let head = read_head(name, files, &newest.path())?.0;
        // How large the others are is known about: as large as all are on average.
        let of_all = newest.first + head.rows - 1;
        let about = |number: u64| (head.total as f64 * number as f64 / of_all.max(1) as f64) as u64;
        let mut next = newest.first + head.rows;
        for piece in pieces.iter_mut().rev() {
            piece.rows = next - piece.first;
            piece.total = about(next - 1);
            next = piece.first;
        }
        Ok((Self { pieces, recent: VecDeque::new() }, head))
    }

    /// The number of the last message; 0 when there was none.
    pub(super) fn last(&self) -> u64 {
        self.pieces.back().map_or(0, Piece::last)
    }

    /// About how many bytes there are behind a message.
    pub(super) fn bytes_after(&self, number: u64) -> u64 {
        let taken = self.pieces.partition_point(|piece| piece.last() <= number);
        let total = self.pieces.back().map_or(0, |newest| newest.total);
        let before = match taken.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            Some(piece) => piece.total,
            // How large the oldest is by itself is only known when it is the first.
            None => self.pieces.front().filter(|oldest| oldest.first > 1).map_or(0, |oldest| oldest.total),
        };
        total.saturating_sub(before)
    }

    /// The place of the next file.
    pub(super) fn end(&self) -> End {
        match self.pieces.back() {
            None => End { first: 1, turn: 0, total: 0 },
            Some(newest) if newest.rows == 0 => End { first: newest.first, turn: newest.turn + 1, total: newest.total },
            Some(newest) => End { first: newest.last() + 1, turn: 0, total: newest.total },
        }
    }

    /// Adds a file that was written.
    pub(super) fn push(&mut self, written: Written) {
        self.pieces.push_back(written.piece);
        if let Some(rows) = written.rows {
            self.recent.push_back((written.piece.first, rows));
            while self.recent.front().is_some_and(|(first, _)| self.bytes_after(*first) > RECENT_BYTES) {
                self.recent.pop_front();
            }
        }
    }

    /// The files with the messages between two numbers, the first of which is not wanted; `None` when some are gone.
    pub(super) fn range(&self, from: u64, to: u64) -> Option<Vec<Part>> {
        let begin = self.pieces.partition_point(|piece| piece.last() <= from);
        if to > self.last() || self.pieces.get(begin).is_none_or(|piece| piece.first > from + 1) {
            return None;
        }
        let wanted = self.pieces.range(begin..).take_while(|piece| piece.first <= to).filter(|piece| piece.rows > 0);
        let parts = wanted.map(|piece| {
            let recent = self.recent.binary_search_by_key(&piece.first, |(first, _)| *first).ok();
            let skipped = (from + 1).saturating_sub(piece.first);
            Part {
                path: piece.path(),
                rows: recent.and_then(|at| self.recent.get(at)).map(|(_, rows)| rows.clone()),
                skip: skipped as usize,
                take: (piece.last().min(to) + 1 - piece.first - skipped) as usize,
            }
        });
        Some(parts.collect())
    }

    /// Takes the files out of the list whose messages are all up to a number; answers which they are.
    pub(super) fn forget(&mut self, until: u64) -> Vec<String> {
        let mut forgotten = Vec::new();
        while self.pieces.len() > 1
            && let Some(piece) = self.pieces.pop_front_if(|oldest| oldest.last() <= until)
        {
            forgotten.push(piece.path());
        }
        let oldest = self.pieces.front().map_or(0, |oldest| oldest.first);
        while self.recent.pop_front_if(|(first, _)| *first < oldest).is_some() {}
        forgotten
    }
}

/// Where the next file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    first: u64,
    turn: u64,
    total: u64,
}

/// A file that was just written.
#[derive(Debug)]
pub(super) struct Written {
    piece: Piece,
    rows: Option<RecordBatch>,
}

impl End {
    /// Writes messages, durably, and what is owed to the broker then.
    pub(super) fn write(
        &mut self,
        name: &str,
        files: &dyn DurableFiles,
        rows: RecordBatch,
        (session, owed): (u64, &BTreeSet<u16>),
    ) -> Result<Written, SourceError> {
        let mut piece = Piece { first: self.first, turn: self.turn, rows: rows.num_rows() as u64, total: self.total };
        let path = piece.path();
        let wrong = |reason: String| sealed::damaged(name, files, &path, &reason);
        let body = if piece.rows == 0 { Vec::new() } else { kept_rows::encode(&rows).map_err(wrong)? };
        piece.total += body.len() as u64;
        let head = Head { rows: piece.rows, total: piece.total, session, owed: owed.clone() };
        let mut bytes = serde_json::to_vec(&head).map_err(|error| wrong(error.to_string()))?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&body);
        sealed::write(name, files, &path, bytes)?;
        *self = match piece.rows {
            0 => Self { turn: piece.turn + 1, ..*self },
            rows => Self { first: piece.first + rows, turn: 0, total: piece.total },
        };
        Ok(Written { piece, rows: (piece.rows > 0).then_some(rows) })
    }
}

/// What is wanted of one file.
#[derive(Debug, Clone)]
pub(super) struct Part {
    path: String,
    rows: Option<RecordBatch>,
    skip: usize,
    take: usize,
}

impl Part {
    /// The wanted rows, by their projected columns; `None` when the file is gone.
    pub(super) fn read(
        self,
        name: &str,
        files: &Arc<dyn DurableFiles>,
        projection: &[usize],
    ) -> Result<Option<Vec<RecordBatch>>, SourceError> {
        let wrong = |reason: String| sealed::damaged(name, files.as_ref(), &self.path, &reason);
        let batches = match &self.rows {
            Some(rows) => vec![rows.project(projection).map_err(|error| wrong(error.to_string()))?],
            None => {
                let Some(bytes) = sealed::read_bytes(name, files.as_ref(), &self.path)? else { return Ok(None) };
                let (_, body) = split(&bytes).ok_or_else(|| wrong("its first line is missing".to_owned()))?;
                kept_rows::decode(body, projection.iter().copied()).map_err(wrong)?
            }
        };
        let (mut skip, mut take) = (self.skip, self.take);
        let mut found = Vec::with_capacity(batches.len());
        for batch in batches {
            let (before, count) = (skip.min(batch.num_rows()), take.min(batch.num_rows().saturating_sub(skip)));
            if count > 0 {
                found.push(batch.slice(before, count));
            }
            (skip, take) = (skip - before, take - count);
        }
        if take > 0 {
            return Err(wrong("it has fewer messages than its name and the next one say".to_owned()));
        }
        Ok(Some(found))
    }
}

/// The first line of a file, and what stands behind it.
fn split(bytes: &Bytes) -> Option<(Bytes, Bytes)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((bytes.slice(..end), bytes.slice(end + 1..)))
}

fn read_head(name: &str, files: &dyn DurableFiles, path: &str) -> Result<(Head, Bytes), SourceError> {
    let wrong = |reason: &str| sealed::damaged(name, files, path, reason);
    let bytes = sealed::read_bytes(name, files, path)?.ok_or_else(|| wrong("it vanished"))?;
    let (head, body) = split(&bytes).ok_or_else(|| wrong("its first line is missing"))?;
    let head = serde_json::from_slice(&head).map_err(|error| wrong(&error.to_string()))?;
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::super::rows::Columns;
    use super::*;
    use arrow::array::AsArray;
    use millstream_client::mqtt::packets::{Publish, QoS};
    use millstream_common::MemoryFiles;

    fn rows(topics: &[&str]) -> RecordBatch {
        let mut columns = Columns::new();
        for topic in topics {
            columns.append(&Publish::new(*topic, QoS::AtLeastOnce, "x", None), 0).unwrap();
        }
        columns.finish().unwrap()
    }

    fn add(spool: &mut Spool, files: &Arc<dyn DurableFiles>, topics: &[&str], owed: &[u16]) {
        let written = spool.end().write("s", files.as_ref(), rows(topics), (1, &owed.iter().copied().collect()));
        spool.push(written.unwrap());
    }

    fn read(spool: &Spool, files: &Arc<dyn DurableFiles>, from: u64, to: u64) -> Option<String> {
        let mut text = String::new();
        for part in spool.range(from, to)? {
            for batch in part.read("s", files, &[0]).unwrap()? {
                text.extend(batch.column(0).as_string::<i32>().iter().flatten());
            }
        }
        Some(text)
    }

    #[test]
    fn a_number_has_one_message_before_and_after_a_restart() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let (mut spool, head) = Spool::open("s", files.as_ref()).unwrap();
        assert_eq!((spool.last(), head), (0, Head::default()));
        assert_eq!(spool.range(0, 1).map(|parts| parts.len()), None);
        add(&mut spool, &files, &["a", "b", "c"], &[7, 8]);
        add(&mut spool, &files, &[], &[8]);
        add(&mut spool, &files, &[], &[]);
        add(&mut spool, &files, &["d"], &[9]);
        add(&mut spool, &files, &["e", "f"], &[9]);
        add(&mut spool, &files, &[], &[10]);
        let (again, head) = Spool::open("s", files.as_ref()).unwrap();
        assert_eq!((head.session, head.owed), (1, BTreeSet::from([10])));
        for spool in [&spool, &again] {
            assert_eq!(spool.last(), 6);
            for (from, to, wanted) in [(0, 6, "abcdef"), (0, 2, "ab"), (1, 4, "bcd"), (2, 5, "cde"), (5, 6, "f")] {
                assert_eq!(read(spool, &files, from, to).as_deref(), Some(wanted), "{from} {to}");
            }
            assert_eq!(read(spool, &files, 3, 7), None);
        }
        let size = again.pieces.back().unwrap().total;
        assert_eq!((spool.bytes_after(6), again.bytes_after(6)), (0, 0));
        assert!(again.bytes_after(3) > 0 && again.bytes_after(3) < size);
        assert_eq!(again.end(), spool.end());
    }

    #[test]
    fn what_may_be_forgotten_goes_in_whole_files_and_the_newest_stays() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let mut spool = Spool::default();
        add(&mut spool, &files, &["a", "b"], &[]);
        add(&mut spool, &files, &[], &[]);
        add(&mut spool, &files, &["c", "d"], &[]);
        assert_eq!(spool.forget(1), [""; 0]);
        assert_eq!(spool.forget(3), ["spool/00000000000000000001.000000", "spool/00000000000000000003.000000"]);
        assert_eq!((read(&spool, &files, 2, 4).as_deref(), read(&spool, &files, 1, 4)), (Some("cd"), None));
        assert_eq!(spool.forget(9), [""; 0]);
        assert_eq!(spool.last(), 4);
    }

    #[test]
    fn a_file_that_is_there_and_one_that_is_damaged_are_told_of() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let mut end = Spool::default().end();
        let first = end;
        end.write("s", files.as_ref(), rows(&["a"]), (1, &BTreeSet::new())).unwrap();
        let error = first.clone().write("s", files.as_ref(), rows(&["b"]), (1, &BTreeSet::new())).unwrap_err();
        assert!(matches!(error, SourceError::Log { .. }), "{error:?}");
        files.put_over("spool/00000000000000000001.000000", "x".into()).unwrap();
        assert!(matches!(Spool::open("s", files.as_ref()), Err(SourceError::Damaged { .. })));
    }
}
