//! The manifests of an output as files: one per batch at first, then many batches in one.
//!
//! ```text
//!   0.manifest … 9.manifest        every 10 batches become    0-9.1.compact
//!   0-9.1.compact … 90-99.1.compact                           0-99.2.compact, and so on
//! ```
//!
//! A file that has become longer than some megabytes is merged no more, so neither a merge nor a reader that goes from batch
//! to batch holds more than that, however long the log is.
//!
//! Rule of its life: a merged file is written once, whole; then those in it are deleted. In between both are there and say the
//! same: a reader takes the widest, and looks again when a file has gone below it.

use super::manifest::{CommittedBatch, FOLDER, corrupt, open_error, read_sealed, read_sealed_text, seal_text};
use crate::SinkError;
use millstream_common::{BatchId, DurableError, DurableFiles};
use std::collections::VecDeque;

const SINGLE: &str = ".manifest";
const MERGED: &str = ".compact";
/// The level of files that are merged no more.
const LAST_LEVEL: u8 = 9;
/// From which length on a merged file is merged no more.
const LONG_BYTES: usize = 8 << 20;
/// How often a reader looks again before it says that a file is missing.
const LOOKS: usize = 5;

/// A file of the log: which batches it may have. Gaps are numbers that the query did not hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    first: u64,
    last: u64,
    level: u8,
}

impl Segment {
    fn parse(name: &str) -> Option<Self> {
        if let Some(number) = name.strip_suffix(SINGLE) {
            let number = number.parse().ok()?;
            return Some(Self { first: number, last: number, level: 0 });
        }
        let (range, level) = name.strip_suffix(MERGED)?.rsplit_once('.')?;
        let (first, last) = range.split_once('-')?;
        Some(Self { first: first.parse().ok()?, last: last.parse().ok()?, level: level.parse().ok()? })
    }

