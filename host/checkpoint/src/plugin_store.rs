//! The components that batches of the checkpoint ran, by digest.
//!
//! A component is put here before an offset entry names it, so that the batch can run again with exactly those
//! bytes, wherever the plugin's file is by then.
//!
//! Rule of its life: the name is the digest, so a component is never changed; putting it twice is no error. It
//! goes when no retained batch names it.

use crate::CheckpointError;
use bytes::Bytes;
use millstream_common::{Digest, DurableError, DurableFiles};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const FOLDER: &str = "plugins";

/// The folder `plugins`.
#[derive(Debug, Clone)]
pub struct PluginStore {
    files: Arc<dyn DurableFiles>,
}

impl PluginStore {
    /// The components of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self { files }
    }

    pub(crate) fn file(digest: &Digest) -> String {
        format!("{FOLDER}/{digest}.wasm")
    }

    fn failed(&self, source: DurableError) -> CheckpointError {
        CheckpointError::files(self.files.location(), source)
    }

    fn damaged(&self, file: String, found: Digest) -> CheckpointError {
        let reason = format!("its digest is {found}");
        CheckpointError::Damaged { place: self.files.location(), file, reason }
    }

    /// Stores a component. One that is there already is left alone when it is whole, and written anew when not.
    ///
    /// # Errors
    /// When `bytes` do not have the digest; the files' own errors.
    pub fn put(&self, digest: &Digest, bytes: Bytes) -> Result<(), CheckpointError> {
        let (file, found) = (Self::file(digest), Digest::of(&bytes));
        if found != *digest {
            return Err(self.damaged(file, found));
        }
        match self.files.put_new(&file, bytes.clone()) {
            Err(DurableError::Exists { .. }) => {}
            result => return result.map_err(|source| self.failed(source)),
        }
        match self.get(digest) {
            Err(CheckpointError::Damaged { .. }) => {
                tracing::warn!(%file, "a stored component was damaged and is written again");
                self.files.put_over(&file, bytes).map_err(|source| self.failed(source))
            }
            result => result.map(drop),
        }
    }

    /// The bytes of a component, verified.
    ///
    /// # Errors
    /// [`CheckpointError::NoComponent`] when it is not there, [`CheckpointError::Damaged`] when its bytes are others.
    pub fn get(&self, digest: &Digest) -> Result<Bytes, CheckpointError> {
        let file = Self::file(digest);
        let bytes = self.files.get(&file).map_err(|error| match error {
            DurableError::Missing { .. } => {
                CheckpointError::NoComponent { place: self.files.location(), digest: digest.to_string() }
            }
            source => self.failed(source),
        })?;
        let found = Digest::of(&bytes);
        if found == *digest { Ok(bytes) } else { Err(self.damaged(file, found)) }
    }

    /// The components that are there, unverified.
    ///
    /// # Errors
    /// When the folder cannot be listed or holds a file that is no component.
    pub fn list(&self) -> Result<Vec<Digest>, CheckpointError> {
        let names = self.files.list(FOLDER).map_err(|source| self.failed(source))?;
        let digests = names.iter().map(|name| {
            digest_of(name).ok_or_else(|| CheckpointError::Foreign {
                place: self.files.location(),
                file: format!("{FOLDER}/{name}"),
                reason: "its name is no digest".into(),
            })
        });
        digests.collect()
    }

    pub(crate) fn delete_all_but(&self, kept: &BTreeSet<Digest>) -> Result<usize, CheckpointError> {
        let mut count = 0;
        for digest in self.list()?.iter().filter(|digest| !kept.contains(digest)) {
            self.files.delete(&Self::file(digest)).map_err(|source| self.failed(source))?;
            count += 1;
        }
        Ok(count)
    }
}

/// The digest in a file name.
pub(crate) fn digest_of(name: &str) -> Option<Digest> {
    let digest: Digest = name.strip_suffix(".wasm")?.parse().ok()?;
    (format!("{digest}.wasm") == name).then_some(digest)
}
