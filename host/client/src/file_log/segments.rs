//! The manifests of an output as files: one per batch at first, then many batches in one.
//!
//! ```text
//!   0.manifest … 9.manifest        every 10 batches become    0-9.1.compact
//!   0-9.1.compact … 90-99.1.compact                           0-99.2.compact, and so on
//! ```
//!
//! Rule of its life: a merged file is written once, whole; then those in it are deleted. In between both are there and say the
//! same: a reader takes the widest, and looks again when a file has gone below it.

use super::entry::{CommittedBatch, FOLDER, is_below, read_sealed, read_sealed_text};
use super::error::FileLogError;
use millstream_common::DurableFiles;
use std::collections::VecDeque;

const SINGLE: &str = ".manifest";
const MERGED: &str = ".compact";
/// How often a reader looks again before it says that a file is missing.
const LOOKS: usize = 5;

/// A file of the log: which batches it may have. Gaps are numbers that the query did not hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first batch that it may have.
    pub first: u64,
    /// The last batch that it has.
    pub last: u64,
    /// How often its batches were merged; 0 for a manifest of one batch.
    pub level: u8,
}

impl Segment {
    /// What the name of a file says.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(number) = name.strip_suffix(SINGLE) {
            let number = number.parse().ok()?;
            return Some(Self { first: number, last: number, level: 0 });
        }
        let (range, level) = name.strip_suffix(MERGED)?.rsplit_once('.')?;
        let (first, last) = range.split_once('-')?;
        let segment = Self { first: first.parse().ok()?, last: last.parse().ok()?, level: level.parse().ok()? };
        (segment.first <= segment.last).then_some(segment)
    }

    /// Its file, relative to the output.
    pub fn path(&self) -> String {
        let Self { first, last, level } = self;
        if *level == 0 {
            format!("{FOLDER}/{first}{SINGLE}")
        } else {
            format!("{FOLDER}/{first}-{last}.{level}{MERGED}")
        }
    }

    fn covers(&self, other: &Self) -> bool {
        self.level > other.level && self.first <= other.first && other.last <= self.last
    }
}

/// The files of the log: those that count, ascending, and those that a wider one has made superfluous.
///
/// # Errors
/// When the place cannot be listed.
pub fn segments(files: &dyn DurableFiles) -> Result<(Vec<Segment>, Vec<Segment>), FileLogError> {
    let names = files.list(FOLDER).map_err(|error| FileLogError::storage(files, "list", FOLDER, error))?;
    let mut all: Vec<Segment> = names.iter().filter_map(|name| Segment::parse(name)).collect();
    // The widest of those that begin alike comes first.
    all.sort_unstable_by_key(|segment| (segment.first, std::cmp::Reverse((segment.last, segment.level))));
    let (mut live, mut covered): (Vec<Segment>, Vec<Segment>) = (Vec::new(), Vec::new());
    for segment in all {
        match live.last() {
            Some(widest) if widest.covers(&segment) => covered.push(segment),
            _ => live.push(segment),
        }
    }
    Ok((live, covered))
}

/// The batches in a file of the log.
///
/// # Errors
/// When it cannot be read, or is damaged.
pub fn read_segment(files: &dyn DurableFiles, segment: &Segment) -> Result<Vec<CommittedBatch>, FileLogError> {
    let path = segment.path();
    let damaged = |reason: &str| FileLogError::damaged(files, &path, reason);
    let batches: Vec<CommittedBatch> = if segment.level == 0 {
        vec![read_sealed(files, &path)?]
    } else {
        let text = read_sealed_text(files, &path)?;
        let lines: Result<_, _> = text.lines().map(serde_json::from_str).collect();
        lines.map_err(|error: serde_json::Error| damaged(&error.to_string()))?
    };
    for batch in &batches {
        if !(segment.first..=segment.last).contains(&batch.batch.0) {
            return Err(damaged("it has batches of another range"));
        }
        if !batch.names().all(is_below) {
            return Err(damaged("it names a file that is not below the output"));
        }
    }
    Ok(batches)
}

/// The batches of an output, one after the other; in memory are those of one file of the log.
pub struct CommittedBatches<'a> {
    files: &'a dyn DurableFiles,
    /// Files of the log that are still to be read.
    ahead: VecDeque<Segment>,
    read: VecDeque<CommittedBatch>,
    /// The first batch that was not handed out.
    next: u64,
    done: bool,
}

impl<'a> CommittedBatches<'a> {
    /// The batches that are in the output now.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub fn new(files: &'a dyn DurableFiles) -> Result<Self, FileLogError> {
        Self::since(files, 0)
    }

    /// Those from a number on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn since(files: &'a dyn DurableFiles, next: u64) -> Result<Self, FileLogError> {
        Ok(Self { files, ahead: Self::ahead(files, next)?, read: VecDeque::new(), next, done: false })
    }

    fn ahead(files: &dyn DurableFiles, next: u64) -> Result<VecDeque<Segment>, FileLogError> {
        Ok(segments(files)?.0.into_iter().filter(|segment| segment.last >= next).collect())
    }

    fn advance(&mut self) -> Result<Option<CommittedBatch>, FileLogError> {
        let mut looks = 0;
        loop {
            if let Some(batch) = self.read.pop_front() {
                self.next = batch.batch.0 + 1;
                return Ok(Some(batch));
            }
            let Some(segment) = self.ahead.pop_front() else { return Ok(None) };
            match read_segment(self.files, &segment) {
                Ok(batches) => {
                    self.read = batches.into_iter().filter(|batch| batch.batch.0 >= self.next).collect();
                }
                Err(error) if looks < LOOKS && error.is_missing() => {
                    // It has been merged meanwhile.
                    looks += 1;
                    self.ahead = Self::ahead(self.files, self.next)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Iterator for CommittedBatches<'_> {
    type Item = Result<CommittedBatch, FileLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{CommittedFile, seal};
    use super::*;
    use millstream_common::{BatchId, MemoryFiles, QueryId};

    #[test]
    fn a_log_that_names_files_elsewhere_is_refused() {
        for name in ["../secret", "/etc/passwd", "k=1/../../x", "k=1//x"] {
            let query: QueryId = serde_json::from_str("\"00000000-0000-0000-0000-000000000001\"").unwrap();
            let files = vec![CommittedFile { name: name.into(), rows: 1, bytes: 1 }];
            let batch =
                CommittedBatch { query, batch: BatchId(0), rows: 1, files, merged: Vec::new(), committed_ms: 0 };
            let output = MemoryFiles::default();
            output.put_new("_millstream/0.manifest", seal(&batch)).unwrap();
            let error = CommittedBatches::new(&output).unwrap().next().unwrap().unwrap_err();
            assert!(error.to_string().contains("not below the output"), "{name}: {error}");
        }
    }
}
