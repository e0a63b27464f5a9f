//! The folder of a row.

use super::narrow::{Narrow, Rows};
use super::query::QueryDocument;
use crate::RuntimeError;
use crate::inspect::manifests;
use crate::query::progress::iso_ms;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use millstream_checkpoint::{Checkpoint, CommitLog, OffsetEntry, OffsetLog, OffsetRange, open_files};
use millstream_common::{DurableError, DurableFiles};
use millstream_plan::SourceSlot;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The document of a row.
pub(super) const DOCUMENT: &str = "row.json";
/// The layout of the folder.
const VERSION: u32 = 1;

/// A row, and what made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowDocument {
    /// The layout of the folder.
    pub version: u32,
    /// The row, as a line of JSON.
    pub row: String,
    /// The batch that gave it.
    pub batch: u64,
    /// The time of the batch.
    pub time: String,
    /// The watermark that the batch evicts with; `None` without one.
    pub watermark: Option<String>,
    /// The watermark that it judged late rows by; `None` without one.
    pub late_watermark: Option<String>,
    /// What the whole batch read, per source.
    pub offsets: BTreeMap<String, OffsetRange>,
    /// The code, by plugin.
    pub made_by: BTreeMap<String, MadeBy>,
    /// Which rows of the input are in the folder.
    pub narrowed: Narrowed,
    /// The rows of the input, per place where they enter.
    pub inputs: Vec<Input>,
    /// The query, and its configuration.
    pub query: QueryDocument,
}

/// The code of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeBy {
    /// The component.
    pub digest: String,
    /// The candidate that computed a share of the keys, if there was one.
    pub canary: Option<String>,
}

/// Which rows of the input are in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrowed {
    /// Rows that the batch read.
    pub of_rows: u64,
    /// Rows in the folder: without the others the row comes out the same.
    pub rows: u64,
    /// How often the batch was run to find out.
    pub runs: u64,
    /// Whether the row does not come out without any of them; otherwise the runs were spent before all was tried.
    pub is_least: bool,
}

/// A place where rows enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The stream.
    pub stream: String,
    /// Its columns there.
    pub columns: Vec<String>,
    /// Its rows there.
    pub rows: u64,
}

pub(super) fn unusable(folder: &Path, reason: String) -> RuntimeError {
    RuntimeError::Invalid {
        reason: format!("the folder `{}` cannot be used: {reason}", folder.display()),
        hint: Some("make it with `millstream explain-row`".into()),
    }
}

/// The checkpoint in a folder, as a place.
pub(super) fn checkpoint(folder: &Path) -> Result<String, RuntimeError> {
    let absolute = std::path::absolute(folder).map_err(|error| unusable(folder, error.to_string()))?;
    Ok(absolute.join("checkpoint").display().to_string())
}

fn input_file(number: usize) -> String {
    format!("inputs/{number}.parquet")
}

