//! Durable files on an object store: S3, Google Cloud Storage, Azure, HDFS, memory.
//!
//! `put_new` is the store's own put-if-absent (`PutMode::Create`), so two writers on two machines meet there.
//!
//! The store is asynchronous, the contract is not: each call runs on a small runtime of its own and waits for
//! the answer. It may be called from any thread; on a thread of another tokio runtime it blocks that thread.
//!
//! A store that answers late may have written a file whose `put_new` then says `Exists` on the client's own
//! retry. The writer treats this as another writer and stops; the restart finds the file and goes on from it.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use std::future::Future;
use std::io;
use std::sync::{Arc, mpsc};
use tokio::runtime::{Builder, Runtime};

/// A prefix of an object store.
#[derive(Debug)]
pub struct ObjectFiles {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    location: String,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl ObjectFiles {
    /// The objects below `prefix`; `location` is how people are told where they are.
    ///
    /// # Errors
    /// When the threads of the runtime cannot be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, location: impl Into<String>) -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("checkpoint-files").enable_all().build()?;
        Ok(Self { store, prefix, location: location.into(), runtime: Some(runtime) })
    }

    fn path(&self, action: &'static str, path: &str) -> Result<Path, DurableError> {
        let whole = match (self.prefix.as_ref(), path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}/{path}"),
        };
        Path::parse(whole).map_err(|source| storage(action, path, source))
    }

    /// Runs a future on the runtime and waits for it. Not `block_on`, which panics inside another runtime.
    fn wait<T: Send + 'static>(
        &self,
        action: &'static str,
        path: &str,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, DurableError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().ok_or_else(|| storage(action, path, "the store is closed"))?;
        runtime.spawn(async move {
            // Nobody waits any more only when the caller's thread is gone.
            let _ = answer.send(work.await);
        });
        match answered.recv() {
            Ok(result) => result.map_err(|error| match error {
                Error::AlreadyExists { .. } => DurableError::Exists { path: path.to_owned() },
                Error::NotFound { .. } => DurableError::Missing { path: path.to_owned() },
                error => storage(action, path, error),
            }),
            Err(_) => Err(storage(action, path, "the object store's client panicked")),
        }
    }

    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<(), DurableError> {
        let (store, target) = (Arc::clone(&self.store), self.path("write", path)?);
        let options = PutOptions::from(mode);
        self.wait("write", path, async move { store.put_opts(&target, bytes.into(), options).await })?;
        Ok(())
    }

    fn below(&self, folder: &str, folders: bool) -> Result<Vec<String>, DurableError> {
        let (store, path) = (Arc::clone(&self.store), self.path("list", folder)?);
        let listed = self.wait("list", folder, async move {
            let prefix = (!path.as_ref().is_empty()).then_some(&path);
            store.list_with_delimiter(prefix).await
        });
        let listed = match listed {
            Err(DurableError::Missing { .. }) => return Ok(Vec::new()),
            listed => listed?,
        };
        let paths = if folders {
            listed.common_prefixes
        } else {
            listed.objects.into_iter().map(|object| object.location).collect()
        };
        let mut names: Vec<String> = paths.iter().filter_map(Path::filename).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}

fn storage(
    action: &'static str,
    path: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> DurableError {
    DurableError::Storage { action, path: path.to_owned(), source: source.into() }
}

impl DurableFiles for ObjectFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.put(path, bytes, PutMode::Create)
    }

    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.put(path, bytes, PutMode::Overwrite)
    }

    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        let (store, target) = (Arc::clone(&self.store), self.path("read", path)?);
        self.wait("read", path, async move { store.get(&target).await?.bytes().await })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.below(folder, false)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.below(folder, true)
    }

    fn delete(&self, path: &str) -> Result<(), DurableError> {
        let (store, target) = (Arc::clone(&self.store), self.path("delete", path)?);
        match self.wait("delete", path, async move { store.delete(&target).await }) {
            Err(DurableError::Missing { .. }) => Ok(()),
            result => result,
        }
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}

impl Drop for ObjectFiles {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting here would panic inside another runtime; every call has been answered.
            runtime.shutdown_background();
        }
    }
}
