//! A table: its place, its engine, its snapshots.

use super::DeltaError;
use super::durable_store::{DurableStore, make_folder};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::{KernelError, KernelResult, Snapshot};
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use delta_kernel_default_engine::{DefaultEngine, DefaultEngineBuilder};
use millstream_store::{open_store, store_url, without_secrets};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// What reads and writes the files of a table.
pub type DeltaEngine = DefaultEngine<TokioMultiThreadExecutor>;

/// A place where a Delta table is or will be.
pub struct DeltaTable {
    url: Url,
    place: String,
    engine: Arc<DeltaEngine>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl DeltaTable {
    /// The place `location`, a path or URL; `options` are those of its object store. Looks at nothing yet.
    ///
    /// # Errors
    /// When the location is none, or an option does not fit.
    pub fn open(location: &str, options: &[(String, String)]) -> Result<Self, DeltaError> {
        let refused = |reason: String| DeltaError::Location { place: without_secrets(location), reason };
        if location.is_empty() {
            return Err(refused("it is empty".into()));
        }
        let local = match location.split_once("://") {
            None => Some(location.strip_prefix("file:").unwrap_or(location).to_owned()),
            Some(("file", path)) if path.starts_with('/') => Some(path.to_owned()),
            Some(("file", _)) => return Err(refused("the URL names no folder of this machine".into())),
            Some(_) => None,
        };
        let (url, store) = match &local {
            Some(path) => {
                let path = std::path::absolute(Path::new(path)).map_err(|error| refused(error.to_string()))?;
                let url = Url::from_directory_path(&path).map_err(|()| refused("it is no folder".into()))?;
                (url, Arc::new(DurableStore::new()) as Arc<_>)
            }
            None => {
                // The kernel decodes the URL that it gets.
                let mut url = store_url(location).map_err(|error| refused(error.to_string()))?;
                if !url.path().ends_with('/') {
                    url.set_path(&format!("{}/", url.path()));
                }
                let (store, _) = open_store(location, options).map_err(|error| refused(error.to_string()))?;
                (url, store)
            }
        };
        let place = match local {
            Some(_) => url.path().trim_end_matches('/').to_owned(),
            None => without_secrets(location),
        };
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("delta").enable_all().build();
        let runtime = runtime.map_err(|error| refused(error.to_string()))?;
        let executor = Arc::new(TokioMultiThreadExecutor::new(runtime.handle().clone()));
        let engine = Arc::new(DefaultEngineBuilder::new(store).with_task_executor(executor).build());
        Ok(Self { url, place, engine, runtime: Some(runtime) })
    }

    /// The root of the table, with a slash at the end.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The place as it may be printed.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What reads and writes its files.
    pub fn engine(&self) -> &Arc<DeltaEngine> {
        &self.engine
    }

    /// The folder, when it is one of this machine.
    fn folder(&self) -> Option<PathBuf> {
        if self.url.scheme() == "file" { self.url.to_file_path().ok() } else { None }
    }

    /// Makes the folder for a table that is to be, where there must be one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_folder(&self) -> Result<(), DeltaError> {
        let Some(folder) = self.folder() else { return Ok(()) };
        make_folder(&folder).map_err(|error| self.failed("make a folder for", KernelError::IOError(error)))
    }

    /// The table as it is now, or at a version; `None` when there is none.
    ///
    /// # Errors
    /// When its log cannot be read, is damaged, or asks for what the kernel does not know.
    pub fn snapshot(&self, version: Option<u64>) -> Result<Option<SnapshotRef>, DeltaError> {
        // The kernel takes a folder of this machine that is not there for a mistake.
        if version.is_none() && self.folder().is_some_and(|folder| !folder.exists()) {
            return Ok(None);
        }
        self.apart("read the log of", || {
            let mut builder = Snapshot::builder_for(self.url.as_str());
            if let Some(version) = version {
                builder = builder.at_version(version);
            }
            match builder.build(self.engine.as_ref()) {
                Ok(snapshot) => Ok(Some(snapshot)),
                Err(error) if version.is_none() && is_no_table(&error) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// The table as it is now, from a snapshot of it that may be old.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn newer(&self, snapshot: &SnapshotRef) -> Result<SnapshotRef, DeltaError> {
        self.apart("read the log of", || Snapshot::builder_from(Arc::clone(snapshot)).build(self.engine.as_ref()))
    }

    /// Runs work of the kernel on a thread of its own, which may wait for the kernel's runtime whatever the caller's is.
    ///
    /// # Errors
    /// What the work answers, with the table's name; and when it panics.
    pub fn apart<T: Send>(
        &self,
        action: &'static str,
        work: impl FnOnce() -> KernelResult<T> + Send,
    ) -> Result<T, DeltaError> {
        let result = std::thread::scope(|scope| scope.spawn(work).join());
        match result {
            Ok(result) => result.map_err(|error| self.failed(action, error)),
            Err(_) => Err(DeltaError::Panicked { action, place: self.place.clone() }),
        }
    }

    /// Runs a future of the kernel and waits for it.
    ///
    /// # Errors
    /// As [`apart`](Self::apart).
    pub fn wait<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl Future<Output = KernelResult<T>> + Send + 'static,
    ) -> Result<T, DeltaError> {
        let panicked = || DeltaError::Panicked { action, place: self.place.clone() };
        let runtime = self.runtime.as_ref().ok_or_else(panicked)?;
        let (answer, answered) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Nobody waits any more only when the caller's thread is gone.
            let _ = answer.send(work.await);
        });
        answered.recv().map_err(|_| panicked())?.map_err(|error| self.failed(action, error))
    }

    /// What the kernel said, with the table's name.
    pub fn failed(&self, action: &'static str, error: KernelError) -> DeltaError {
        DeltaError::Kernel { action, place: self.place.clone(), source: Box::new(error) }
    }
}

impl std::fmt::Debug for DeltaTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DeltaTable").field(&self.place).finish()
    }
}

impl Drop for DeltaTable {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting here would panic inside another runtime; every call has been answered.
            runtime.shutdown_background();
        }
    }
}

fn is_no_table(error: &KernelError) -> bool {
    match error {
        KernelError::Backtraced { source, .. } => is_no_table(source),
        KernelError::EmptyLog | KernelError::FileNotFound(_) => true,
        KernelError::ObjectStore(delta_kernel::object_store::Error::NotFound { .. }) => true,
        KernelError::IOError(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_without_secrets_and_nonsense_is_refused() {
        let table = DeltaTable::open("/tmp/some where/", &[]).unwrap();
        assert_eq!(table.url().as_str(), "file:///tmp/some%20where/");
        assert!(table.snapshot(None).unwrap().is_none());
        assert!(DeltaTable::open("", &[]).is_err());
        assert!(DeltaTable::open("file://host/x", &[]).is_err());
        let error = DeltaTable::open("http://user:secret@host/x", &[]).unwrap_err();
        assert!(!error.to_string().contains("secret") && error.to_string().contains("put-if-absent"), "{error}");
    }

    #[test]
    fn a_path_is_taken_as_it_is_written() {
        for (location, url, place) in [
            ("memory:///a%20b", "memory:///a%2520b/", "memory:///a%20b"),
            ("file:///tmp/a%20b", "file:///tmp/a%2520b/", "/tmp/a%2520b"),
        ] {
            let table = DeltaTable::open(location, &[]).unwrap();
            assert_eq!((table.url().as_str(), table.place()), (url, place));
        }
    }
}
