//! The file source: listing, log and reader behind the contract of a source.

use super::bucket::Bucket;
use super::cleaner;
use super::config::{CleanSource, FileConfig};
use super::listing::{FoundFile, Lister, PASSED_OVER};
use super::log::{FileEntry, FileLog};
use super::patterns::Places;
use super::reader::FileReader;
use super::seen::SeenFiles;
use super::verdicts::{Verdict, Verdicts};
use crate::{DeadLetter, Offset, Source, SourceContext, SourceError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use serde_json::json;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A listing that takes longer is worth a word.
const SLOW_LISTING_MS: i64 = 2_000;

pub(super) struct FileSource {
    name: String,
    config: FileConfig,
    bucket: Option<Arc<Bucket>>,
    context: SourceContext,
    log: FileLog,
    seen: SeenFiles,
    /// Files that are older are never taken.
    too_old_ms: i64,
    verdicts: Verdicts,
    lister: Lister,
    /// New files of the last listing that a limit left for later batches.
    leftover: VecDeque<FoundFile>,
    /// What there was when everything available was fixed, and is not taken yet.
    frozen: Option<VecDeque<FoundFile>>,
    /// Up to which offset files were cleaned up in this run.
    released: Option<i64>,
    /// How many files the last listing ignored for their age.
    ignored: usize,
    /// The columns that folders would be, and of which the user was told.
    told: BTreeSet<String>,
    /// Bad files of the last readings, not yet asked for.
    letters: Vec<DeadLetter>,
}

impl FileSource {
    pub(super) fn new(
        name: String,
        config: FileConfig,
        bucket: Option<Arc<Bucket>>,
        context: SourceContext,
        (log, seen, too_old_ms): (FileLog, SeenFiles, i64),
        (verdicts, lister): (Verdicts, Lister),
    ) -> Self {
        Self {
            name,
            config,
            bucket,
            context,
            log,
            seen,
            too_old_ms,
            verdicts,
            lister,
            leftover: VecDeque::new(),
            frozen: None,
            released: None,
            ignored: 0,
            told: BTreeSet::new(),
            letters: Vec::new(),
        }
    }

    /// The number in an offset; -1 for the beginning.
    fn number(&self, offset: Option<&Offset>) -> Result<i64, SourceError> {
        let Some(offset) = offset else { return Ok(-1) };
        let number = offset.0.get("logOffset").and_then(serde_json::Value::as_i64);
        number
            .filter(|number| *number >= -1)
            .ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn lost(&self, range: String, reason: String) -> SourceError {
        SourceError::Lost { name: self.name.clone(), range, reason }
    }

    /// The files that were never taken, in the order in which they are to be taken.
    fn list_new(&mut self) -> Result<VecDeque<FoundFile>, SourceError> {
        let began_ms = self.context.clock.now_ms();
        let listing = self.lister.list(&self.config, &self.seen, began_ms)?;
        let took_ms = self.context.clock.now_ms().saturating_sub(began_ms);
        if took_ms > SLOW_LISTING_MS {
            tracing::warn!(source = self.name, place = self.config.path, took_ms, "listing the files is slow");
        }
        if listing.too_old > self.ignored {
            let files = listing.too_old;
            tracing::warn!(source = self.name, files, "files are ignored: they are older than maxFileAge");
        }
        self.ignored = listing.too_old.max(self.ignored);
        for (column, folder) in listing.passed_over {
            if self.told.len() < PASSED_OVER && self.told.insert(column.clone()) {
                let place = &self.config.path;
                tracing::warn!(
                    source = self.name,
                    place,
                    folder,
                    "a folder is passed over: the source has no column `{column}`; declare it in the schema and start again"
                );
            }
        }
        let mut new = listing.new;
        if self.config.latest_first {
            new.reverse();
        }
        Ok(new.into())
    }

    /// Takes files off the last listing, or off a new one.
    fn take_next(&mut self, limit: ReadLimit) -> Result<Vec<FoundFile>, SourceError> {
        if let Some(frozen) = &mut self.frozen {
            return Ok(take(frozen, limit, &mut self.seen));
        }
        if self.leftover.is_empty() || self.config.latest_first {
            if self.config.latest_first {
                // Newer files go before what was left: all of it is listed again.
                self.lister.forget();
            }
            self.leftover = self.list_new()?;
        }
        let taken = take(&mut self.leftover, limit, &mut self.seen);
        let kept = kept_for_later(&self.config, limit, &self.leftover);
        if kept < self.leftover.len() {
            self.leftover.truncate(kept);
            self.lister.forget();
        }
        Ok(taken)
    }

    fn letter(verdict: &Verdict) -> DeadLetter {
        DeadLetter { place: verdict.path.clone(), reason: verdict.reason.clone() }
    }

    /// The files of (from, to].
    fn entries(&self, from: i64, to: i64) -> Result<Vec<&FileEntry>, SourceError> {
        let mut files: Vec<&FileEntry> = Vec::new();
        for number in from + 1..=to {
            let entries = self.log.get(number).ok_or_else(|| {
                self.lost(format!("({from}, {to}]"), format!("its log in the checkpoint has no entry {number}"))
            })?;
            files.extend(entries);
        }
        Ok(files)
    }
}

/// Takes from the front of `files` what the limit admits, and marks it as seen.
fn take(files: &mut VecDeque<FoundFile>, limit: ReadLimit, seen: &mut SeenFiles) -> Vec<FoundFile> {
    let mut bytes = 0_u64;
    let mut taken = Vec::new();
    while let Some(next) = files.front() {
        // What became too old while it was left over is taken all the same: the listing has promised it.
        if seen.is_taken(&next.path) {
            files.pop_front();
            continue;
        }
        bytes = bytes.saturating_add(next.bytes);
        let admitted = match limit {
            ReadLimit::AllAvailable | ReadLimit::MaxRows(_) => true,
            ReadLimit::MaxFiles(most) => (taken.len() as u64) < most.max(1),
            ReadLimit::MaxBytes(most) => taken.is_empty() || bytes <= most,
        };
        if !admitted {
            break;
        }
        if let Some(file) = files.pop_front() {
            seen.add(&file.path, file.modified_ms);
            taken.push(file);
        }
    }
    taken
}

/// How many of the files that a limit left are kept for the next batches; the others are listed again.
fn kept_for_later(config: &FileConfig, limit: ReadLimit, left: &VecDeque<FoundFile>) -> usize {
    let (left_over, most) = match limit {
        ReadLimit::MaxFiles(most) => (left.len() as f64, most as f64),
        ReadLimit::MaxBytes(most) => (left.iter().map(|file| file.bytes as f64).sum(), most as f64),
        ReadLimit::AllAvailable | ReadLimit::MaxRows(_) => (1.0, 0.0),
    };
    // Less than a share of a batch is not worth keeping: with a new listing the batch is a full one.
    if left_over < most * config.discard_ratio { 0 } else { left.len().min(config.max_cached_files) }
}

impl Source for FileSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.config.schema)
    }

    fn description(&self) -> String {
        let scheme = if self.bucket.is_some() { "" } else { "file:" };
        format!("FileStreamSource[{scheme}{}]", self.config.path)
    }

    fn was_at(&mut self, place: &str) {
        let was = Places::parse(place).map_or_else(|_| place.to_owned(), |was| was.base());
        self.log.relocate(&was, &self.config.places.base());
    }

    fn read_limit(&self) -> ReadLimit {
        self.config.limit
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.number(start)?;
        if from > self.log.latest() {
            let reason = format!("its log in the checkpoint ends at {}", self.log.latest());
            return Err(self.lost(format!("up to {from}"), reason));
        }
        if from < self.log.latest() {
            // Written down in an earlier run, but no batch was made of it.
            return Ok(Some(Offset(json!({ "logOffset": self.log.latest() }))));
        }
        let taken = self.take_next(limit)?;
        if taken.is_empty() {
            return Ok(start.cloned());
        }
        let entry = taken.iter().map(|file| (Arc::clone(&file.path), file.modified_ms));
        match self.log.add(entry, self.too_old_ms) {
            Ok(number) => {
                self.too_old_ms = self.seen.purge();
                Ok(Some(Offset(json!({ "logOffset": number }))))
            }
            Err(error) => {
                // Nothing was promised: the same files are new when the batch is tried again.
                let left = self.frozen.as_mut().unwrap_or(&mut self.leftover);
                for file in taken.into_iter().rev() {
                    self.seen.forget(&file.path);
                    left.push_front(file);
                }
                Err(error)
            }
        }
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        let latest = self.log.latest();
        (latest >= 0).then(|| Offset(json!({ "logOffset": latest })))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.number(start)?, self.number(Some(end))?);
        if to > self.log.latest() {
            let reason = format!("its log in the checkpoint ends at {}", self.log.latest());
            return Err(self.lost(format!("({from}, {to}]"), reason));
        }
        for number in from + 1..=to {
            self.verdicts.load(number)?;
        }
        let files = self.entries(from, to)?;
        let reader = FileReader {
            name: &self.name,
            config: &self.config,
            bucket: self.bucket.as_ref(),
            projection,
            stop: &self.context.stop,
            range: format!("({from}, {to}]"),
        };
        let rows = reader.read(&files, &self.verdicts, self.context.default_parallelism)?;
        let decided = files.iter().filter_map(|file| self.verdicts.get(file, projection));
        let decided = decided.chain(&rows.verdicts).filter(|verdict| verdict.letter);
        let letters: Vec<DeadLetter> = decided.map(Self::letter).collect();
        self.verdicts.add(rows.verdicts)?;
        for letter in letters {
            // A stream that is read by two parts of a query has one letter about a file.
            if !self.letters.contains(&letter) {
                self.letters.push(letter);
            }
        }
        Ok(rows.groups)
    }

    fn take_dead_letters(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.letters)
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let to = self.number(Some(end))?;
        self.verdicts.forget_before(self.log.first_retained());
        if self.config.clean == CleanSource::Off {
            return Ok(());
        }
        let from = self.released.unwrap_or(to - 1);
        for number in from + 1..=to {
            self.verdicts.load(number)?;
            for entry in self.log.get(number).unwrap_or_default() {
                // What a file holds that was passed over is nowhere else.
                if !self.verdicts.is_bad(entry) {
                    cleaner::clean(&self.name, &self.config.clean, self.bucket.as_ref(), &entry.path);
                }
            }
        }
        self.released = Some(to.max(from));
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.leftover.clear();
        self.lister.forget();
        self.frozen = Some(self.list_new()?);
        Ok(())
    }
}
