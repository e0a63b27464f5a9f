//! The ends of the batches that were released last: what is before all of them no batch can be run again from.
//!
//! ```text
//!   released      [250,480,731]      the newest is last; as many as there are batches that may be read again
//! ```
//!
//! It is kept beside the spool, because a query that runs now and then releases a batch or two each time, and the spool would
//! grow for ever if each run counted anew.
//!
//! Rule of its life: a release is written down before a file goes. A list that is older than the truth, after a crash or
//! because nobody needed it, lets files stay for longer and never go too early.

use crate::{SourceError, sealed};
use millstream_common::DurableFiles;
use std::collections::VecDeque;
use std::sync::Arc;

const PATH: &str = "released";

/// The ends of the batches that were released last.
#[derive(Debug)]
pub(super) struct Released {
    name: String,
    files: Arc<dyn DurableFiles>,
    /// How many batches may be read again.
    retained: u64,
    ends: VecDeque<u64>,
    /// How many this run has added.
    added: u64,
}

impl Released {
    /// Those that the checkpoint of a source knows.
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>, retained: u64) -> Result<Self, SourceError> {
        let ends = match sealed::read(name, files.as_ref(), PATH)? {
            None => VecDeque::new(),
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| sealed::damaged(name, files.as_ref(), PATH, &error.to_string()))?,
        };
        Ok(Self { name: name.to_owned(), files, retained, ends, added: 0 })
    }

    /// Adds the end of a batch; answers up to where messages may be forgotten, if that is further than before.
    pub(super) fn add(&mut self, end: u64) -> Option<u64> {
        // A batch without messages needs none, and one that is run again is released again.
        if self.ends.back().is_some_and(|newest| *newest >= end) {
            return None;
        }
        self.ends.push_back(end);
        let mut until = None;
        while self.ends.len() as u64 > self.retained {
            until = self.ends.pop_front();
        }
        self.added = self.added.saturating_add(1);
        // A run that has added them all knows enough by itself, and need not write at each batch for ever.
        if self.added <= self.retained.max(1) {
            self.keep();
        }
        until
    }

    /// Best effort: without it files stay for longer.
    fn keep(&self) {
        let written = serde_json::to_string(&self.ends).map_err(|error| error.to_string());
        let written =
            written.and_then(|text| self.files.put_over(PATH, sealed::seal(text)).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::warn!(
                source = self.name,
                error,
                "what is released cannot be kept: files of the spool stay longer"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::MemoryFiles;

    #[test]
    fn releases_are_counted_over_restarts() {
        let files = Arc::new(MemoryFiles::default());
        let mut forgotten = Vec::new();
        for end in [10, 20, 30, 40, 50] {
            let mut released = Released::open("s", Arc::clone(&files) as _, 2).unwrap();
            forgotten.push(released.add(end));
        }
        assert_eq!(forgotten, [None, None, Some(10), Some(20), Some(30)]);
        let mut fewer = Released::open("s", Arc::clone(&files) as _, 1).unwrap();
        assert_eq!(fewer.add(60), Some(50));
    }

    #[test]
    fn a_release_that_comes_again_after_a_crash_counts_once() {
        let files = Arc::new(MemoryFiles::default());
        for _ in 0..5 {
            let mut released = Released::open("s", Arc::clone(&files) as _, 2).unwrap();
            assert_eq!((released.add(10), released.add(20)), (None, None));
        }
    }

    #[test]
    fn a_run_that_knows_enough_writes_no_more_and_what_is_kept_is_never_too_new() {
        let files = Arc::new(MemoryFiles::default());
        let mut released = Released::open("s", Arc::clone(&files) as _, 2).unwrap();
        let all: Vec<Option<u64>> = (1..=9).map(|end| released.add(end)).collect();
        assert_eq!(all.last(), Some(&Some(7)));
        // As after a crash.
        let mut again = Released::open("s", Arc::clone(&files) as _, 2).unwrap();
        assert_eq!((again.add(10), again.add(11), again.add(12)), (Some(1), Some(2), Some(10)));
    }

    #[test]
    fn a_list_that_is_damaged_is_told_of() {
        let files = Arc::new(MemoryFiles::default());
        files.put_over(PATH, "x".into()).unwrap();
        assert!(matches!(Released::open("s", files, 2), Err(SourceError::Damaged { .. })));
    }
}
