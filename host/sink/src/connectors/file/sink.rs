//! The file sink: data files first, then the manifest.

use super::config::{FileConfig, FileFormat};
use super::encode;
use super::manifest::{self, CommittedBatch, CommittedFile};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::{BatchId, DurableError, DurableFiles, OutputMode, QueryId};
use std::sync::Arc;
use uuid::Uuid;

/// Opens the output at a path or URL.
pub type OpenFiles =
    dyn Fn(&str) -> Result<Arc<dyn DurableFiles>, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

/// Makes file sinks.
#[derive(Clone)]
pub struct FileSinkFactory {
    format: Option<FileFormat>,
    open: Arc<OpenFiles>,
}

impl FileSinkFactory {
    /// For one format, or with `None` for the format that option `format` names; to folders and object stores.
    pub fn new(format: Option<FileFormat>) -> Self {
        Self::opening(format, Arc::new(|place: &str| Ok(millstream_checkpoint::open_files(place, &[])?)))
    }

    /// As [`new`](Self::new), to what `open` opens.
    pub fn opening(format: Option<FileFormat>, open: Arc<OpenFiles>) -> Self {
        Self { format, open }
    }

    fn files(&self, config: &FileConfig) -> Result<Arc<dyn DurableFiles>, SinkError> {
        (self.open)(&config.path).map_err(|source| SinkError::Open {
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

    fn check_resume(&self, spec: &SinkSpec, next: BatchId) -> Result<(), SinkError> {
        if next == BatchId::FIRST {
            return Ok(());
        }
        let config = FileConfig::new(spec, self.format)?;
        let files = self.files(&config)?;
        if manifest::latest(files.as_ref())?.is_some() {
            return Ok(());
        }
        Err(SinkError::Elsewhere { sink: config.format.name().to_owned(), place: files.location(), next })
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = FileConfig::new(spec, self.format)?;
        let files = self.files(&config)?;
        manifest::claim(files.as_ref(), config.format.name(), context.query)?;
        let latest = manifest::latest(files.as_ref())?;
        let sink = FileSink { config, files, query: context.query, latest };
        sink.remove_orphans()?;
        Ok(Box::new(sink))
    }
}

struct FileSink {
    config: FileConfig,
    files: Arc<dyn DurableFiles>,
    query: QueryId,
    /// The newest batch in the output.
    latest: Option<BatchId>,
}

/// The batch in the name of a data file; `None` for files that are not of this sink's making.
fn batch_of(name: &str) -> Option<BatchId> {
    let mut parts = name.strip_prefix("part-")?.splitn(3, '-');
    let batch = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    let (uuid, ending) = parts.next()?.split_once('.')?;
    let known = FileFormat::ALL.into_iter().any(|format| format.ending() == ending);
    (known && uuid.len() == 36 && Uuid::parse_str(uuid).is_ok()).then_some(BatchId(batch))
}

impl FileSink {
    /// Removes data files of batches that were never committed. No other run of this query writes now, and no
    /// other query ever.
    fn remove_orphans(&self) -> Result<(), SinkError> {
        let names = self.files.list("").map_err(|error| manifest::open_error(&*self.files, "list", "", error))?;
        for name in names {
            if batch_of(&name).is_some_and(|batch| Some(batch) > self.latest)
                && let Err(error) = self.files.delete(&name)
            {
                tracing::warn!(file = name, %error, "a file of an unfinished batch could not be removed");
            }
        }
        Ok(())
    }

    fn failed(&self, batch: BatchId, path: &str, error: DurableError) -> SinkError {
        SinkError::Unavailable {
            sink: self.config.format.name().to_owned(),
            action: "write",
            place: format!("{}/{path}", self.files.location().trim_end_matches('/')),
            batch,
            source: Box::new(error),
        }
    }

    /// Writes the rows into files that nobody knows of yet.
    fn write_files(&self, batch: &SinkBatch<'_>) -> Result<Vec<CommittedFile>, SinkError> {
        let mut written = Vec::new();
        for (part, rows) in parts(batch.rows, self.config.max_rows).into_iter().enumerate() {
            let name = format!("part-{}-{part}-{}.{}", batch.id, Uuid::new_v4(), self.config.format.ending());
            let bytes = encode::encode(&self.config.encoding, batch.schema, &rows).map_err(|error| {
                SinkError::Schema { sink: self.config.format.name().to_owned(), reason: error.to_string() }
            })?;
            let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
            let file = CommittedFile { name, rows: count as u64, bytes: bytes.len() as u64 };
            self.files.put_new(&file.name, bytes.into()).map_err(|error| self.failed(batch.id, &file.name, error))?;
            written.push(file);
        }
        Ok(written)
    }
}

/// The rows as they are spread over files; no rows make no file.
fn parts(rows: &[RecordBatch], most: Option<usize>) -> Vec<Vec<RecordBatch>> {
    let most = most.unwrap_or(usize::MAX);
    let mut parts: Vec<Vec<RecordBatch>> = Vec::new();
    let mut room = 0;
    for batch in rows {
        let mut start = 0;
        while start < batch.num_rows() {
            if room == 0 {
                parts.push(Vec::new());
                room = most;
            }
            let length = room.min(batch.num_rows() - start);
            if let Some(part) = parts.last_mut() {
                part.push(batch.slice(start, length));
            }
            start += length;
            room -= length;
        }
    }
    parts
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
        self.config.check_schema(batch.schema)?;
        let written = self.write_files(batch)?;
        let rows = written.iter().map(|file| file.rows).sum();
        let manifest = CommittedBatch { query: self.query, batch: batch.id, rows, files: written };
        let rows = match manifest::write(self.files.as_ref(), &manifest) {
            Ok(()) => rows,
            Err(DurableError::Exists { .. }) => {
                // An attempt that was thought to have failed had arrived after all: it is the one that counts.
                let earlier = manifest::read(self.files.as_ref(), batch.id)?;
                if earlier.query != self.query {
                    let (place, owner) = (self.files.location(), earlier.query);
                    return Err(SinkError::Foreign { sink: sink.to_owned(), place, owner, query: self.query });
                }
                for file in &manifest.files {
                    if let Err(error) = self.files.delete(&file.name) {
                        tracing::warn!(file = file.name, %error, "a superfluous file could not be removed");
                    }
                }
                0
            }
            // The manifest may have been written all the same, so its files must stay.
            Err(error) => return Err(self.failed(batch.id, &format!("{}/{}", manifest::FOLDER, batch.id), error)),
        };
        self.latest = Some(batch.id);
        Ok(SinkReport { rows })
    }
}
