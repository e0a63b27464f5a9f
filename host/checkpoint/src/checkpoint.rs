//! The whole durable folder of a query.
//!
//! The runtime opens it, takes the lease, asks where to resume, and from then on writes one offset entry and one
//! commit entry per batch. `FORMAT.md` draws the folder.
//!
//! Rule of its life: nothing is deleted that one of the last batches (100 by default) needs.
//!
//! It hands out folders for sources and state and does not look into them.

use crate::metadata::FORMAT_VERSION;
use crate::resume::{LogContents, resume};
use crate::{
    CheckpointError, CommitLog, FallbackLog, Lease, LeaseHolder, Metadata, OffsetLog, PluginStore, PreparedStore,
    ResumePoint, SwapLog,
};
use millstream_common::{BatchId, Digest, DurableFiles, OperatorUid, QueryId, ScopedFiles};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// How many batches can be run again or returned to, unless told otherwise (Spark's `minBatchesToRetain`).
pub const RETAINED_BATCHES: u64 = 100;

/// What `purge` deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// Entries of `offsets`.
    pub offsets: usize,
    /// Entries of `commits`.
    pub commits: usize,
    /// Components.
    pub plugins: usize,
    /// The oldest batch that is still there, as far as the purge went.
    pub oldest: BatchId,
}

/// The durable folder of a query.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    files: Arc<dyn DurableFiles>,
    metadata: Metadata,
    retained_batches: u64,
}

impl Checkpoint {
    /// Opens the checkpoint of `files`.
    ///
    /// # Errors
    /// [`CheckpointError::Absent`] when there is none, [`CheckpointError::NoMetadata`] when its identity is lost.
    pub fn open(files: Arc<dyn DurableFiles>) -> Result<Self, CheckpointError> {
        match Metadata::read(&*files)? {
            Some(metadata) => Ok(Self { files, metadata, retained_batches: RETAINED_BATCHES }),
            None => Err(CheckpointError::Absent { place: files.location() }),
        }
    }

    /// Makes a checkpoint for a new query.
    ///
    /// # Errors
    /// [`CheckpointError::Present`] when there is one, [`CheckpointError::NoMetadata`] when there are remains of one.
    pub fn create(files: Arc<dyn DurableFiles>, name: Option<&str>, now_ms: i64) -> Result<Self, CheckpointError> {
        if Metadata::read(&*files)?.is_some() {
            return Err(CheckpointError::Present { place: files.location() });
        }
        let metadata = Metadata {
            query: QueryId(Uuid::new_v4()),
            format_version: FORMAT_VERSION,
            created_ms: now_ms,
            name: name.map(str::to_owned),
        };
        metadata.create(&*files)?;
        Ok(Self { files, metadata, retained_batches: RETAINED_BATCHES })
    }

    /// Opens the checkpoint, or makes it when there is none.
    ///
    /// # Errors
    /// As `open` and `create`.
    pub fn open_or_create(
        files: Arc<dyn DurableFiles>,
        name: Option<&str>,
        now_ms: i64,
    ) -> Result<Self, CheckpointError> {
        match Self::open(Arc::clone(&files)) {
            Err(CheckpointError::Absent { .. }) => match Self::create(Arc::clone(&files), name, now_ms) {
                // Another process was faster; the lease will tell which of the two may go on.
                Err(CheckpointError::Present { .. }) => Self::open(files),
                result => result,
            },
            result => result,
        }
    }

    /// Keeps another number of batches than [`RETAINED_BATCHES`]; two at least, which a restart needs.
    #[must_use]
    pub fn retaining(mut self, batches: u64) -> Self {
        self.retained_batches = batches.max(2);
        self
    }

    /// The query's identity.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The id of the query.
    pub fn query(&self) -> QueryId {
        self.metadata.query
    }

    /// All files of the checkpoint.
    pub fn files(&self) -> &Arc<dyn DurableFiles> {
        &self.files
    }

    /// Where it is, for people.
    pub fn location(&self) -> String {
        self.files.location()
    }

    /// What each batch is.
    pub fn offset_log(&self) -> OffsetLog {
        OffsetLog::new(Arc::clone(&self.files))
    }

    /// Which batches are done.
    pub fn commit_log(&self) -> CommitLog {
        CommitLog::new(Arc::clone(&self.files))
    }

    /// What a sink with two phases holds ready.
    pub fn prepared(&self) -> PreparedStore {
        PreparedStore::new(Arc::clone(&self.files))
    }

