//! A fork of a checkpoint: what is there as of some batch, and a place of its own for everything that is written.
//!
//! ```text
//!   read ──► own files ── not there ──► files of the checkpoint, of both logs only up to the fork
//!   write, delete ──► own files only
//! ```
//!
//! Beside the loop: a batch is run again on a fork, by the code that recovers a run after a crash. So a replay, a dry run
//! of a candidate and a shadow need no second way to run a batch.
//!
//! Rule of its life: the checkpoint below is never written, whatever runs on the fork; the lease of the run that has it is
//! not seen and not taken. Files that the run below deletes meanwhile are gone for the fork, too.

use crate::batch_log::{BatchEntry, batch_of};
use crate::{CommitEntry, OffsetEntry};
use bytes::Bytes;
use millstream_common::{BatchId, DurableError, DurableFiles};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A copy-on-write view of a checkpoint's files.
#[derive(Debug)]
pub struct ForkedFiles {
    base: Arc<dyn DurableFiles>,
    own: Arc<dyn DurableFiles>,
    offsets: Option<BatchId>,
    commits: Option<BatchId>,
    gone: Mutex<BTreeSet<String>>,
}

impl ForkedFiles {
    /// A fork at which batch `batch` is defined and not done: a run on it runs that batch again. `own` takes what is
    /// written and should be empty.
    pub fn before(base: Arc<dyn DurableFiles>, own: Arc<dyn DurableFiles>, batch: BatchId) -> Self {
        Self { base, own, offsets: Some(batch), commits: batch.previous(), gone: Mutex::default() }
    }

    /// A fork at which batch `batch` is the last that is done.
    pub fn after(base: Arc<dyn DurableFiles>, own: Arc<dyn DurableFiles>, batch: BatchId) -> Self {
        Self { base, own, offsets: Some(batch), commits: Some(batch), gone: Mutex::default() }
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a file of the checkpoint below belongs to the fork.
    fn shows(&self, path: &str) -> bool {
        let through = |folder: &str, last: Option<BatchId>| {
            let name = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some(batch_of(name).is_none_or(|batch| last.is_some_and(|last| batch <= last)))
        };
        let of_log = through(OffsetEntry::FOLDER, self.offsets).or_else(|| through(CommitEntry::FOLDER, self.commits));
        of_log.unwrap_or(path != crate::lease::LEASE) && !self.gone().contains(path)
    }

    fn is_below(&self, path: &str) -> Result<bool, DurableError> {
        if !self.shows(path) {
            return Ok(false);
        }
        match self.base.get(path) {
            Ok(_) => Ok(true),
            Err(DurableError::Missing { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl DurableFiles for ForkedFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        if self.is_below(path)? {
            return Err(DurableError::Exists { path: path.to_owned() });
        }
        self.own.put_new(path, bytes)
    }

    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.own.put_over(path, bytes)
    }

    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        match self.own.get(path) {
            Err(DurableError::Missing { .. }) if self.shows(path) => self.base.get(path),
            own => own,
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        let path = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let mut names: BTreeSet<String> =
            self.base.list(folder)?.into_iter().filter(|name| self.shows(&path(name))).collect();
        names.extend(self.own.list(folder)?);
        Ok(names.into_iter().collect())
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        let mut names: BTreeSet<String> = self.base.list_folders(folder)?.into_iter().collect();
        names.extend(self.own.list_folders(folder)?);
        Ok(names.into_iter().collect())
    }

    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.gone().insert(path.to_owned());
        self.own.delete(path)
    }

    fn location(&self) -> String {
        format!("{} (fork)", self.base.location())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_files;

    fn files(names: &[&str]) -> Arc<dyn DurableFiles> {
        let files = open_files("memory:///", &[]).unwrap();
        names.iter().for_each(|name| files.put_new(name, Bytes::from((*name).to_owned())).unwrap());
        files
    }

    #[test]
    fn a_fork_sees_the_logs_up_to_its_batch_and_no_lease() {
        let base = files(&["metadata", "lease", "offsets/8", "offsets/9", "commits/8", "commits/9", "state/a/0/9-x"]);
        let before = ForkedFiles::before(Arc::clone(&base), files(&[]), BatchId(9));
        assert_eq!(before.list("offsets").unwrap(), ["8", "9"]);
        assert_eq!(before.list("commits").unwrap(), ["8"]);
        assert_eq!(before.list("").unwrap(), ["metadata"]);
        assert!(matches!(before.get("commits/9"), Err(DurableError::Missing { .. })));
        assert!(before.get("state/a/0/9-x").is_ok());
        let after = ForkedFiles::after(base, files(&[]), BatchId(8));
        assert_eq!(after.list("offsets").unwrap(), ["8"]);
        assert_eq!(after.list("commits").unwrap(), ["8"]);
    }

    #[test]
    fn what_is_written_and_deleted_on_a_fork_stays_there() {
        let base = files(&["offsets/0", "offsets/1", "commits/0", "commits/1", "plugins/p"]);
        let fork = ForkedFiles::before(Arc::clone(&base), files(&[]), BatchId(1));
        assert!(matches!(fork.put_new("plugins/p", Bytes::new()), Err(DurableError::Exists { .. })));
        fork.put_new("commits/1", "other".into()).unwrap();
        assert!(matches!(fork.put_new("commits/1", "again".into()), Err(DurableError::Exists { .. })));
        fork.delete("offsets/0").unwrap();
        fork.put_over("commits/0", "changed".into()).unwrap();
        assert_eq!(fork.list("offsets").unwrap(), ["1"]);
        assert_eq!(fork.get("commits/1").unwrap(), "other");
        assert_eq!(fork.get("commits/0").unwrap(), "changed");
        assert_eq!(base.get("commits/1").unwrap(), "commits/1");
        assert_eq!(base.get("commits/0").unwrap(), "commits/0");
        assert_eq!(base.list("offsets").unwrap(), ["0", "1"]);
    }
}
