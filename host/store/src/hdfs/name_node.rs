//! The name node: it knows the names of files, which of them are there, and where their bytes are.

use super::failure::{Talk, failed, generic};
use super::patience::{Missed, Patience};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use hdfs_native::client::FileStatus;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{Client, HdfsError, WriteOptions};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, Result};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long a write that failed tries to leave nothing behind.
const CLEANING: Duration = Duration::from_secs(5);

/// The name node, asked with patience.
#[derive(Clone)]
pub(super) struct NameNode {
    client: Client,
    address: Arc<str>,
    patience: Arc<Patience>,
    file: WriteOptions,
}

impl NameNode {
    /// The name node behind a client; `address` is how people know it, `file` what new files get.
    pub(super) fn new(client: Client, address: &str, patience: Patience, file: WriteOptions) -> Self {
        Self { client, address: address.into(), patience: Arc::new(patience), file }
    }

    /// How people know it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// An error of a talk about a path.
    pub(super) fn failed(&self, path: &str, talk: Talk, missed: Missed) -> Error {
        failed(&self.address, path, talk, missed)
    }

    /// What is known of a path; `None` when nothing is there.
    pub(super) async fn status(&self, path: &str) -> Result<Option<FileStatus>, Missed> {
        match self.patience.ask(|| self.client.get_file_info(path)).await {
            Ok(status) => Ok(Some(status)),
            Err(Missed::Refused(HdfsError::FileNotFound(_))) => Ok(None),
            Err(missed) => Err(missed),
        }
    }

    /// Where the bytes of a file are.
    pub(super) async fn open(&self, path: &str) -> Result<FileReader> {
        let opened = self.patience.ask(|| self.client.read(path)).await;
        opened.map_err(|missed| self.failed(path, Talk::Names, missed))
    }

    /// Begins a new file, and the folders above it. Its name must be one that nobody else uses.
    pub(super) async fn create(&self, path: &str) -> Result<FileWriter> {
        let created = self.patience.ask(|| self.client.create(path, &self.file)).await;
        created.map_err(|missed| self.failed(path, Talk::Names, missed))
    }

    /// Makes a folder and those above it.
    pub(super) async fn make_folder(&self, path: &str) -> Result<()> {
        let made = self.patience.ask(|| self.client.mkdirs(path, 0o755, true)).await;
        made.map_err(|missed| self.failed(path, Talk::Names, missed))
    }

    /// Gives a file another name in one step; `over` a file that is there, or not at all.
    ///
    /// An answer may be lost. `from` must be a name that only the caller uses: when it is gone after a failure, the file has
    /// its new name.
    pub(super) async fn rename(&self, from: &str, to: &str, over: bool) -> Result<()> {
        let missed = match self.patience.ask(|| self.client.rename(from, to, over)).await {
            Ok(()) => return Ok(()),
            Err(missed) => missed,
        };
        let is_open = match &missed {
            // Whoever said nothing for so long is not asked again.
            Missed::Silent(_) | Missed::Refused(HdfsError::AlreadyExists(_)) => false,
            Missed::Refused(_) => true,
        };
        if is_open
            && let Ok(None) = self.status(from).await
            && let Ok(Some(_)) = self.status(to).await
        {
            return Ok(());
        }
        Err(self.failed(to, Talk::Names, missed))
    }

    /// Removes a file; one that is gone is no error. A folder that has something in it is refused.
    pub(super) async fn remove(&self, path: &str) -> Result<()> {
        let removed = self.patience.ask(|| self.client.delete(path, false)).await;
        removed.map(|_| ()).map_err(|missed| self.failed(path, Talk::Names, missed))
    }

    /// Removes what a write has left that failed. Best effort, and not for long.
    pub(super) async fn clean(&self, path: &str) {
        let removed = tokio::time::timeout(CLEANING, self.client.delete(path, false)).await;
        if !matches!(removed, Ok(Ok(_))) {
            tracing::warn!(path, cluster = %self.address, "an unfinished file could not be removed");
        }
    }

    /// What is in a folder, or below it, in the order of names; nothing when there is no such folder.
    pub(super) fn list(&self, folder: String, below: bool) -> BoxStream<'static, Result<FileStatus>> {
        let node = self.clone();
        let listing = async move {
            // A listing cannot be repeated in its middle: this question waits for a name node that is coming back.
            let found = node.status(&folder).await.map_err(|missed| node.failed(&folder, Talk::Names, missed))?;
            let entries = match found {
                Some(status) if status.isdir => node.client.list_status_iter(&folder, below).into_stream(),
                _ => stream::empty().boxed(),
            };
            // What is removed while it is listed is not there.
            let entries = entries.filter(|entry| {
                let is_gone = matches!(entry, Err(HdfsError::FileNotFound(_)));
                std::future::ready(!is_gone)
            });
            Ok::<_, object_store::Error>(node.step_by_step(folder, Talk::Names, entries.boxed()))
        };
        stream::once(listing).try_flatten().fuse().boxed()
    }

    /// A stream whose every item comes in time.
    pub(super) fn step_by_step<T: Send + 'static>(
        &self,
        path: String,
        talk: Talk,
        items: BoxStream<'static, hdfs_native::Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let state = Some((self.clone(), path, items));
        let steps = stream::unfold(state, move |state| async move {
            let (node, path, mut items) = state?;
            match node.patience.wait(items.next()).await {
                Ok(None) => None,
                Ok(Some(Ok(item))) => Some((Ok(item), Some((node, path, items)))),
                Ok(Some(Err(error))) => Some((Err(node.failed(&path, talk, Missed::Refused(error))), None)),
                Err(missed) => Some((Err(node.failed(&path, talk, missed)), None)),
            }
        });
        // Some ask again after the end.
        steps.fuse().boxed()
    }

    /// One step of reading or writing bytes.
    pub(super) async fn step<T>(&self, path: &str, step: impl Future<Output = hdfs_native::Result<T>>) -> Result<T> {
        let done = self.patience.wait(step).await.and_then(|done| done.map_err(Missed::Refused));
        done.map_err(|missed| self.failed(path, Talk::Data, missed))
    }
}

impl fmt::Debug for NameNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NameNode").field(&self.address).finish()
    }
}

/// What is known of a file, as of an object. Its tag is the time of its last change and its length.
pub(super) fn object_of(status: &FileStatus) -> Result<ObjectMeta> {
    let modified = i64::try_from(status.modification_time).ok();
    let modified = modified.and_then(chrono::DateTime::from_timestamp_millis);
    Ok(ObjectMeta {
        location: Path::parse(&status.path)?,
        last_modified: modified.ok_or_else(|| generic(format!("`{}` has no time that there is", status.path)))?,
        size: status.length as u64,
        e_tag: Some(format!("{:x}-{:x}", status.modification_time, status.length)),
        version: None,
    })
}