    /// Which batches began with other code.
    pub fn swap_log(&self) -> SwapLog {
        SwapLog::new(Arc::clone(&self.files))
    }

    /// Which batches were run without their candidate.
    pub fn fallbacks(&self) -> FallbackLog {
        FallbackLog::new(Arc::clone(&self.files))
    }

    /// The components of its batches.
    pub fn plugins(&self) -> PluginStore {
        PluginStore::new(Arc::clone(&self.files))
    }

    /// The folder of a source's own log.
    pub fn source_files(&self, source: &str) -> ScopedFiles {
        ScopedFiles::new(Arc::clone(&self.files), format!("sources/{}", folder_name(source)))
    }

    /// The folder of one partition of an operator's state.
    pub fn state_files(&self, operator: &OperatorUid, partition: u32) -> ScopedFiles {
        ScopedFiles::new(Arc::clone(&self.files), format!("state/{operator}/{partition}"))
    }

    /// Takes the lease: from now on no other run may start on this checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError::InUse`] when another run has it.
    pub fn lease(&self, holder: LeaseHolder, now_ms: i64) -> Result<Lease, CheckpointError> {
        Lease::acquire(Arc::clone(&self.files), holder, now_ms)
    }

    /// Where a run begins.
    ///
    /// # Errors
    /// When the logs cannot be read or contradict each other.
    pub fn resume(&self) -> Result<ResumePoint, CheckpointError> {
        let (offset_log, commit_log) = (self.offset_log(), self.commit_log());
        let (offsets, commits) = (offset_log.batches()?, commit_log.batches()?);
        let last = offsets.last().copied();
        let entry = |batch: Option<BatchId>| match batch {
            Some(batch) => offset_log.get(batch),
            None => Ok(None),
        };
        let commit = match commits.last() {
            Some(batch) => commit_log.get(*batch)?,
            None => None,
        };
        let done = last.is_some() && commits.last().copied() == last;
        // A done batch needs no predecessor's definition.
        let previous = if done { None } else { entry(last.and_then(BatchId::previous))? };
        let logs = LogContents { latest: entry(last)?, previous, commit, offsets, commits };
        resume(&self.location(), logs)
    }

    /// Deletes what only batches before `before` need: their entries, and the components that no retained entry
    /// and none of `in_use` names. The last retained batches stay whatever `before` says.
    ///
    /// The runtime calls it between batches and gives the components that it has loaded or is about to load.
    ///
    /// # Errors
    /// When an entry or folder cannot be read or a file not be deleted; safe to call again.
    pub fn purge(&self, before: BatchId, in_use: &[Digest]) -> Result<Purged, CheckpointError> {
        let (offset_log, commit_log) = (self.offset_log(), self.commit_log());
        let Some(done) = commit_log.batches()?.last().copied() else {
            return Ok(Purged { offsets: 0, commits: 0, plugins: 0, oldest: BatchId::FIRST });
        };
        let before = BatchId(before.0.min(done.0.saturating_add(1).saturating_sub(self.retained_batches)));
        let (offsets, commits) = (offset_log.purge(before)?, commit_log.purge(before)?);
        self.fallbacks().purge(before)?;
        let mut purged = Purged { offsets, commits, plugins: 0, oldest: before };
        let mut kept: BTreeSet<Digest> = in_use.iter().copied().collect();
        let plugins = self.plugins();
        if plugins.list()?.iter().any(|digest| !kept.contains(digest)) {
            for batch in offset_log.batches()? {
                let entry = offset_log.get(batch)?;
                kept.extend(entry.iter().flat_map(|entry| entry.components()));
            }
            purged.plugins = plugins.delete_all_but(&kept)?;
        }
        Ok(purged)
    }
}

/// A folder name for any source name: letters, digits, `-` and `_` stay, every other byte becomes `=` and two hex
/// digits, so that different names have different folders.
fn folder_name(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            folder.push(char::from(byte));
        } else {
            folder.push_str(&format!("={byte:02x}"));
        }
    }
    if folder.is_empty() { "=".into() } else { folder }
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn folder_names_are_plain_and_different_for_different_sources() {
        assert_eq!(folder_name("clicks_2-a"), "clicks_2-a");
        assert_eq!(folder_name("../x"), "=2e=2e=2fx");
        assert_eq!(folder_name(""), "=");
        assert_ne!(folder_name("a b"), folder_name("a=20b"));
    }
}
