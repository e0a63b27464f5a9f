//! A bucket of an object store, asked from threads that wait for the answer.
//!
//! What a file is on this machine, an object is here: it is listed, opened and cleaned up through a [`Bucket`].
//!
//! Rule of its life: the store is asynchronous, sources are not. All buckets of the process share one small runtime; a call
//! hands it the work and waits. Retries after a failure of the network are the store's own.
//!
//! Nothing is written but what the cleaner moves or deletes.

use futures::TryStreamExt;
use millstream_store::{open_store, split};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use tokio::runtime::{Builder, Runtime};

/// How many objects of a listing are on their way at a time.
const LISTED_AHEAD: usize = 4096;
/// Up to which size an object is fetched whole when it is opened.
pub(super) const WHOLE_BYTES: u64 = 8 << 20;

/// A bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// Scheme and bucket with a slash: what stands before every key.
    base: String,
    /// For tests.
    #[cfg(test)]
    traffic: Mutex<Traffic>,
}

/// What was asked for and came of the content of objects: for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

/// An object that was opened.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) key: Path,
    pub(super) bytes: u64,
    pub(super) tag: Option<String>,
    /// All of it, when it is small.
    pub(super) whole: Option<bytes::Bytes>,
}

impl Bucket {
    /// The bucket of a location.
    pub(super) fn open(
        location: &str,
        options: &[(String, String)],
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let (authority, _) = split(location).ok_or("it is no URL")?;
        let base = format!("{authority}/");
        let store = match authority.strip_prefix("memory://") {
            Some(name) => memory(name),
            None => open_store(&base, options)?.0,
        };
        Ok(Self {
            store,
            base,
            #[cfg(test)]
            traffic: Mutex::default(),
        })
    }

    /// What stands before every key.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The key of a location.
    pub(super) fn key(&self, location: &str) -> Result<Path, Error> {
        let key = location.strip_prefix(&self.base).unwrap_or(location);
        Path::parse(key).map_err(|error| Error::InvalidPath { source: error })
    }

    /// Hands every object below `prefix` to `each`, with those of one folder in the order of their names; begins behind
    /// the key `after`, if there is one. Ends early when `each` answers false.
    pub(super) fn list(
        &self,
        prefix: &Path,
        after: Option<Path>,
        mut each: impl FnMut(ObjectMeta) -> bool,
    ) -> Result<(), Error> {
        let (store, prefix) = (Arc::clone(&self.store), prefix.clone());
        let (sender, objects) = mpsc::sync_channel(LISTED_AHEAD);
        let listed = start(async move {
            let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
            let mut stream = match after {
                Some(after) => store.list_with_offset(prefix.as_ref(), &after),
                None => store.list(prefix.as_ref()),
            };
            while let Some(object) = stream.try_next().await? {
                // The receiver may be slower: waiting here would hold a thread of the runtime.
                let mut object = Some(object);
                while let Some(waiting) = object.take() {
                    match sender.try_send(waiting) {
                        Ok(()) => {}
                        Err(mpsc::TrySendError::Full(back)) => {
                            object = Some(back);
                            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                        }
                        Err(mpsc::TrySendError::Disconnected(_)) => return Ok(()),
                    }
                }
            }
            Ok(())
        })?;
        // Whoever has seen enough hangs up, and the listing ends.
        objects.into_iter().all(&mut each);
        answer(&listed)
    }

    /// What is known of an object; `None` when there is none.
    pub(super) fn head(&self, key: &Path) -> Result<Option<ObjectMeta>, Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        match wait(async move { store.head(&key).await }) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens an object.
    pub(super) fn get(&self, key: Path) -> Result<Opened, Error> {
        let store = Arc::clone(&self.store);
        let opened = wait(async move {
            let got = store.get(&key).await?;
            let (bytes, tag) = (got.meta.size, got.meta.e_tag.clone());
            let whole = if bytes <= WHOLE_BYTES { Some(got.bytes().await?) } else { None };
            Ok(Opened { key, bytes, tag, whole })
        })?;
        #[cfg(test)]
        self.count(opened.whole.as_ref());
        Ok(opened)
    }

    /// A part of an object as it was when it was opened.
    pub(super) fn range(&self, object: &Opened, range: Range<u64>) -> Result<bytes::Bytes, Error> {
        let (store, key) = (Arc::clone(&self.store), object.key.clone());
        let options = GetOptions { range: Some(range.into()), if_match: object.tag.clone(), ..GetOptions::default() };
        let bytes = wait(async move { store.get_opts(&key, options).await?.bytes().await })?;
        #[cfg(test)]
        self.count(Some(&bytes));
        Ok(bytes)
    }

    /// Deletes an object; one that is gone is no error.
    pub(super) fn delete(&self, key: &Path) -> Result<(), Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        match wait(async move { store.delete(&key).await }) {
            Err(Error::NotFound { .. }) => Ok(()),
            result => result,
        }
    }

    /// Copies an object within the bucket.
    pub(super) fn copy(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let (store, from, to) = (Arc::clone(&self.store), from.clone(), to.clone());
        wait(async move { store.copy(&from, &to).await })
    }

    /// What was fetched until now: for tests.
    #[cfg(test)]
    pub(super) fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap()
    }

    #[cfg(test)]
    fn count(&self, came: Option<&bytes::Bytes>) {
        let mut traffic = self.traffic.lock().unwrap();
        traffic.requests += 1;
        traffic.bytes += came.map_or(0, |bytes| bytes.len() as u64);
    }

    /// Writes an object: for tests.
    #[cfg(test)]
    pub(super) fn put(&self, key: &str, content: &[u8]) {
        let (store, key) = (Arc::clone(&self.store), Path::parse(key).unwrap());
        let content = bytes::Bytes::copy_from_slice(content);
        wait(async move { store.put(&key, content.into()).await }).unwrap();
    }
}

/// A store in memory, one for each name as long as the process lives: for tests.
fn memory(name: &str) -> Arc<dyn ObjectStore> {
    static STORES: Mutex<BTreeMap<String, Arc<InMemory>>> = Mutex::new(BTreeMap::new());
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let store = stores.entry(name.to_owned()).or_default();
    Arc::<InMemory>::clone(store)
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "client", source: source.into() }
}

fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME
        .get_or_init(|| Builder::new_multi_thread().worker_threads(2).thread_name("source-files").enable_all().build());
    made.as_ref().map_err(|error| failed(error.to_string()))
}

/// What becomes of work on the runtime.
type Answer<T> = mpsc::Receiver<Result<T, Error>>;

fn start<T: Send + 'static>(work: impl Future<Output = Result<T, Error>> + Send + 'static) -> Result<Answer<T>, Error> {
    let (sender, answer) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody waits any more only when the caller's thread is gone.
        let _ = sender.send(work.await);
    });
    Ok(answer)
}

fn answer<T>(answer: &Answer<T>) -> Result<T, Error> {
    answer.recv().unwrap_or_else(|_| Err(failed("the object store's client panicked")))
}

/// Runs a future on the runtime and waits for it. Not `block_on`, which panics inside another runtime.
fn wait<T: Send + 'static>(work: impl Future<Output = Result<T, Error>> + Send + 'static) -> Result<T, Error> {
    answer(&start(work)?)
}
