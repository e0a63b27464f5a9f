//! A file that comes in parts, written in the order in which they come.

use super::failure::generic;
use super::temporary_file::TemporaryFile;
use async_trait::async_trait;
use futures::FutureExt;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use std::fmt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

type Part = (PutPayload, oneshot::Sender<Result<()>>);

/// The upload. When it is dropped without an end, what was written is removed.
pub(super) struct Upload {
    parts: Option<mpsc::UnboundedSender<Part>>,
    writing: Option<JoinHandle<Result<()>>>,
    /// Says that the parts are all there are.
    whole: Option<oneshot::Sender<()>>,
}

impl Upload {
    /// Parts of this file. Whoever gives a part waits for it, so few are in memory at a time.
    pub(super) fn new(file: TemporaryFile) -> Self {
        let (parts, given) = mpsc::unbounded_channel();
        let (whole, is_whole) = oneshot::channel();
        let writing = tokio::spawn(write(file, given, is_whole));
        Self { parts: Some(parts), writing: Some(writing), whole: Some(whole) }
    }

    async fn end(&mut self) -> Result<()> {
        drop(self.parts.take());
        match self.writing.take() {
            Some(writing) => writing.await.map_err(object_store::Error::from)?,
            None => Err(ended()),
        }
    }
}

/// Writes the parts, and ends the file if it is whole.
async fn write(
    mut file: TemporaryFile,
    mut given: mpsc::UnboundedReceiver<Part>,
    is_whole: oneshot::Receiver<()>,
) -> Result<()> {
    while let Some((part, answer)) = given.recv().await {
        let mut written = Ok(());
        for bytes in part {
            written = file.write(bytes).await;
            if written.is_err() {
                break;
            }
        }
        let has_failed = written.is_err();
        // Whoever gave the part may have gone.
        let _ = answer.send(written);
        if has_failed {
            file.discard().await;
            return Err(generic("a part of the file was not written".into()));
        }
    }
    if is_whole.await.is_ok() {
        return file.finish(true).await;
    }
    file.discard().await;
    Ok(())
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (answer, written) = oneshot::channel();
        // What cannot be sent drops the answer.
        let _ = self.parts.as_ref().map(|parts| parts.send((data, answer)));
        async move { written.await.unwrap_or_else(|_| Err(ended())) }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        if let Some(whole) = self.whole.take() {
            // Nobody hears it only when writing has failed, which the end tells.
            let _ = whole.send(());
        }
        self.end().await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        drop(self.whole.take());
        self.end().await
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upload")
    }
}

fn ended() -> object_store::Error {
    generic("the upload has ended".into())
}
