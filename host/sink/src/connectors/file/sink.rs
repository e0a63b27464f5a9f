//! The file sink: data files first, then the log.

use super::compaction::Compaction;
use super::config::{Encoding, FileConfig, FileFormat};
use super::encode::{EncodeError, FileEncoder, csv};
use super::log::{Added, FileLog, ManifestLog};
use super::manifest;
use super::partition::{Partition, Partitioning};
use super::spark_log::SparkLog;
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use millstream_client::file_log::{CommittedBatch, CommittedFile, MergedFile};
use millstream_common::{BatchId, Clock, DurableFiles, OutputMode, QueryId, SystemClock};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Opens the output at a path or URL.
pub type OpenFiles =
    dyn Fn(&str) -> Result<Arc<dyn DurableFiles>, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

/// Makes file sinks.
#[derive(Clone)]
pub struct FileSinkFactory {
    format: Option<FileFormat>,
    /// What opens the output; `None` for folders and object stores.
    open: Option<Arc<OpenFiles>>,
}

impl FileSinkFactory {
    /// For one format, or with `None` for the format that option `format` names; to folders and object stores.
    pub fn new(format: Option<FileFormat>) -> Self {
        Self { format, open: None }
    }

    /// As [`new`](Self::new), to what `open` opens.
    pub fn opening(format: Option<FileFormat>, open: Arc<OpenFiles>) -> Self {
        Self { format, open: Some(open) }
    }

    fn files(&self, config: &FileConfig) -> Result<Arc<dyn DurableFiles>, SinkError> {
        let opened = match &self.open {
            Some(open) => open(&config.path),
            None => millstream_checkpoint::open_files(&config.path, &config.store).map_err(Into::into),
        };
        opened.map_err(|source| SinkError::Open {
            sink: config.format.name().to_owned(),
            action: "open",
            place: config.path.clone(),
            source,
        })
    }
}

impl SinkFactory for FileSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        FileConfig::new(spec, self.format).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let config = FileConfig::new(spec, self.format)?;
        columns(&config, schema).map(drop)
    }

    fn check_resume(&self, spec: &SinkSpec, next: BatchId) -> Result<(), SinkError> {
        if next == BatchId::FIRST {
            return Ok(());
        }
        let config = FileConfig::new(spec, self.format)?;
        let files = self.files(&config)?;
        let log = log(&config, Arc::new(SystemClock::default()));
        log.check_form(files.as_ref(), config.format.name(), None)?;
        if log.latest(files.as_ref())?.is_some() {
            return Ok(());
        }
        Err(SinkError::Elsewhere { sink: config.format.name().to_owned(), place: files.location(), next })
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = FileConfig::new(spec, self.format)?;
        let files = self.files(&config)?;
        let log = log(&config, Arc::clone(&context.clock));
        log.check_form(files.as_ref(), config.format.name(), Some(context.query))?;
        manifest::claim(files.as_ref(), config.format.name(), context.query)?;
        let latest = log.latest(files.as_ref())?;
        let (compaction, replaced) = match &config.compaction {
            Some(compaction) => {
                let (compaction, replaced) = Compaction::load(compaction, config.ending(), files.as_ref(), &log)?;
                (Some(compaction), replaced)
            }
            None => (None, HashMap::new()),
        };
        let (query, clock) = (context.query, context.clock);
        let mut sink = FileSink { config, files, log, query, clock, latest, tried: Vec::new(), compaction };
        sink.look_around(&replaced)?;
        Ok(Box::new(sink))
    }
}

/// The form of log that the options ask for.
fn log(config: &FileConfig, clock: Arc<dyn Clock>) -> FileLog {
    let (interval, retention_ms) = (config.compact_interval, config.retention_ms);
    if config.spark_metadata {
        FileLog::Spark(SparkLog { interval, retention_ms, clock })
    } else {
        FileLog::Manifests(ManifestLog { interval, retention_ms, clock })
    }
}

/// The columns as they are spread over folders and files.
fn columns(config: &FileConfig, schema: &SchemaRef) -> Result<Partitioning, SinkError> {
    let partitioning = Partitioning::new(&config.partition_by, schema)
        .map_err(|reason| SinkError::Schema { sink: config.format.name().to_owned(), reason })?;
    config.check_schema(&partitioning.schema)?;
    Ok(partitioning)
}

struct FileSink {
    config: FileConfig,
    files: Arc<dyn DurableFiles>,
    log: FileLog,
    query: QueryId,
    clock: Arc<dyn Clock>,
    /// The newest batch in the output.
    latest: Option<BatchId>,
    /// Files of batches that are not in the output yet, of attempts in this run and in others.
    tried: Vec<(BatchId, String)>,
    /// The small files, when they are put together.
    compaction: Option<Compaction>,
}

