//! A case as its folder describes it.

use anyhow::{Context, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_source::decode::{JsonDecoder, JsonOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `case.toml`.
#[derive(Debug, Deserialize)]
pub(crate) struct CaseFile {
    pub(crate) tags: Vec<String>,
    pub(crate) output_mode: String,
    pub(crate) sql: String,
    #[serde(default)]
    pub(crate) stream: Vec<StreamEntry>,
    #[serde(default)]
    pub(crate) table: Vec<TableEntry>,
    #[serde(default)]
    pub(crate) conf: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) restart_after: Vec<usize>,
    #[serde(default)]
    pub(crate) drain_after: Vec<usize>,
}

/// One `[[stream]]`.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamEntry {
    pub(crate) name: String,
    pub(crate) schema: String,
    pub(crate) watermark: Option<WatermarkEntry>,
    pub(crate) dedup: Option<DedupEntry>,
}

/// `watermark = { column, delay }`.
#[derive(Debug, Deserialize)]
pub(crate) struct WatermarkEntry {
    pub(crate) column: String,
    pub(crate) delay: String,
}

/// `dedup = { columns, within_watermark }`.
#[derive(Debug, Deserialize)]
pub(crate) struct DedupEntry {
    pub(crate) columns: Vec<String>,
    pub(crate) within_watermark: bool,
}

/// One `[[table]]`.
#[derive(Debug, Deserialize)]
pub(crate) struct TableEntry {
    pub(crate) name: String,
    pub(crate) schema: String,
}

/// A case: its folder and what stands in it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) file: CaseFile,
}

impl Case {
    /// Reads the case in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("case.toml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, folder: folder.to_owned(), file })
    }

    /// The rows of every batch of a stream, batch by batch.
    pub(crate) fn input(&self, stream: &StreamEntry) -> Result<Vec<RecordBatch>> {
        let schema = schema_of(&stream.schema)?;
        let folder = self.folder.join("input").join(&stream.name);
        let mut batches = Vec::new();
        loop {
            let path = folder.join(format!("{}.jsonl", batches.len()));
            if !path.exists() {
                return Ok(batches);
            }
            batches.push(rows_of(&path, &schema)?);
        }
    }

    /// The rows of a static table.
    pub(crate) fn table(&self, table: &TableEntry) -> Result<(SchemaRef, RecordBatch)> {
        let schema = schema_of(&table.schema)?;
        let rows = rows_of(&self.folder.join("tables").join(format!("{}.jsonl", table.name)), &schema)?;
        Ok((schema, rows))
    }
}

/// The cases in a folder, by name.
pub(crate) fn cases_in(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.join("case.toml").exists() {
            cases.push(Case::read(&path)?);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn schema_of(ddl: &str) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(millstream_plan::ddl::parse_ddl(ddl)?)))
}

fn rows_of(path: &Path, schema: &SchemaRef) -> Result<RecordBatch> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let decoder = JsonDecoder::new(schema, &all, JsonOptions::default())?;
    Ok(decoder.decode(&bytes)?)
}
