//! A folder with one document per batch: what the offset log and the commit log have in common.
//!
//! Rule of its life: an entry is written once, with put-if-absent. That it is there already means that another
//! process writes the checkpoint. Names are plain decimal numbers; any other name is foreign.

use crate::document::DocumentKind;
use crate::{CheckpointError, json_lines};
use millstream_common::{BatchId, DurableError, DurableFiles};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// An entry of a batch log.
pub(crate) trait BatchEntry: Serialize + DeserializeOwned + Debug {
    /// The folder of the log.
    const FOLDER: &'static str;
    /// The first line of its files.
    const KIND: DocumentKind;
    /// The batch that the entry is about.
    fn batch(&self) -> BatchId;
    /// Its JSON, as a document has it.
    fn json(&self) -> Result<Vec<u8>, serde_json::Error> {
        json_lines::to_vec(self, 0)
    }
}

/// One document per batch.
#[derive(Debug)]
pub(crate) struct BatchLog<E> {
    files: Arc<dyn DurableFiles>,
    entry: PhantomData<fn() -> E>,
}

impl<E> Clone for BatchLog<E> {
    fn clone(&self) -> Self {
        Self { files: Arc::clone(&self.files), entry: PhantomData }
    }
}

impl<E: BatchEntry> BatchLog<E> {
    pub(crate) fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self { files, entry: PhantomData }
    }

    pub(crate) fn file(batch: BatchId) -> String {
        format!("{}/{batch}", E::FOLDER)
    }

    pub(crate) fn add(&self, entry: &E) -> Result<(), CheckpointError> {
        self.add_json(entry.batch(), entry.json())
    }

    /// Adds the entry of a batch that has this JSON.
    pub(crate) fn add_json(
        &self,
        batch: BatchId,
        json: Result<Vec<u8>, serde_json::Error>,
    ) -> Result<(), CheckpointError> {
        let (file, place) = (Self::file(batch), self.files.location());
        let bytes = E::KIND.frame(&place, &file, json)?;
        self.files.put_new(&file, bytes).map_err(|error| match error {
            DurableError::Exists { .. } => CheckpointError::Fenced { place, file },
            source => CheckpointError::files(place, source),
        })
    }

    /// Writes an entry over an older one of the same batch.
    pub(crate) fn put(&self, entry: &E) -> Result<(), CheckpointError> {
        let (file, place) = (Self::file(entry.batch()), self.files.location());
        let bytes = E::KIND.encode(&place, &file, entry)?;
        self.files.put_over(&file, bytes).map_err(|source| CheckpointError::files(place, source))
    }

    /// Deletes one entry.
    pub(crate) fn remove(&self, batch: BatchId) -> Result<(), CheckpointError> {
        let deleted = self.files.delete(&Self::file(batch));
        deleted.map_err(|source| CheckpointError::files(self.files.location(), source))
    }

    pub(crate) fn get(&self, batch: BatchId) -> Result<Option<E>, CheckpointError> {
        let file = Self::file(batch);
        let entry: Option<E> = E::KIND.read(&*self.files, &file)?;
        match entry {
            Some(entry) if entry.batch() != batch => {
                Err(CheckpointError::WrongNumber { place: self.files.location(), file, found: entry.batch() })
            }
            entry => Ok(entry),
        }
    }

    /// The batches that have an entry, ascending.
    pub(crate) fn batches(&self) -> Result<Vec<BatchId>, CheckpointError> {
        let mut batches = Vec::new();
        for name in self.names()? {
            batches.push(batch_of(&name).ok_or_else(|| CheckpointError::Foreign {
                place: self.files.location(),
                file: format!("{}/{name}", E::FOLDER),
                reason: "its name is no batch number".into(),
            })?);
        }
        batches.sort_unstable();
        Ok(batches)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.files.list(E::FOLDER).map_err(|source| CheckpointError::files(self.files.location(), source))
    }

    /// Deletes the entries before `batch`, oldest first, so that what is left never has a gap.
    pub(crate) fn purge(&self, batch: BatchId) -> Result<usize, CheckpointError> {
        let mut count = 0;
        for old in self.batches()?.into_iter().take_while(|old| *old < batch) {
            let deleted = self.files.delete(&Self::file(old));
            deleted.map_err(|source| CheckpointError::files(self.files.location(), source))?;
            count += 1;
        }
        Ok(count)
    }
}

/// The batch of a file name; `None` for every other spelling than plain decimal.
pub(crate) fn batch_of(name: &str) -> Option<BatchId> {
    let batch = BatchId(name.parse().ok()?);
    (batch.to_string() == name).then_some(batch)
}
