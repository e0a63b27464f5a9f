//! A folder of this machine as an object store whose writes survive a power cut.
//!
//! ```text
//!   <name>#<number>  ──write, fsync──►  link(<name>), or rename over it  ──fsync of the folder──►  done
//! ```
//!
//! The kernel's own store for folders leaves it to the operating system when bytes reach the disk: a commit could be there
//! after a power cut, and be empty, or be gone although the query has gone on. Here a write is answered when file, name and
//! folders are on the disk, and a commit gets its name after its bytes.
//!
//! Rule of its life: names that end in `#` and a number are writes that did not come to their end; the store does not list
//! them. Reading is the kernel's store's.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "durable folder";

/// The store.
#[derive(Debug)]
pub(super) struct DurableStore {
    inner: LocalFileSystem,
}

impl DurableStore {
    pub(super) fn new() -> Self {
        Self { inner: LocalFileSystem::new() }
    }
}

impl fmt::Display for DurableStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

/// Makes a folder and those above it, each durable in the one above.
pub(super) fn make_folder(folder: &FilePath) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(folder);
    while let Some(folder) = at.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        missing.push(folder);
        at = folder.parent();
    }
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if let Some(parent) = folder.parent() {
            sync_folder(parent)?;
        }
    }
    Ok(())
}

fn sync_folder(folder: &FilePath) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { FilePath::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Makes a file that is there durable, with its name.
fn sync_file(path: &FilePath) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// A name beside `path` that nobody has.
fn unfinished(path: &FilePath) -> io::Result<(PathBuf, File)> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{}{:06}", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed)));
        match File::create_new(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((name.into(), file?)),
        }
    }
}

/// Writes a whole file under its name; `over` one that is there, or fails.
fn write(path: &FilePath, payload: &PutPayload, over: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(FilePath::new("."));
    make_folder(folder)?;
    let (name, mut file) = unfinished(path)?;
    let written = payload.iter().try_for_each(|bytes| file.write_all(bytes)).and_then(|()| file.sync_all());
    drop(file);
    let named = written.and_then(|()| if over { fs::rename(&name, path) } else { fs::hard_link(&name, path) });
    match fs::remove_file(&name) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, path = %name.display(), "an unfinished file could not be removed");
        }
        _ => {}
    }
    named?;
    sync_folder(folder)
}

fn failed(location: &Path, error: io::Error) -> Error {
    let (path, source) = (location.to_string(), Box::new(error) as Box<dyn std::error::Error + Send + Sync>);
    let kind = source.downcast_ref::<io::Error>().map(io::Error::kind);
    match kind {
        Some(ErrorKind::AlreadyExists) => Error::AlreadyExists { path, source },
        Some(ErrorKind::NotFound) => Error::NotFound { path, source },
        _ => Error::Generic { store: NAME, source },
    }
}

/// Runs work that waits for the disk where the runtime has threads for it.
async fn on_disk(location: &Path, work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<()> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done);
    done.map_err(|error| failed(location, error))
}

#[async_trait]
impl ObjectStore for DurableStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let over = match opts.mode {
            PutMode::Create => false,
            PutMode::Overwrite => true,
            PutMode::Update(_) => return self.inner.put_opts(location, payload, opts).await,
        };
        let path = self.inner.path_to_filesystem(location)?;
        on_disk(location, move || write(&path, &payload, over)).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let path = self.inner.path_to_filesystem(location)?;
        let folder = path.parent().map(FilePath::to_owned);
        on_disk(location, move || folder.map_or(Ok(()), |folder| make_folder(&folder))).await?;
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(DurableUpload { inner, path, location: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await?;
        let path = self.inner.path_to_filesystem(to)?;
        on_disk(to, move || sync_file(&path)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await?;
        let path = self.inner.path_to_filesystem(to)?;
        on_disk(to, move || sync_file(&path)).await
    }
}

/// A file that comes in parts.
#[derive(Debug)]
struct DurableUpload {
    inner: Box<dyn MultipartUpload>,
    path: PathBuf,
    location: Path,
}

#[async_trait]
impl MultipartUpload for DurableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.inner.complete().await?;
        let path = self.path.clone();
        on_disk(&self.location, move || sync_file(&path)).await?;
        Ok(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("millstream-durable-{}-{name}", std::process::id()))
    }

    #[tokio::test]
    async fn a_name_is_given_once_to_whole_files_and_nothing_else_stays() {
        let root = folder("names");
        let store = DurableStore::new();
        let location = Path::from_absolute_path(root.join("a b/%41/0.json")).unwrap();
        store.put_opts(&location, "one".into(), PutMode::Create.into()).await.unwrap();
        let again = store.put_opts(&location, "two".into(), PutMode::Create.into()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        assert_eq!(store.get(&location).await.unwrap().bytes().await.unwrap(), "one");
        store.put(&location, "three".into()).await.unwrap();
        assert_eq!(store.get(&location).await.unwrap().bytes().await.unwrap(), "three");
        let path = store.inner.path_to_filesystem(&location).unwrap();
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["0.json"]);

        let parts = Path::from_absolute_path(root.join("parts/x.parquet")).unwrap();
        let mut upload = store.put_multipart_opts(&parts, PutMultipartOptions::default()).await.unwrap();
        upload.put_part("ab".into()).await.unwrap();
        upload.put_part("cd".into()).await.unwrap();
        assert!(matches!(store.head(&parts).await, Err(Error::NotFound { .. })), "not before it is whole");
        upload.complete().await.unwrap();
        assert_eq!(store.get(&parts).await.unwrap().bytes().await.unwrap(), "abcd");
        fs::remove_dir_all(root).unwrap();
    }

    #[tokio::test]
    async fn of_many_that_write_one_name_one_does() {
        let root = folder("race");
        let location = Path::from_absolute_path(root.join("log/1.json")).unwrap();
        let writes = (0..16).map(|number| {
            let location = location.clone();
            tokio::spawn(async move {
                DurableStore::new()
                    .put_opts(&location, format!("{number}").into(), PutMode::Create.into())
                    .await
                    .is_ok()
            })
        });
        let won: Vec<bool> = futures::future::join_all(writes).await.into_iter().map(|done| done.unwrap()).collect();
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        fs::remove_dir_all(root).unwrap();
    }
}
