//! From a row that went out to everything that made it: a folder that gives the same row again, anywhere, without the
//! sources and without the checkpoint.
//!
//! ```text
//!   batch N on a fork ──► rows ──► the row ──► fewer and fewer input rows, as long as the row still comes out
//!                                                      │
//!   FOLDER/row.json      the row, its batch, code, offsets, watermark, times, configuration, the query
//!          checkpoint/   offsets and commits of N and before it, state before N, components
//!          inputs/       the rows that are left, and what the query joins with
//! ```
//! Which input rows had part in a row no operator needs to tell: a row of the input without which the row comes out the
//! same is left out. That holds for joins, sessions and the code of plugins as well. It is tried with so many runs; when
//! they are spent, what is left is told as what it is.
//!
//! Beside the loop. Rule of its life: the checkpoint is only read, and what is in the folder is enough.

mod folder;
mod narrow;
mod query;

pub use folder::{Input, MadeBy, Narrowed, RowDocument};
pub use query::QueryDocument;

use crate::inspect::CheckpointPlace;
use crate::query::{Fork, ForkOptions};
use crate::replay::entry;
use crate::{QuerySpec, RuntimeError, Session};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::util::display::array_value_to_string;
use folder::Folder;
use millstream_common::BatchId;
use millstream_sink::Export;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Which row of a batch is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChoice {
    /// By its number among the rows that a replay of the batch gives, from 0.
    Number(u64),
    /// The first one with these values, by column, as text.
    Where(Vec<(String, String)>),
}

/// A row that was made again from its folder.
#[derive(Debug, Clone, PartialEq)]
pub struct RemadeRow {
    /// What the folder says of it.
    pub document: RowDocument,
    /// Whether the row came out again, byte for byte.
    pub is_same: bool,
    /// The rows that came out.
    pub rows: Vec<String>,
}

/// Puts a row and everything that made it into a folder, which must be empty or not be there.
///
/// # Errors
/// When the checkpoint no longer has the batch, its input is no longer there, there is no such row, or the query is no text.
pub fn explain_row(
    session: &Session,
    spec: &QuerySpec,
    batch: u64,
    row: &RowChoice,
    folder: &Path,
) -> Result<RowDocument, RuntimeError> {
    let place = CheckpointPlace::of_query(spec.clone())?;
    let checkpoint = place.open(session)?;
    let entry = entry(&checkpoint, BatchId(batch))?;
    let query = query::QueryDocument::of(spec, &entry)?;
    if let Some(plugin) = query.asks_hosts().first() {
        let reason = format!("plugin `{plugin}` may ask hosts on the network, and what they said is not kept");
        return Err(RuntimeError::Invalid { reason, hint: None });
    }
    let folder = Folder::new(folder)?;
    let options = ForkOptions::in_memory()?;
    let mut fork = Fork::before(session, spec, Arc::clone(checkpoint.files()), entry.batch, options)?;
    let inputs = fork.read_inputs(&entry)?;
    let rows = fork.probe(&entry, &inputs)?;
    let schema = fork.schema();
    let (line, values) = chosen(&schema, &rows, batch, row)?;
    let found = narrow::narrow(&inputs, &values, |inputs| {
        let rows = fork.probe(&entry, inputs)?;
        Ok(lines(&schema, &rows)?.contains(&line))
    })?;
    let slots = fork.slots().to_vec();
    query::write_tables(session, spec, &fork, folder.path())?;
    folder.write(&checkpoint, &entry, (query, line), (slots.as_slice(), found))
}

/// Makes the row of a folder again.
///
/// # Errors
/// When the folder is not one of [`explain_row`], or its batch cannot be run.
pub fn remake_row(session: &Session, folder: &Path) -> Result<RemadeRow, RuntimeError> {
    let (document, inputs) = folder::read(folder)?;
    let (session, spec) = document.query.spec(session, folder)?;
    let base = millstream_checkpoint::open_files(&folder::checkpoint(folder)?, &[])?;
    let options = ForkOptions { is_fed: true, ..ForkOptions::in_memory()? };
    let mut fork = Fork::before(&session, &spec, base, BatchId(document.batch), options)?;
    let entry = fork.checkpoint().offset_log().get(BatchId(document.batch))?;
    let entry = entry.ok_or_else(|| folder::unusable(folder, "it has no definition of its batch".into()))?;
    let rows = fork.probe(&entry, &inputs)?;
    let rows = lines(&fork.schema(), &rows)?;
    let is_same = rows.contains(&document.row);
    Ok(RemadeRow { document, is_same, rows })
}

/// Whether a folder is one of [`explain_row`].
pub fn is_row_folder(folder: &Path) -> bool {
    folder.join(folder::DOCUMENT).is_file()
}

/// Rows as lines of JSON.
fn lines(schema: &SchemaRef, rows: &[RecordBatch]) -> Result<Vec<String>, RuntimeError> {
    let bytes = Export::Json.bytes(schema, rows)?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// The row that is meant, as a line of JSON, and its values as text.
fn chosen(
    schema: &SchemaRef,
    rows: &[RecordBatch],
    batch: u64,
    choice: &RowChoice,
) -> Result<(String, Vec<String>), RuntimeError> {
    let lines = lines(schema, rows)?;
    let missing = |reason: String| {
        let hint = format!("`millstream replay --batch {batch} --rows` shows its {} rows", lines.len());
        RuntimeError::Invalid { reason, hint: Some(hint) }
    };
    let number = match choice {
        RowChoice::Number(number) => usize::try_from(*number).unwrap_or(usize::MAX),
        RowChoice::Where(wanted) => {
            let columns: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
            if let Some((name, _)) = wanted.iter().find(|(name, _)| !columns.contains(name)) {
                return Err(missing(format!("the result has no column `{name}`, but {}", columns.join(", "))));
            }
            let wanted: BTreeMap<&str, &str> = wanted.iter().map(|(name, value)| (&**name, &**value)).collect();
            let fits = |rows: &RecordBatch, row: usize| {
                columns.iter().zip(rows.columns()).all(|(name, column)| {
                    let text = || array_value_to_string(column, row).unwrap_or_default();
                    wanted.get(&**name).is_none_or(|wanted| text() == *wanted)
                })
            };
            let mut all = rows.iter().flat_map(|rows| (0..rows.num_rows()).map(move |row| (rows, row)));
            all.position(|(rows, row)| fits(rows, row)).unwrap_or(usize::MAX)
        }
    };
    let line = lines.get(number).cloned().ok_or_else(|| missing(format!("batch {batch} gave no such row")))?;
    let mut places = rows.iter().flat_map(|rows| (0..rows.num_rows()).map(move |row| (rows, row)));
    let values = places.nth(number).map(|(rows, row)| {
        let cells = rows.columns().iter().filter(|column| column.is_valid(row));
        cells.filter_map(|column| array_value_to_string(column, row).ok()).collect()
    });
    Ok((line, values.unwrap_or_default()))
}
