//! What the query of a batch said, by digest: so that the batch can be run again when the query was edited since.
//!
//! A text is put here before an offset entry names it. What it says is the runtime's.
//!
//! Rule of its life: the name is the digest, so a text is never changed; putting it twice is no error. It goes when no
//! retained batch names it.

use crate::CheckpointError;
use bytes::Bytes;
use millstream_common::{Digest, DurableError, DurableFiles};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const FOLDER: &str = "queries";

/// The folder `queries`.
#[derive(Debug, Clone)]
pub struct QueryStore {
    files: Arc<dyn DurableFiles>,
}

impl QueryStore {
    /// The texts of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self { files }
    }

    pub(crate) fn file(digest: &Digest) -> String {
        format!("{FOLDER}/{digest}.json")
    }

    fn failed(&self, source: DurableError) -> CheckpointError {
        CheckpointError::files(self.files.location(), source)
    }

    /// Stores a text; answers its digest.
    ///
    /// # Errors
    /// The files' own; [`CheckpointError::Damaged`] when there is another text under its digest.
    pub fn put(&self, text: Bytes) -> Result<Digest, CheckpointError> {
        let digest = Digest::of(&text);
        match self.files.put_new(&Self::file(&digest), text) {
            Ok(()) => Ok(digest),
            Err(DurableError::Exists { .. }) => self.get(&digest).map(|_| digest),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// A text, verified; `None` when it is not there.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] when it is another one.
    pub fn get(&self, digest: &Digest) -> Result<Option<Bytes>, CheckpointError> {
        let file = Self::file(digest);
        let bytes = match self.files.get(&file) {
            Ok(bytes) => bytes,
            Err(DurableError::Missing { .. }) => return Ok(None),
            Err(source) => return Err(self.failed(source)),
        };
        let found = Digest::of(&bytes);
        if found == *digest {
            return Ok(Some(bytes));
        }
        let reason = format!("its digest is {found}");
        Err(CheckpointError::Damaged { place: self.files.location(), file, reason })
    }

    /// The texts that are there, unverified; foreign names are left out.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn list(&self) -> Result<Vec<Digest>, CheckpointError> {
        Ok(self.names()?.iter().filter_map(|name| digest_of(name)).collect())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.files.list(FOLDER).map_err(|source| self.failed(source))
    }

    pub(crate) fn delete_all_but(&self, kept: &BTreeSet<Digest>) -> Result<(), CheckpointError> {
        for digest in self.list()?.iter().filter(|digest| !kept.contains(digest)) {
            self.files.delete(&Self::file(digest)).map_err(|source| self.failed(source))?;
        }
        Ok(())
    }
}

/// The digest in a file name.
pub(crate) fn digest_of(name: &str) -> Option<Digest> {
    let digest: Digest = name.strip_suffix(".json")?.parse().ok()?;
    (format!("{digest}.json") == name).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::MemoryFiles;

    #[test]
    fn a_text_is_kept_under_its_digest_and_another_one_in_its_place_is_told() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let store = QueryStore::new(Arc::clone(&files));
        let one = store.put("one".into()).unwrap();
        assert_eq!(store.put("one".into()).unwrap(), one);
        let two = store.put("two".into()).unwrap();
        assert_eq!(store.get(&one).unwrap().unwrap(), "one");
        store.delete_all_but(&BTreeSet::from([two])).unwrap();
        assert_eq!((store.list().unwrap(), store.get(&one).unwrap()), (vec![two], None));
        files.put_over(&QueryStore::file(&two), "2".into()).unwrap();
        assert!(matches!(store.get(&two), Err(CheckpointError::Damaged { .. })));
        assert!(store.put("two".into()).is_err());
    }
}
