//! What was decided about files that are bad or gone, in the checkpoint: so that a range that is read again gives the
//! same rows, whatever has become of the file.
//!
//! File `bad/N` beside the log of the source holds one line per decision about the files of offset N. A decision is about
//! the columns that were read: a damaged column does not matter to a query that does not read it.
//!
//! Rule of its life: a decision is written before the rows of its range are answered, and never changed. There is no file
//! for an offset without decisions.

use super::log::FileEntry;
use crate::{SourceError, sealed};
use millstream_common::DurableFiles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const FOLDER: &str = "bad";

/// A decision about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) path: String,
    /// The offset that took it.
    pub(super) offset: i64,
    /// The columns that were read.
    pub(super) columns: Vec<usize>,
    /// How many of its rows count, from its beginning.
    pub(super) kept: u64,
    pub(super) reason: String,
    /// Whether it is a dead letter.
    pub(super) letter: bool,
}

/// All decisions, read when they are asked for.
#[derive(Debug)]
pub(super) struct Verdicts {
    name: String,
    files: Arc<dyn DurableFiles>,
    /// Offsets that have a file.
    written: BTreeSet<i64>,
    known: BTreeMap<i64, Vec<Verdict>>,
}

impl Verdicts {
    /// Looks which there are.
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>) -> Result<Self, SourceError> {
        let listed = files.list(FOLDER).map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
        let written = listed.iter().filter_map(|file| file.parse().ok()).collect();
        Ok(Self { name: name.to_owned(), files, written, known: BTreeMap::new() })
    }

    /// Reads the decisions about an offset.
    pub(super) fn load(&mut self, offset: i64) -> Result<(), SourceError> {
        if !self.written.contains(&offset) || self.known.contains_key(&offset) {
            return Ok(());
        }
        let path = format!("{FOLDER}/{offset}");
        let body = sealed::read(&self.name, self.files.as_ref(), &path)?.unwrap_or_default();
        let lines: Result<Vec<Verdict>, _> = body.lines().map(serde_json::from_str).collect();
        let lines =
            lines.map_err(|error| sealed::damaged(&self.name, self.files.as_ref(), &path, &error.to_string()))?;
        self.known.insert(offset, lines);
        Ok(())
    }

    /// The decision about a file and some of its columns; the offset must have been loaded.
    pub(super) fn get(&self, entry: &FileEntry, columns: &[usize]) -> Option<&Verdict> {
        let verdicts = self.known.get(&entry.batch_id)?;
        verdicts.iter().find(|verdict| *verdict.path == *entry.path && verdict.columns == columns)
    }

    /// Whether there is any decision about a file; the offset must have been loaded.
    pub(super) fn is_bad(&self, entry: &FileEntry) -> bool {
        self.known.get(&entry.batch_id).is_some_and(|known| known.iter().any(|verdict| *verdict.path == *entry.path))
    }

    /// Writes down new decisions.
    pub(super) fn add(&mut self, verdicts: Vec<Verdict>) -> Result<(), SourceError> {
        let mut offsets: Vec<i64> = verdicts.iter().map(|verdict| verdict.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        for offset in offsets {
            self.load(offset)?;
            let mut all = self.known.get(&offset).cloned().unwrap_or_default();
            all.extend(verdicts.iter().filter(|verdict| verdict.offset == offset).cloned());
            let mut body = String::new();
            for verdict in &all {
                body.push_str(&serde_json::to_string(verdict).expect("text and numbers always have a JSON form"));
                body.push('\n');
            }
            self.files
                .put_over(&format!("{FOLDER}/{offset}"), sealed::seal(&body))
                .map_err(|source| SourceError::Log { name: self.name.clone(), source })?;
            self.written.insert(offset);
            self.known.insert(offset, all);
        }
        Ok(())
    }

    /// Forgets what nobody can ask for again.
    pub(super) fn forget_before(&mut self, offset: i64) {
        let gone: Vec<i64> = self.written.range(..offset).copied().collect();
        for number in gone {
            if let Err(error) = self.files.delete(&format!("{FOLDER}/{number}")) {
                tracing::warn!(source = self.name, %error, "old decisions about bad files could not be deleted");
                return;
            }
            self.written.remove(&number);
            self.known.remove(&number);
        }
    }
}
