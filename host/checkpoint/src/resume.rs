//! Where a run begins: one value from the two logs, by a pure function.
//!
//! ```text
//!   offsets ends   commits ends   then
//!   –              –              fresh: the first batch
//!   L              L              next: batch L+1 begins where L ended
//!   L              L-1            rerun: batch L again, exactly as defined
//!   anything else                 refused: a file is missing or does not belong there
//! ```
//!
//! Rule of its life: nothing is guessed. A log with a hole, an end that does not fit the other log's, or a batch
//! whose predecessor is gone is an error that names the file.

use crate::batch_log::BatchLog;
use crate::{CheckpointError, CommitEntry, OffsetEntry};
use millstream_common::BatchId;

/// Where a run begins.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum ResumePoint {
    /// No batch was ever defined.
    Fresh,
    /// The last batch was defined and not done: it runs again.
    Rerun {
        /// Its definition.
        entry: OffsetEntry,
        /// The definition of the batch before it: its watermark judges late rows. `None` for batch 0.
        previous: Option<OffsetEntry>,
        /// The state that it begins with; `None` for batch 0.
        base: Option<CommitEntry>,
    },
    /// All defined batches are done.
    Next {
        /// The definition of the last batch.
        last: OffsetEntry,
        /// The state and watermark that it left.
        commit: CommitEntry,
    },
}

/// What the two logs hold: everything that [`resume`] looks at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogContents {
    /// The batches in `offsets`, ascending.
    pub offsets: Vec<BatchId>,
    /// The batches in `commits`, ascending.
    pub commits: Vec<BatchId>,
    /// The entry of the last batch in `offsets`.
    pub latest: Option<OffsetEntry>,
    /// The entry of the batch before it.
    pub previous: Option<OffsetEntry>,
    /// The entry of the last batch in `commits`.
    pub commit: Option<CommitEntry>,
}

/// Decides where a run begins. `place` is for messages.
///
/// # Errors
/// [`CheckpointError::Gap`] when an entry is missing, [`CheckpointError::CommitAhead`] when a batch is done that is not
/// defined.
pub fn resume(place: &str, logs: LogContents) -> Result<ResumePoint, CheckpointError> {
    let offset_file = BatchLog::<OffsetEntry>::file;
    let commit_file = BatchLog::<CommitEntry>::file;
    let gap = |missing: String, present: String| CheckpointError::Gap { place: place.into(), missing, present };

    if let Some((missing, present)) = hole(&logs.offsets) {
        return Err(gap(offset_file(missing), offset_file(present)));
    }
    if let Some((missing, present)) = hole(&logs.commits) {
        return Err(gap(commit_file(missing), commit_file(present)));
    }
    let last_commit = logs.commits.last().copied();
    let Some(last) = logs.offsets.last().copied() else {
        return match last_commit {
            None => Ok(ResumePoint::Fresh),
            Some(commit) => Err(CheckpointError::CommitAhead { place: place.into(), commit, offsets: None }),
        };
    };
    if let Some(commit) = last_commit.filter(|commit| *commit > last) {
        return Err(CheckpointError::CommitAhead { place: place.into(), commit, offsets: Some(last) });
    }
    let entry = logs.latest.ok_or_else(|| gap(offset_file(last), offset_file(last)))?;
    if let Some(before) = last.previous() {
        // The batch before is never purged while this one is the last.
        if !logs.offsets.contains(&before) {
            return Err(gap(offset_file(before), offset_file(last)));
        }
    }
    if last_commit == Some(last) {
        let commit = logs.commit.ok_or_else(|| gap(commit_file(last), commit_file(last)))?;
        return Ok(ResumePoint::Next { last: entry, commit });
    }
    let Some(before) = last.previous() else {
        return Ok(ResumePoint::Rerun { entry, previous: None, base: None });
    };
    if last_commit != Some(before) {
        return Err(gap(commit_file(before), offset_file(last)));
    }
    let previous = logs.previous.ok_or_else(|| gap(offset_file(before), offset_file(last)))?;
    let base = logs.commit.ok_or_else(|| gap(commit_file(before), offset_file(last)))?;
    Ok(ResumePoint::Rerun { entry, previous: Some(previous), base: Some(base) })
}