    fn path(&self) -> String {
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
fn segments(files: &dyn DurableFiles) -> Result<(Vec<Segment>, Vec<Segment>), SinkError> {
    let names = files.list(FOLDER).map_err(|error| open_error(files, "list", FOLDER, error))?;
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

/// The newest batch in the log.
pub(super) fn latest(files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
    Ok(segments(files)?.0.last().map(|segment| BatchId(segment.last)))
}

fn read(files: &dyn DurableFiles, segment: &Segment) -> Result<Vec<CommittedBatch>, SinkError> {
    let path = segment.path();
    if segment.level == 0 {
        let batch: CommittedBatch = read_sealed(files, &path)?;
        if batch.batch.0 != segment.first {
            return Err(corrupt(files, &path, "it is the manifest of another batch"));
        }
        return Ok(vec![batch]);
    }
    let text = read_sealed_text(files, &path)?;
    let batches = text.lines().map(|line| {
        let batch: CommittedBatch =
            serde_json::from_str(line).map_err(|error| corrupt(files, &path, &error.to_string()))?;
        if (segment.first..=segment.last).contains(&batch.batch.0) {
            Ok(batch)
        } else {
            Err(corrupt(files, &path, "it has batches of another range"))
        }
    });
    batches.collect()
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
    pub fn new(files: &'a dyn DurableFiles) -> Result<Self, SinkError> {
        let ahead = segments(files)?.0.into();
        Ok(Self { files, ahead, read: VecDeque::new(), next: 0, done: false })
    }

    fn advance(&mut self) -> Result<Option<CommittedBatch>, SinkError> {
        let mut looks = 0;
        loop {
            if let Some(batch) = self.read.pop_front() {
                self.next = batch.batch.0 + 1;
                return Ok(Some(batch));
            }
            let Some(segment) = self.ahead.pop_front() else { return Ok(None) };
            match read(self.files, &segment) {
                Ok(batches) => {
                    self.read = batches.into_iter().filter(|batch| batch.batch.0 >= self.next).collect();
                }
                Err(SinkError::Open { source, .. }) if looks < LOOKS && is_missing(source.as_ref()) => {
                    // It has been merged meanwhile.
                    looks += 1;
                    let next = self.next;
                    self.ahead = segments(self.files)?.0.into_iter().filter(|segment| segment.last >= next).collect();
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_missing(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref::<DurableError>(), Some(DurableError::Missing { .. }))
}

impl Iterator for CommittedBatches<'_> {
    type Item = Result<CommittedBatch, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The entry of one batch that is in the log.
pub(super) fn find(files: &dyn DurableFiles, batch: BatchId) -> Result<CommittedBatch, SinkError> {
    let holds = |segment: &&Segment| (segment.first..=segment.last).contains(&batch.0);
    let found = segments(files)?.0.iter().find(holds).map(|segment| read(files, segment)).transpose()?;
    let found = found.and_then(|batches| batches.into_iter().find(|entry| entry.batch == batch));
    let path = Segment { first: batch.0, last: batch.0, level: 0 }.path();
    found.ok_or_else(|| corrupt(files, &path, "it is missing"))
}

/// Merges the files of the log where `interval` of a kind are there, and forgets files of the output that were committed
/// before `forgotten_ms`.
pub(super) fn compact(files: &dyn DurableFiles, interval: u64, forgotten_ms: Option<i64>) -> Result<(), SinkError> {
    let interval = usize::try_from(interval).unwrap_or(usize::MAX).max(2);
    let (mut live, covered) = segments(files)?;
    delete(files, &covered);
    for level in 0..LAST_LEVEL {
        let of_level: Vec<Segment> = live.iter().filter(|segment| segment.level == level).copied().collect();
        let [first, .., last] = of_level.as_slice() else { continue };
        if of_level.len() < interval {
            continue;
        }
        let mut text = String::new();
        for segment in &of_level {
            for mut batch in read(files, segment)? {
                forget(&mut batch, forgotten_ms);
                text.push_str(&serde_json::to_string(&batch).expect("ids, names and numbers always have a JSON form"));
                text.push('\n');
            }
        }
        let long = text.len() >= LONG_BYTES;
        let merged = Segment { first: first.first, last: last.last, level: if long { LAST_LEVEL } else { level + 1 } };
        match files.put_new(&merged.path(), seal_text(text.trim_end_matches('\n'))) {
            Ok(()) | Err(DurableError::Exists { .. }) => {}
            Err(error) => return Err(open_error(files, "write", &merged.path(), error)),
        }
        delete(files, &of_level);
        live.retain(|segment| segment.level != level);
        live.push(merged);
        live.sort_unstable_by_key(|segment| segment.first);
    }
    match forgotten_ms {
        Some(_) => forget_old(files, &live, forgotten_ms),
        None => Ok(()),
    }
}

/// Empties merged files, the oldest first, until one has nothing that is old.
fn forget_old(files: &dyn DurableFiles, live: &[Segment], forgotten_ms: Option<i64>) -> Result<(), SinkError> {
    for segment in live.iter().filter(|segment| segment.level > 0) {
        let mut batches = read(files, segment)?;
        let (mut changed, mut old) = (false, true);
        for batch in &mut batches {
            let had = batch.files.len();
            old &= forget(batch, forgotten_ms);
            changed |= batch.files.len() < had;
        }
        if changed {
            let lines = batches.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
            let text = lines.expect("ids, names and numbers always have a JSON form").join("\n");
            let path = segment.path();
            files.put_over(&path, seal_text(&text)).map_err(|error| open_error(files, "write", &path, error))?;
        }
        if !old {
            break;
        }
    }
    Ok(())
}

/// Takes the files out of a batch that is too old; whether it is.
fn forget(batch: &mut CommittedBatch, forgotten_ms: Option<i64>) -> bool {
    let old = forgotten_ms.is_some_and(|forgotten| batch.committed_ms < forgotten);
    if old {
        batch.files.clear();
        batch.rows = 0;
    }
    old
}

fn delete(files: &dyn DurableFiles, segments: &[Segment]) {
    for segment in segments {
        let path = segment.path();
        if let Err(error) = files.delete(&path) {
            tracing::warn!(file = path, %error, "a manifest that is in a wider one could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{self, CommittedFile};
    use super::*;
    use millstream_common::{MemoryFiles, QueryId};

    fn batch(number: u64) -> CommittedBatch {
        let files = vec![CommittedFile { name: format!("part-{number}"), rows: 1, bytes: 1 }];
        let query = QueryId(uuid::Uuid::from_u128(1));
        CommittedBatch { query, batch: BatchId(number), rows: 1, files, committed_ms: number as i64 }
    }

    fn add(files: &dyn DurableFiles, number: u64) {
        assert!(manifest::add(files, &batch(number)).is_ok());
    }

    fn numbers(files: &dyn DurableFiles) -> Vec<u64> {
        CommittedBatches::new(files).unwrap().map(|batch| batch.unwrap().batch.0).collect()
    }

    fn names(files: &dyn DurableFiles) -> Vec<String> {
        files.list(FOLDER).unwrap()
    }

    #[test]
    fn some_of_a_kind_become_one_and_readers_see_no_difference() {
        let files = MemoryFiles::default();
        let given: Vec<u64> = (0..137).filter(|number| number % 11 != 3).collect();
        for number in &given {
            add(&files, *number);
            if (number + 1) % 10 == 0 {
                compact(&files, 5, None).unwrap();
                assert_eq!(numbers(&files).last(), Some(number));
            }
        }
        assert_eq!(numbers(&files), given);
        assert_eq!(latest(&files).unwrap(), given.last().copied().map(BatchId));
        assert_eq!(find(&files, BatchId(50)).unwrap(), batch(50));
        assert!(find(&files, BatchId(3)).is_err());
        assert!(names(&files).len() < 25, "{:?}", names(&files));
        assert!(names(&files).iter().any(|name| name.ends_with(".2.compact")), "{:?}", names(&files));
    }

    #[test]
    fn what_a_crash_has_left_beside_a_merged_file_counts_once() {
        let files = MemoryFiles::default();
        for number in 0..4 {
            add(&files, number);
        }
        let before = MemoryFiles::default();
        for name in names(&files) {
            before.put_new(&format!("{FOLDER}/{name}"), files.get(&format!("{FOLDER}/{name}")).unwrap()).unwrap();
        }
        compact(&files, 4, None).unwrap();
        assert_eq!(names(&files), ["0-3.1.compact"]);
        // The reader began before the files were merged.
        let mut reader = CommittedBatches::new(&before).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().batch.0, 0);
        let merged = files.get("_millstream/0-3.1.compact").unwrap();
        before.put_new("_millstream/0-3.1.compact", merged).unwrap();
        assert_eq!(numbers(&before), [0, 1, 2, 3]);
        for number in 1..4 {
            before.delete(&format!("{FOLDER}/{number}.manifest")).unwrap();
        }
        assert_eq!(reader.map(|batch| batch.unwrap().batch.0).collect::<Vec<_>>(), [1, 2, 3]);
        compact(&before, 4, None).unwrap();
        assert_eq!(names(&before), ["0-3.1.compact"], "the leftover is removed");
    }

    #[test]
    fn files_that_are_too_old_are_forgotten_and_their_batches_are_not() {
        let files = MemoryFiles::default();
        for number in 0..8 {
            add(&files, number);
            if number % 2 == 1 {
                compact(&files, 2, Some(number as i64 - 3)).unwrap();
            }
        }
        let batches: Vec<CommittedBatch> = CommittedBatches::new(&files).unwrap().map(Result::unwrap).collect();
        let kept: Vec<u64> =
            batches.iter().filter(|batch| !batch.files.is_empty()).map(|batch| batch.batch.0).collect();
        assert_eq!((batches.len(), kept), (8, vec![4, 5, 6, 7]));
    }

    #[test]
    fn a_damaged_merged_file_is_refused() {
        let files = MemoryFiles::default();
        (0..2).for_each(|number| add(&files, number));
        compact(&files, 2, None).unwrap();
        let path = "_millstream/0-1.1.compact";
        let text = String::from_utf8(files.get(path).unwrap().to_vec()).unwrap();
        files.put_over(path, text.replace("part-0", "part-7").into()).unwrap();
        let error = CommittedBatches::new(&files).unwrap().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}