/// How many rows are encoded before the length of the file is looked at.
const STEP_ROWS: usize = 4096;

/// The batch in the path of a data file; `None` for files that are not of this sink's making.
pub(super) fn batch_of(path: &str) -> Option<BatchId> {
    let name = path.rsplit('/').next()?;
    let mut parts = name.strip_prefix("part-")?.splitn(3, '-');
    let batch = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    let (uuid, ending) = parts.next()?.split_once('.')?;
    let ending = ending.strip_suffix(".gz").unwrap_or(ending);
    let known = FileFormat::ALL.into_iter().any(|format| format.ending() == ending);
    (known && uuid.len() == 36 && Uuid::parse_str(uuid).is_ok()).then_some(BatchId(batch))
}

impl FileSink {
    /// Looks for data files that an attempt has left which died. Those of the newest batch that is in the output are removed,
    /// where only the files in the log count. Those of later batches are kept in mind: the attempt may be alive after all
    /// and put its batch into the log, and only when that is there without them they are nobody's. Of those that another
    /// file stands for (`replaced`) it sees which are still there.
    fn look_around(&mut self, replaced: &HashMap<String, i64>) -> Result<(), SinkError> {
        let counted = match self.latest {
            Some(batch) => self.log.names(self.files.as_ref(), batch)?,
            None => Vec::new(),
        };
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let listed = |error| manifest::open_error(&*self.files, "list", &folder, error);
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            for name in self.files.list(&folder).map_err(listed)? {
                let path = format!("{prefix}{name}");
                let Some(batch) = batch_of(&name) else { continue };
                if let (Some(compaction), Some(since_ms)) = (&mut self.compaction, replaced.get(&path)) {
                    compaction.is_there(path, *since_ms);
                } else if Some(batch) > self.latest {
                    self.tried.push((batch, path));
                } else if Some(batch) == self.latest && !counted.contains(&path) {
                    self.remove(&path);
                }
            }
            // Folders of partitions, as many below each other as there are partition columns.
            let depth = if folder.is_empty() { 0 } else { folder.split('/').count() };
            if depth < self.config.partition_by.len() {
                let below = self.files.list_folders(&folder).map_err(listed)?;
                folders.extend(below.iter().filter(|name| name.contains('=')).map(|name| format!("{prefix}{name}")));
            }
        }
        Ok(())
    }

    fn remove(&self, path: &str) {
        if let Err(error) = self.files.delete(path) {
            tracing::warn!(file = path, %error, "a file of an unfinished batch could not be removed");
        }
    }

    fn unfit(&self, error: &EncodeError) -> SinkError {
        SinkError::Schema { sink: self.config.format.name().to_owned(), reason: error.to_string() }
    }

    /// Writes the rows into files that nobody knows of yet.
    fn write_files(
        &mut self,
        batch: &SinkBatch<'_>,
        partitioning: &Partitioning,
    ) -> Result<Vec<CommittedFile>, SinkError> {
        let partitions = partitioning.split(batch.rows).map_err(|error| self.unfit(&error.into()))?;
        let mut written = Vec::new();
        for partition in partitions {
            self.write_partition(batch.id, &partitioning.schema, &partition, &mut written)?;
        }
        Ok(written)
    }

    /// Writes the rows of one folder; no rows make no file.
    fn write_partition(
        &mut self,
        batch: BatchId,
        schema: &SchemaRef,
        partition: &Partition,
        written: &mut Vec<CommittedFile>,
    ) -> Result<(), SinkError> {
        let config = self.config.clone();
        let most_rows = config.max_rows.unwrap_or(usize::MAX);
        let step = if config.target_bytes.is_some() { STEP_ROWS } else { usize::MAX };
        let mut open: Option<(FileEncoder<'_>, usize)> = None;
        for rows in &partition.rows {
            let mut start = 0;
            while start < rows.num_rows() {
                let (mut encoder, count) = match open.take() {
                    Some(open) => open,
                    None => {
                        let encoder = FileEncoder::new(&config.encoding, config.gzip, schema);
                        (encoder.map_err(|error| self.unfit(&error))?, 0)
                    }
                };
                let length = (most_rows - count).min(step).min(rows.num_rows() - start);
                encoder.write(&rows.slice(start, length)).map_err(|error| self.unfit(&error))?;
                start += length;
                let full =
                    count + length == most_rows || config.target_bytes.is_some_and(|target| encoder.bytes() >= target);
                if full {
                    self.put(batch, &partition.folder, encoder, count + length, written)?;
                } else {
                    open = Some((encoder, count + length));
                }
            }
        }
        match open {
            Some((encoder, count)) => self.put(batch, &partition.folder, encoder, count, written),
            None => Ok(()),
        }
    }

    fn put(
        &mut self,
        batch: BatchId,
        folder: &str,
        encoder: FileEncoder<'_>,
        rows: usize,
        written: &mut Vec<CommittedFile>,
    ) -> Result<(), SinkError> {
        let bytes = encoder.finish().map_err(|error| self.unfit(&error))?;
        let length = bytes.len() as u64;
        let name = self.put_bytes(batch, folder, written.len(), bytes.into())?;
        written.push(CommittedFile { name, rows: rows as u64, bytes: length });
        Ok(())
    }

    /// Writes a data file under a name of its own.
    fn put_bytes(&mut self, batch: BatchId, folder: &str, part: usize, bytes: Bytes) -> Result<String, SinkError> {
        let name = format!("{folder}part-{batch}-{part}-{}.{}", Uuid::new_v4(), self.config.ending());
        self.tried.push((batch, name.clone()));
        self.files.put_new(&name, bytes).map_err(|error| SinkError::Unavailable {
            sink: self.config.format.name().to_owned(),
            action: "write",
            place: format!("{}/{name}", self.files.location().trim_end_matches('/')),
            batch,
            source: Box::new(error),
        })?;
        Ok(name)
    }

    /// Puts small files of earlier batches together, where there are enough of them. The batch does not fail for it.
    fn put_together(
        &mut self,
        batch: BatchId,
        schema: &SchemaRef,
        mut part: usize,
    ) -> Result<Vec<MergedFile>, SinkError> {
        let Some(mut compaction) = self.compaction.take() else { return Ok(Vec::new()) };
        let groups = match self.log.can_replace(self.files.as_ref(), batch) {
            Ok(true) => compaction.choose(),
            Ok(false) => Vec::new(),
            Err(error) => {
                self.compaction = Some(compaction);
                return Err(error);
            }
        };
        let header = match &self.config.encoding {
            Encoding::Csv(options) => csv::header(options, schema),
            _ => Vec::new(),
        };
        let mut merged = Vec::new();
        for group in &groups {
            let Some(one) = compaction.merge(self.files.as_ref(), &self.config, &header, group) else { continue };
            match self.put_bytes(batch, &group.folder, part, one.bytes.clone()) {
                Ok(name) => merged.push(group.entry(name, &one)),
                Err(error) => {
                    let error = millstream_common::describe_chain(&error);
                    tracing::warn!(folder = group.folder, error, "small files could not be put together now");
                }
            }
            part += 1;
        }
        self.compaction = Some(compaction);
        Ok(merged)
    }

    /// Takes note of a batch that is in the log now, with these files.
    fn settle(&mut self, batch: BatchId, counted: &[String]) {
        self.latest = Some(batch);
        let (past, ahead) = std::mem::take(&mut self.tried).into_iter().partition(|(of, _)| *of <= batch);
        self.tried = ahead;
        let past: Vec<(BatchId, String)> = past;
        for (_, path) in past.iter().filter(|(_, path)| !counted.contains(path)) {
            self.remove(path);
        }
    }
}