/// The first hole in ascending batches: the batch that is missing and the one that shows it.
pub(crate) fn hole(batches: &[BatchId]) -> Option<(BatchId, BatchId)> {
    let pair = batches.windows(2).find(|pair| pair[0].next() != pair[1])?;
    Some((pair[0].next(), pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn offset(batch: u64) -> OffsetEntry {
        OffsetEntry {
            batch: BatchId(batch),
            batch_time_ms: batch as i64,
            watermark_ms: Some(batch as i64 * 10),
            sources: BTreeMap::new(),
            settings: BTreeMap::new(),
            plugins: BTreeMap::new(),
            state_schemas: BTreeMap::new().into(),
            connectors: BTreeMap::new(),
            output_mode: None,
            repartition: None,
            border: None,
        }
    }

    fn commit(batch: u64) -> CommitEntry {
        CommitEntry {
            batch: BatchId(batch),
            next_watermark_ms: None,
            state: BTreeMap::new(),
            output: None,
            canary: None,
            inputs: BTreeMap::new(),
            sink: None,
        }
    }

    fn logs(offsets: &[u64], commits: &[u64]) -> LogContents {
        let ids = |batches: &[u64]| batches.iter().copied().map(BatchId).collect::<Vec<_>>();
        let before = offsets.last().and_then(|last| last.checked_sub(1)).filter(|before| offsets.contains(before));
        LogContents {
            offsets: ids(offsets),
            commits: ids(commits),
            latest: offsets.last().map(|last| offset(*last)),
            previous: before.map(offset),
            commit: commits.last().map(|last| commit(*last)),
        }
    }

    #[test]
    fn the_whole_table_holds() {
        use ResumePoint::{Fresh, Next, Rerun};
        let cases: &[(&[u64], &[u64], ResumePoint)] = &[
            (&[], &[], Fresh),
            (&[0], &[], Rerun { entry: offset(0), previous: None, base: None }),
            (&[0], &[0], Next { last: offset(0), commit: commit(0) }),
            (&[0, 1], &[0], Rerun { entry: offset(1), previous: Some(offset(0)), base: Some(commit(0)) }),
            (&[0, 1], &[0, 1], Next { last: offset(1), commit: commit(1) }),
            (&[7, 8, 9], &[7, 8], Rerun { entry: offset(9), previous: Some(offset(8)), base: Some(commit(8)) }),
            // A purge that was interrupted leaves the logs with different beginnings.
            (&[8, 9], &[5, 6, 7, 8, 9], Next { last: offset(9), commit: commit(9) }),
            (&[5, 6, 7, 8, 9], &[9], Next { last: offset(9), commit: commit(9) }),
            (&[9, 10], &[9, 10], Next { last: offset(10), commit: commit(10) }),
        ];
        for (offsets, commits, point) in cases {
            assert_eq!(&resume("here", logs(offsets, commits)).unwrap(), point, "{offsets:?} {commits:?}");
        }
    }

    #[test]
    fn everything_else_is_refused_and_names_the_file() {
        let cases: &[(&[u64], &[u64], &str)] = &[
            (&[0, 2], &[0], "`offsets/2` is there, `offsets/1` is not"),
            (&[0, 1, 2, 3], &[0, 2], "`commits/2` is there, `commits/1` is not"),
            (&[5], &[5], "`offsets/5` is there, `offsets/4` is not"),
            (&[5], &[4], "`offsets/5` is there, `offsets/4` is not"),
            (&[0, 1, 2], &[0], "`offsets/2` is there, `commits/1` is not"),
            (&[0, 1], &[], "`offsets/1` is there, `commits/0` is not"),
            (&[8, 9], &[], "`offsets/9` is there, `commits/8` is not"),
            (&[], &[0], "batch 0 is in `commits`, `offsets` ends before batch 0"),
            (&[0, 1], &[0, 1, 2], "batch 2 is in `commits`, `offsets` ends with batch 1"),
        ];
        for (offsets, commits, message) in cases {
            let error = resume("here", logs(offsets, commits)).unwrap_err();
            assert!(error.to_string().ends_with(message), "{offsets:?} {commits:?}: {error}");
            assert!(millstream_common::Hint::hint(&error).is_some());
        }
    }

    #[test]
    fn every_pair_of_small_logs_is_answered_by_the_rule() {
        let subsets = |bits: u32| (0..4).filter(|bit| bits >> bit & 1 == 1).collect::<Vec<u64>>();
        for (offsets, commits) in (0..16).flat_map(|o| (0..16).map(move |c| (subsets(o), subsets(c)))) {
            let whole = |batches: &[u64]| batches.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            let fits = match (offsets.last(), commits.last()) {
                (None, None) => true,
                (None, Some(_)) => false,
                (Some(last), done) => {
                    (*last == 0 || offsets.contains(&(last - 1)))
                        && (done == Some(last) || done.copied() == last.checked_sub(1))
                }
            };
            let answer = resume("here", logs(&offsets, &commits));
            assert_eq!(answer.is_ok(), whole(&offsets) && whole(&commits) && fits, "{offsets:?} {commits:?}");
        }
    }
}
