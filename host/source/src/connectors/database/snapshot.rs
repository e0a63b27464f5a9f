//! The rows of a table as they were when a stream of its changes began, kept in the checkpoint.
//!
//! A server cannot show the past again, and a batch must give the same rows when it is read again: so the rows are
//! written down before the first offset is answered, in files of Parquet, and the file `state` last.

use crate::{SourceError, kept_rows};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use millstream_common::{DurableError, DurableFiles};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The name of the file that is written last.
const STATE: &str = "state";

/// The files of one source in the checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotFiles {
    name: String,
    files: Arc<dyn DurableFiles>,
}

impl SnapshotFiles {
    /// Those of a source.
    pub(crate) fn new(name: &str, files: Arc<dyn DurableFiles>) -> Self {
        Self { name: name.to_owned(), files }
    }

    fn log(&self, source: DurableError) -> SourceError {
        SourceError::Log { name: self.name.clone(), source }
    }

    fn damaged(&self, place: String, reason: String) -> SourceError {
        SourceError::Damaged { name: self.name.clone(), place, reason }
    }

    /// A small document, if it is there.
    pub(crate) fn document<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, SourceError> {
        let bytes = match self.files.get(path) {
            Ok(bytes) => bytes,
            Err(DurableError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(self.log(error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| self.damaged(path.to_owned(), error.to_string()))
    }

    /// Writes a small document for good.
    pub(crate) fn write_document(&self, path: &str, document: &impl Serialize) -> Result<(), SourceError> {
        let bytes = serde_json::to_vec(document).map_err(|error| self.damaged(path.to_owned(), error.to_string()))?;
        self.files.put_new(path, bytes.into()).map_err(|error| self.log(error))
    }

    /// What was written last, if the beginning is done.
    pub(crate) fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, SourceError> {
        self.document(STATE)
    }

    /// Says that the beginning is done.
    pub(crate) fn write_state(&self, state: &impl Serialize) -> Result<(), SourceError> {
        self.write_document(STATE, state)
    }

    /// Writes the `number`-th piece of rows; an earlier attempt's is replaced.
    pub(crate) fn write(&self, number: u64, rows: &RecordBatch) -> Result<(), SourceError> {
        let path = piece(number);
        let bytes = kept_rows::encode(rows).map_err(|reason| self.damaged(path.clone(), reason))?;
        self.files.put_over(&path, bytes.into()).map_err(|error| self.log(error))
    }

    /// The rows of all pieces, as changes. `projection` is by the columns of the stream, of which `width` are the table's.
    pub(crate) fn read(
        &self,
        pieces: u64,
        schema: &SchemaRef,
        (width, projection): (usize, &[usize]),
        (taken_us, position): (i64, &str),
    ) -> Result<Vec<RecordBatch>, SourceError> {
        let misfit = |error: arrow::error::ArrowError| self.damaged("snapshot".to_owned(), error.to_string());
        let projected = Arc::new(schema.project(projection).map_err(misfit)?);
        let mut all = Vec::new();
        for number in 0..pieces {
            for rows in self.piece(number, width, projection)? {
                let mut columns: Vec<ArrayRef> = Vec::new();
                let mut of_table = rows.columns().iter();
                for column in projection {
                    let own: ArrayRef = match column.checked_sub(width) {
                        None => match of_table.next() {
                            Some(array) => Arc::clone(array),
                            None => return Err(self.damaged(piece(number), "a column is missing".to_owned())),
                        },
                        Some(0) => Arc::new(StringArray::from(vec!["snapshot"; rows.num_rows()])),
                        Some(1) => {
                            let times = TimestampMicrosecondArray::from(vec![taken_us; rows.num_rows()]);
                            Arc::new(times.with_timezone("UTC"))
                        }
                        _ => Arc::new(StringArray::from(vec![position; rows.num_rows()])),
                    };
                    columns.push(own);
                }
                let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
                let batch = RecordBatch::try_new_with_options(Arc::clone(&projected), columns, &options);
                all.push(batch.map_err(misfit)?);
            }
        }
        Ok(all)
    }

    fn piece(&self, number: u64, width: usize, projection: &[usize]) -> Result<Vec<RecordBatch>, SourceError> {
        let path = piece(number);
        let bytes = self.files.get(&path).map_err(|error| self.log(error))?;
        let roots = projection.iter().copied().filter(|column| *column < width);
        kept_rows::decode(bytes, roots).map_err(|reason| self.damaged(path, reason))
    }
}

fn piece(number: u64) -> String {
    format!("snapshot/{number:08}.parquet")
}