impl Sink for FileSink {
    fn description(&self) -> String {
        format!("FileSink[{}]", self.files.location())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, mode: OutputMode) -> bool {
        mode == OutputMode::Append
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let sink = self.config.format.name();
        if !self.supports(batch.mode) {
            return Err(SinkError::Mode { sink: sink.to_owned(), mode: batch.mode, known: "append".to_owned() });
        }
        if self.latest >= Some(batch.id) {
            return Ok(SinkReport { rows: 0 });
        }
        let partitioning = columns(&self.config, batch.schema)?;
        let files = self.write_files(batch, &partitioning)?;
        let rows = files.iter().map(|file| file.rows).sum();
        let merged = self.put_together(batch.id, &partitioning.schema, files.len())?;
        let (query, committed_ms) = (self.query, self.clock.now_ms());
        let written = CommittedBatch { query, batch: batch.id, rows, files, merged, committed_ms };
        // When this fails the batch may be in the log all the same, so its files must stay.
        let rows = match self.log.add(self.files.as_ref(), self.latest, &written)? {
            Added::Now => {
                self.settle(batch.id, &manifest::names(&written));
                if let Some(compaction) = &mut self.compaction {
                    compaction.see(&written);
                }
                rows
            }
            Added::Before(names) => {
                self.settle(batch.id, &names);
                if let Some(compaction) = &mut self.compaction {
                    compaction.reload(self.files.as_ref(), &self.log, committed_ms)?;
                }
                0
            }
        };
        if let Some(compaction) = &mut self.compaction {
            compaction.delete_old(self.files.as_ref(), committed_ms);
        }
        Ok(SinkReport { rows })
    }
}
