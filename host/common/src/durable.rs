//! Durable files: the one contract under offset log, commit log, state files and source logs.
//!
//! A durable file is immutable: it is written once, whole, and either it is there or it is not. The
//! implementations stand in `millstream-checkpoint` (local folder, any object store) and in the tests
//! (a store that fails at a chosen write).

use bytes::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a durable file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError {
    /// `put_new` found a file of that name: somebody else wrote it.
    #[error("`{path}` exists already")]
    Exists {
        /// The file, relative to the folder.
        path: String,
    },
    /// `get` found no file of that name.
    #[error("`{path}` does not exist")]
    Missing {
        /// The file, relative to the folder.
        path: String,
    },
    /// The storage below refused or failed.
    #[error("cannot {action} `{path}`")]
    Storage {
        /// What was tried: `write`, `read`, `list`, `delete`.
        action: &'static str,
        /// The file or folder, relative to the root.
        path: String,
        /// What the storage said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A folder of durable files. Paths are relative, with `/` between the parts.
///
/// Implementations must make `put_new` atomic and durable: when it answers `Ok`, the file survives a
/// crash of process and machine; when the process dies inside, either the whole file is there or none.
pub trait DurableFiles: Send + Sync + fmt::Debug {
    /// Writes a new file; fails with [`DurableError::Exists`] when there is one (put-if-absent).
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError>;
    /// Writes a file, replacing an older one as a whole. Only the lease and rebuildable files use it.
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError>;
    /// Reads a whole file.
    fn get(&self, path: &str) -> Result<Bytes, DurableError>;
    /// Names of the files directly below `folder` (not of folders), sorted; empty when there is none.
    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError>;
    /// Names of the folders directly below `folder`, sorted; empty when there is none.
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError>;
    /// Deletes a file; a missing one is no error.
    fn delete(&self, path: &str) -> Result<(), DurableError>;
    /// The place as a person would name it: a path or URL.
    fn location(&self) -> String;
    /// The folder on this machine, when it is one: there a lease can hold a lock that dies with its process.
    fn local_folder(&self) -> Option<PathBuf> {
        None
    }
}

/// A subfolder of durable files, seen as a folder of its own.
#[derive(Debug, Clone)]
pub struct ScopedFiles {
    inner: Arc<dyn DurableFiles>,
    prefix: String,
}

impl ScopedFiles {
    /// The folder `prefix` below `inner`.
    pub fn new(inner: Arc<dyn DurableFiles>, prefix: impl Into<String>) -> Self {
        Self { inner, prefix: prefix.into() }
    }

    fn path(&self, path: &str) -> String {
        if path.is_empty() { self.prefix.clone() } else { format!("{}/{path}", self.prefix) }
    }
}

impl DurableFiles for ScopedFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.inner.put_new(&self.path(path), bytes)
    }
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.inner.put_over(&self.path(path), bytes)
    }
    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.inner.get(&self.path(path))
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list(&self.path(folder))
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list_folders(&self.path(folder))
    }
    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.inner.delete(&self.path(path))
    }
    fn location(&self) -> String {
        format!("{}/{}", self.inner.location().trim_end_matches('/'), self.prefix)
    }
    fn local_folder(&self) -> Option<PathBuf> {
        self.inner.local_folder().map(|folder| folder.join(&self.prefix))
    }
}
