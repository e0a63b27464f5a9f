//! The file source: listing, log and reader behind the contract of a source.

use super::cleaner;
use super::config::{CleanSource, FileConfig, FileFormat, fixed_part, is_glob};
use super::listing::{self, FoundFile};
use super::log::FileLog;
use super::reader::FileReader;
use super::seen::SeenFiles;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use serde_json::json;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Makes file sources.
#[derive(Debug, Clone)]
pub struct FileSourceFactory {
    format: Option<FileFormat>,
}

impl FileSourceFactory {
    /// For one format, or with `None` for the format that option `format` names.
    pub fn new(format: Option<FileFormat>) -> Self {
        Self { format }
    }
}

impl SourceFactory for FileSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(FileConfig::new(spec, self.format)?.schema)
    }

    /// The log has whole paths: elsewhere all files would be new, unless only their names count.
    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let config = FileConfig::new(spec, self.format).ok()?;
        (!config.file_name_only).then_some(config.path)
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = FileConfig::new(spec, self.format)?;
        if !is_glob(&config.path) && !Path::new(&config.path).exists() {
            return Err(SourceError::Unavailable {
                name: spec.name.clone(),
                action: "list",
                place: config.path,
                source: "it does not exist".into(),
            });
        }
        let log = FileLog::open(&spec.name, Arc::clone(&context.files))?;
        let mut seen = SeenFiles::new(&config);
        log.all().for_each(|entry| seen.add(&entry.path, entry.timestamp));
        seen.purge();
        let name = spec.name.clone();
        let leftover = VecDeque::new();
        Ok(Box::new(FileSource {
            name,
            config,
            context,
            log,
            seen,
            leftover,
            frozen: None,
            released: None,
            ignored: 0,
        }))
    }
}

struct FileSource {
    name: String,
    config: FileConfig,
    context: SourceContext,
    log: FileLog,
    seen: SeenFiles,
    /// New files of the last listing that a limit left for later batches.
    leftover: VecDeque<FoundFile>,
    /// What there was when everything available was fixed, and is not taken yet.
    frozen: Option<VecDeque<FoundFile>>,
    /// Up to which offset files were cleaned up in this run.
    released: Option<i64>,
    /// How many files the last listing ignored for their age.
    ignored: usize,
}

impl FileSource {
    /// The number in an offset; -1 for the beginning.
    fn number(&self, offset: Option<&Offset>) -> Result<i64, SourceError> {
        let Some(offset) = offset else { return Ok(-1) };
        let number = offset.0.get("logOffset").and_then(serde_json::Value::as_i64);
        number
            .filter(|number| *number >= -1)
            .ok_or_else(|| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    /// The files that were never taken, in the order in which they are to be taken.
    fn list_new(&mut self) -> Result<VecDeque<FoundFile>, SourceError> {
        let all = listing::list(&self.name, &self.config)?;
        let ignored = all.iter().filter(|file| self.seen.is_too_old(&file.path, file.modified_ms)).count();
        if ignored > self.ignored {
            tracing::warn!(source = self.name, files = ignored, "files are ignored: they are older than maxFileAge");
        }
        self.ignored = ignored;
        let mut new: Vec<FoundFile> =
            all.into_iter().filter(|file| self.seen.is_new(&file.path, file.modified_ms)).collect();
        if self.config.latest_first {
            new.reverse();
        }
        Ok(new.into())
    }
}

/// Takes from the front of `files` what the limit admits, and marks it as seen.
fn take(files: &mut VecDeque<FoundFile>, limit: ReadLimit, seen: &mut SeenFiles) -> Vec<FoundFile> {
    let mut bytes = 0_u64;
    let mut taken = Vec::new();
    while let Some(next) = files.front() {
        if !seen.is_new(&next.path, next.modified_ms) {
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

impl Source for FileSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.config.schema)
    }

    fn description(&self) -> String {
        format!("FileStreamSource[file:{}]", self.config.path)
    }

    fn was_at(&mut self, place: &str) {
        self.log.relocate(&fixed_part(place), &fixed_part(&self.config.path));
    }

    fn read_limit(&self) -> ReadLimit {
        self.config.limit
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.number(start)?;
        if from > self.log.latest() {
            return Err(SourceError::Lost {
                name: self.name.clone(),
                range: format!("up to {from}"),
                reason: format!("its log in the checkpoint ends at {}", self.log.latest()),
            });
        }
        if from < self.log.latest() {
            // Written down in an earlier run, but no batch was made of it.
            return Ok(Some(Offset(json!({ "logOffset": self.log.latest() }))));
        }
        let taken = match &mut self.frozen {
            Some(frozen) => take(frozen, limit, &mut self.seen),
            None => {
                if self.leftover.is_empty() || self.config.latest_first {
                    self.leftover = self.list_new()?;
                }
                let taken = take(&mut self.leftover, limit, &mut self.seen);
                self.leftover.truncate(self.config.max_cached_files);
                taken
            }
        };
        if taken.is_empty() {
            return Ok(start.cloned());
        }
        let entry = taken.iter().map(|file| (file.path.clone(), file.modified_ms));
        match self.log.add(entry) {
            Ok(number) => {
                self.seen.purge();
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
            return Err(SourceError::Lost {
                name: self.name.clone(),
                range: format!("({from}, {to}]"),
                reason: format!("its log in the checkpoint ends at {}", self.log.latest()),
            });
        }
        let mut paths: Vec<&str> = Vec::new();
        for number in from + 1..=to {
            let entries = self.log.get(number).ok_or_else(|| SourceError::Lost {
                name: self.name.clone(),
                range: format!("({from}, {to}]"),
                reason: format!("its log in the checkpoint has no entry {number}"),
            })?;
            paths.extend(entries.iter().map(|entry| entry.path.as_str()));
        }
        let reader = FileReader::new(
            &self.name,
            &self.config.schema,
            projection,
            &self.config.decoding,
            &self.context.stop,
            format!("({from}, {to}]"),
        );
        reader.read(&paths, self.context.default_parallelism)
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let to = self.number(Some(end))?;
        if self.config.clean == CleanSource::Off {
            return Ok(());
        }
        let from = self.released.unwrap_or(to - 1);
        for number in from + 1..=to {
            for entry in self.log.get(number).unwrap_or_default() {
                cleaner::clean(&self.name, &self.config.clean, &entry.path);
            }
        }
        self.released = Some(to.max(from));
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.leftover.clear();
        self.frozen = Some(self.list_new()?);
        Ok(())
    }
}
