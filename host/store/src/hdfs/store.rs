//! The store: what the contract of objects asks, in files of HDFS.

use super::failure::{Talk, generic};
use super::name_node::{NameNode, object_of};
use super::temporary_file::{TemporaryFile, is_temporary};
use super::upload::Upload;
use super::{NAME, absolute, address};
use crate::error::StoreError;
use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use hdfs_native::client::FileStatus;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, RenameTargetMode,
    Result,
};
use std::fmt;
use url::Url;

/// How many files are removed at a time.
const REMOVED_AT_A_TIME: usize = 10;
/// How often a file that changes while it is opened is opened.
const ATTEMPTS: usize = 5;

/// A cluster of HDFS, from its root.
#[derive(Debug)]
pub(crate) struct HdfsStore {
    node: NameNode,
}

impl HdfsStore {
    /// The cluster at a URL, whose path does not count. Nobody is asked yet.
    ///
    /// # Errors
    /// When the URL names no cluster, or an option does not fit.
    pub(crate) fn open(url: &Url, options: &[(String, String)]) -> std::result::Result<Self, StoreError> {
        Ok(Self { node: address::name_node(url, options)? })
    }

    /// What is known of a path; `None` when nothing is there.
    async fn status(&self, path: &str) -> Result<Option<FileStatus>> {
        self.node.status(path).await.map_err(|missed| self.node.failed(path, Talk::Names, missed))
    }

    /// What is known of a file.
    async fn file(&self, location: &Path) -> Result<ObjectMeta> {
        let path = absolute(location);
        match self.status(&path).await? {
            Some(status) if !status.isdir => object_of(&status),
            found => {
                let what = if found.is_some() { "is a folder" } else { "is not there" };
                let source = format!("{what} on {}", self.node.address()).into();
                Err(Error::NotFound { path, source })
            }
        }
    }

    /// The bytes of a range of a file, as it was when it was opened.
    async fn read(&self, location: &Path, options: &GetOptions) -> Result<GetResult> {
        let path = absolute(location);
        for _ in 0..ATTEMPTS {
            let meta = self.file(location).await?;
            options.check_preconditions(&meta)?;
            let range = match &options.range {
                Some(range) => range.as_range(meta.size).map_err(|error| generic(error.to_string()))?,
                None => 0..meta.size,
            };
            let (start, length) = (range.start as usize, (range.end - range.start) as usize);
            let payload = if options.head || length == 0 {
                stream::empty().boxed()
            } else {
                let reader = self.node.open(&path).await?;
                // Another file may have got the name since: what is read and what is told of it must be of one file.
                let is_other = reader.file_length() as u64 != meta.size
                    || (options.if_match.is_some() && self.file(location).await?.e_tag != meta.e_tag);
                if is_other {
                    continue;
                }
                self.node.step_by_step(path, Talk::Data, reader.read_range_stream(start, length).boxed())
            };
            let payload = GetResultPayload::Stream(payload);
            return Ok(GetResult { payload, meta, range, attributes: Default::default() });
        }
        Err(generic(format!("`{path}` on {} changes all the time", self.node.address())))
    }
}

impl fmt::Display for HdfsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} ({})", self.node.address())
    }
}

/// Whether a list has an entry.
fn is_listed(status: &FileStatus) -> bool {
    !is_temporary(status.path.rsplit('/').next().unwrap_or_default())
}

#[async_trait]
impl ObjectStore for HdfsStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let target = absolute(location);
        let over = match opts.mode {
            PutMode::Overwrite => true,
            PutMode::Create => {
                // The rename decides; this saves writing what cannot get its name.
                if self.status(&target).await?.is_some() {
                    let source = format!("{} has it", self.node.address()).into();
                    return Err(Error::AlreadyExists { path: target, source });
                }
                false
            }
            PutMode::Update(_) => {
                let operation = "writing on the condition that a file has not changed".to_owned();
                return Err(Error::NotImplemented { operation, implementer: NAME.to_owned() });
            }
        };
        let mut file = TemporaryFile::create(&self.node, target).await?;
        for bytes in payload {
            if let Err(error) = file.write(bytes).await {
                file.discard().await;
                return Err(error);
            }
        }
        file.finish(over).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let file = TemporaryFile::create(&self.node, absolute(location)).await?;
        Ok(Box::new(Upload::new(file)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.read(location, &options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let node = self.node.clone();
        let removed = locations.map(move |location| {
            let node = node.clone();
            async move {
                let location = location?;
                node.remove(&absolute(&location)).await?;
                Ok(location)
            }
        });
        removed.buffered(REMOVED_AT_A_TIME).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let folder = prefix.map_or_else(|| "/".to_owned(), absolute);
        let entries = self.node.list(folder, true);
        let files = entries.try_filter(|status| std::future::ready(!status.isdir && is_listed(status)));
        files.and_then(|status| std::future::ready(object_of(&status))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let folder = prefix.map_or_else(|| "/".to_owned(), absolute);
        let mut entries = self.node.list(folder, false);
        let mut found = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        while let Some(status) = entries.try_next().await? {
            match status.isdir {
                true => found.common_prefixes.push(Path::parse(&status.path)?),
                false if is_listed(&status) => found.objects.push(object_of(&status)?),
                false => {}
            }
        }
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let target = absolute(to);
        let over = match options.mode {
            CopyMode::Overwrite => true,
            CopyMode::Create => false,
        };
        let mut bytes = self.read(from, &GetOptions::default()).await?.into_stream();
        let mut file = TemporaryFile::create(&self.node, target).await?;
        let copied = async {
            while let Some(piece) = bytes.try_next().await? {
                file.write(piece).await?;
            }
            Ok(())
        };
        match copied.await {
            Ok(()) => file.finish(over).await,
            Err(error) => {
                file.discard().await;
                Err(error)
            }
        }
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let over = match options.target_mode {
            RenameTargetMode::Overwrite => true,
            RenameTargetMode::Create => false,
        };
        // It must be there, or a lost answer could not be told from it.
        self.file(from).await?;
        let target = absolute(to);
        if let Some((folder, _)) = target.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
            self.node.make_folder(folder).await?;
        }
        self.node.rename(&absolute(from), &target, over).await
    }
}
