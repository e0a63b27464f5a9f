//! Merging manifests, so that a long log is few files. Their names and how they are read: the client's file log.
//!
//! A file that has become longer than some megabytes is merged no more, so neither a merge nor a reader that goes from batch
//! to batch holds more than that, however long the log is. Only files that are neighbours are merged.
//!
//! Rule of its life: a merged file is written once, whole; then those in it are deleted. In between both are there and say the
//! same.

use super::manifest::{corrupt, of_one, open_error};
use crate::SinkError;
use millstream_client::file_log::{CommittedBatch, Segment, read_segment, seal_text, segments};
use millstream_common::{BatchId, DurableError, DurableFiles};

/// The level of files that are merged no more.
const LAST_LEVEL: u8 = 9;
/// From which length on a merged file is merged no more.
const LONG_BYTES: usize = 8 << 20;

/// The newest batch in the log.
pub(super) fn latest(files: &dyn DurableFiles) -> Result<Option<BatchId>, SinkError> {
    Ok(segments(files)?.0.last().map(|segment| BatchId(segment.last)))
}

/// The entry of one batch that is in the log.
pub(super) fn find(files: &dyn DurableFiles, batch: BatchId) -> Result<CommittedBatch, SinkError> {
    let holds = |segment: &&Segment| (segment.first..=segment.last).contains(&batch.0);
    let found = segments(files)?.0.iter().find(holds).map(|segment| read_segment(files, segment)).transpose()?;
    let found = found.and_then(|batches| batches.into_iter().find(|entry| entry.batch == batch));
    found.ok_or_else(|| corrupt(files, &of_one(batch).path(), "it is missing"))
}

/// Merges the files of the log where `interval` of a kind are there, and forgets files of the output that were committed
/// before `forgotten_ms`.
pub(super) fn compact(files: &dyn DurableFiles, interval: u64, forgotten_ms: Option<i64>) -> Result<(), SinkError> {
    let interval = usize::try_from(interval).unwrap_or(usize::MAX).max(2);
    let (mut live, covered) = segments(files)?;
    delete(files, &covered);
    for level in 0..LAST_LEVEL {
        while let Some(at) = neighbours(&live, level, interval) {
            let of_level = live[at.clone()].to_vec();
            let [first, .., last] = of_level.as_slice() else { break };
            let mut text = String::new();
            for segment in &of_level {
                for mut batch in read_segment(files, segment)? {
                    forget(&mut batch, forgotten_ms);
                    text.push_str(
                        &serde_json::to_string(&batch).expect("ids, names and numbers always have a JSON form"),
                    );
                    text.push('\n');
                }
            }
            let long = text.len() >= LONG_BYTES;
            let merged =
                Segment { first: first.first, last: last.last, level: if long { LAST_LEVEL } else { level + 1 } };
            match files.put_new(&merged.path(), seal_text(text.trim_end_matches('\n'))) {
                Ok(()) | Err(DurableError::Exists { .. }) => {}
                Err(error) => return Err(open_error(files, "write", &merged.path(), error)),
            }
            delete(files, &of_level);
            live.splice(at, [merged]);
        }
    }
    match forgotten_ms {
        Some(_) => forget_old(files, &live, forgotten_ms),
        None => Ok(()),
    }
}

/// The first `interval` or more files of a level with none of another between them.
fn neighbours(live: &[Segment], level: u8, interval: usize) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    for run in live.chunk_by(|one, other| one.level == other.level) {
        let range = from..from + run.len();
        if run.len() >= interval && run.first().is_some_and(|first| first.level == level) {
            return Some(range);
        }
        from = range.end;
    }
    None
}

/// Empties merged files, the oldest first, until one has nothing that is old.
fn forget_old(files: &dyn DurableFiles, live: &[Segment], forgotten_ms: Option<i64>) -> Result<(), SinkError> {
    for segment in live.iter().filter(|segment| segment.level > 0) {
        let mut batches = read_segment(files, segment)?;
        let (mut changed, mut old) = (false, true);
        for batch in &mut batches {
            let had = batch.files.len() + batch.merged.len();
            old &= forget(batch, forgotten_ms);
            changed |= batch.files.len() + batch.merged.len() < had;
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
        batch.merged.clear();
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
    use super::super::manifest;
    use super::*;
    use millstream_client::file_log::{CommittedBatches, CommittedFile, FOLDER};
    use millstream_common::{MemoryFiles, QueryId};

    fn batch(number: u64) -> CommittedBatch {
        let files = vec![CommittedFile { name: format!("part-{number}"), rows: 1, bytes: 1 }];
        let query = QueryId(uuid::Uuid::from_u128(1));
        CommittedBatch { query, batch: BatchId(number), rows: 1, files, merged: vec![], committed_ms: number as i64 }
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
    fn a_long_file_between_short_ones_is_not_skipped_by_a_merge_around_it() {
        let files = MemoryFiles::default();
        let of = |number: u64| CommittedBatch {
            // Of batches 2 and 3 alone the names are more than a merged file should hold.
            files: (0..if number / 2 == 1 { 120_000 } else { 1 })
                .map(|part| CommittedFile { name: format!("part-{number}-{part}"), rows: 1, bytes: 1 })
                .collect(),
            ..batch(number)
        };
        for number in 0..8 {
            assert!(manifest::add(&files, &of(number)).is_ok());
            compact(&files, 2, None).unwrap();
            assert_eq!(numbers(&files), (0..=number).collect::<Vec<_>>());
            assert_eq!(find(&files, BatchId(number / 2)).unwrap().batch.0, number / 2);
        }
        assert!(names(&files).contains(&"2-3.9.compact".to_owned()), "{:?}", names(&files));
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