/// A folder in the making.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// An empty one.
    pub(super) fn new(folder: &Path) -> Result<Self, RuntimeError> {
        let failed = |reason: String| RuntimeError::Invalid {
            reason: format!("the folder `{}` cannot be used: {reason}", folder.display()),
            hint: Some("name one that is empty or not there yet".into()),
        };
        std::fs::create_dir_all(folder.join("inputs")).map_err(|error| failed(error.to_string()))?;
        let names = std::fs::read_dir(folder).map_err(|error| failed(error.to_string()))?;
        if names.count() > 1 {
            return Err(failed("it is not empty".into()));
        }
        Ok(Self(folder.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes everything but the tables of the query, which are there; the document last.
    pub(super) fn write(
        &self,
        checkpoint: &Checkpoint,
        entry: &OffsetEntry,
        (query, row): (QueryDocument, String),
        (slots, found): (&[SourceSlot], Narrow),
    ) -> Result<RowDocument, RuntimeError> {
        let own = open_files(&self::checkpoint(&self.0)?, &[])?;
        let previous = self.copy(checkpoint, entry, &own)?;
        let mut inputs = Vec::new();
        for (number, (slot, batches)) in slots.iter().zip(&found.inputs).enumerate() {
            let schema = batches.first().map(RecordBatch::schema).unwrap_or_else(|| Arc::new(Schema::empty()));
            if !schema.fields().is_empty() {
                write_rows(&self.0.join(input_file(number)), &schema, batches)?;
            }
            inputs.push(Input {
                stream: slot.stream.clone(),
                columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
                rows: batches.iter().map(|rows| rows.num_rows() as u64).sum(),
            });
        }
        let made_by = entry.plugins.iter().map(|(plugin, pin)| {
            let canary = pin.canary.as_ref().map(|canary| canary.candidate.to_string());
            (plugin.clone(), MadeBy { digest: pin.digest.to_string(), canary })
        });
        let document = RowDocument {
            version: VERSION,
            row,
            batch: entry.batch.0,
            time: iso_ms(entry.batch_time_ms),
            watermark: entry.watermark_ms.map(iso_ms),
            late_watermark: previous.and_then(|previous| previous.watermark_ms).map(iso_ms),
            offsets: entry.sources.clone(),
            made_by: made_by.collect(),
            narrowed: Narrowed {
                of_rows: found.rows.0,
                rows: found.rows.1,
                runs: found.runs,
                is_least: found.is_least,
            },
            inputs,
            query,
        };
        let json = serde_json::to_vec_pretty(&document).map_err(|error| unusable(&self.0, error.to_string()))?;
        std::fs::write(self.0.join(DOCUMENT), json).map_err(|error| unusable(&self.0, error.to_string()))?;
        Ok(document)
    }

    /// Copies what of a checkpoint a run of the batch needs; the definition of the batch before it.
    fn copy(
        &self,
        checkpoint: &Checkpoint,
        entry: &OffsetEntry,
        own: &Arc<dyn DurableFiles>,
    ) -> Result<Option<OffsetEntry>, RuntimeError> {
        let keep = |source: DurableError| RuntimeError::Keep { what: "the folder of a row".into(), source };
        let copy = |path: &str| -> Result<(), RuntimeError> {
            let bytes: Bytes = checkpoint.files().get(path).map_err(keep)?;
            match own.put_new(path, bytes) {
                Ok(()) | Err(DurableError::Exists { .. }) => Ok(()),
                Err(source) => Err(keep(source)),
            }
        };
        copy("metadata")?;
        // What a source is, is no matter for rows that are handed over.
        let anywhere = |entry: &OffsetEntry| OffsetEntry { connectors: BTreeMap::new(), ..entry.clone() };
        let offsets = OffsetLog::new(Arc::clone(own));
        offsets.add(&anywhere(entry))?;
        if let Some(fallback) = checkpoint.fallbacks().get(entry.batch)? {
            millstream_checkpoint::FallbackLog::new(Arc::clone(own)).put(&fallback)?;
        }
        let mut components: Vec<_> = entry.components().collect();
        let mut previous = None;
        if let Some(before) = entry.batch.previous() {
            let commit = checkpoint.commit_log().get(before)?;
            previous = checkpoint.offset_log().get(before)?;
            let (Some(commit), Some(last)) = (commit, &previous) else {
                let reason = format!("batch {} cannot be run again: what was before it is no longer kept", entry.batch);
                return Err(RuntimeError::Invalid { reason, hint: None });
            };
            for (uid, values) in &commit.state {
                for (partition, manifest) in (0_u32..).zip(manifests(before, uid, values)?) {
                    for file in &manifest.files {
                        copy(&format!("state/{uid}/{partition}/{}", file.name))?;
                    }
                }
            }
            offsets.add(&anywhere(last))?;
            CommitLog::new(Arc::clone(own)).add(&commit)?;
            components.extend(last.components());
        }
        for digest in components {
            copy(&format!("plugins/{digest}.wasm"))?;
        }
        Ok(previous)
    }
}

/// The document of a folder, and the rows of its input.
pub(super) fn read(folder: &Path) -> Result<(RowDocument, Rows), RuntimeError> {
    let file = folder.join(DOCUMENT);
    let text = std::fs::read(&file).map_err(|error| unusable(folder, format!("`{DOCUMENT}`: {error}")))?;
    let document: RowDocument =
        serde_json::from_slice(&text).map_err(|error| unusable(folder, format!("`{DOCUMENT}`: {error}")))?;
    if document.version != VERSION {
        return Err(unusable(folder, format!("its layout is version {}, not {VERSION}", document.version)));
    }
    let mut inputs = Vec::new();
    for (number, input) in document.inputs.iter().enumerate() {
        let rows = usize::try_from(input.rows).map_err(|error| unusable(folder, error.to_string()))?;
        inputs.push(match (rows, input.columns.is_empty()) {
            (0, _) => Vec::new(),
            (rows, true) => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
                vec![empty.map_err(|error| unusable(folder, error.to_string()))?]
            }
            (rows, false) => {
                let (_, batches) = read_rows(&folder.join(input_file(number)))?;
                let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
                if count != rows {
                    return Err(unusable(folder, format!("`{}` has {count} rows, not {rows}", input_file(number))));
                }
                batches
            }
        });
    }
    Ok((document, inputs))
}

/// Writes rows of one schema.
pub(super) fn write_rows(file: &Path, schema: &SchemaRef, rows: &[RecordBatch]) -> Result<(), RuntimeError> {
    let failed = |reason: String| unusable(file, format!("its rows cannot be written: {reason}"));
    let mut bytes = Vec::new();
    let written = ArrowWriter::try_new(&mut bytes, Arc::clone(schema), None).and_then(|mut writer| {
        rows.iter().try_for_each(|rows| writer.write(rows))?;
        writer.close()
    });
    written.map_err(|error| failed(error.to_string()))?;
    std::fs::write(file, bytes).map_err(|error| failed(error.to_string()))
}

/// Rows that [`write_rows`] wrote.
pub(super) fn read_rows(file: &Path) -> Result<(SchemaRef, Vec<RecordBatch>), RuntimeError> {
    let failed = |reason: String| unusable(file, format!("its rows cannot be read: {reason}"));
    let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).map_err(|e| failed(e.to_string()))?;
    let schema = Arc::clone(builder.schema());
    let reader = builder.build().map_err(|error| failed(error.to_string()))?;
    let rows = reader.collect::<Result<Vec<_>, _>>().map_err(|error| failed(error.to_string()))?;
    Ok((schema, rows))
}
