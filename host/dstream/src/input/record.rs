//! One row of a direct stream, as its source has it.

use arrow::array::RecordBatch;
use millstream_sink::connectors::foreach::Row;
use std::sync::Arc;

/// A row of a source, with the columns of the source.
#[derive(Debug, Clone)]
pub struct Record {
    rows: Arc<RecordBatch>,
    index: usize,
}

impl Record {
    /// Each row of a batch of rows.
    pub(crate) fn all(rows: RecordBatch) -> impl Iterator<Item = Self> {
        let (count, rows) = (rows.num_rows(), Arc::new(rows));
        (0..count).map(move |index| Self { rows: Arc::clone(&rows), index })
    }

    /// Its values by the names of columns.
    pub fn row(&self) -> Row<'_> {
        Row::new(&self.rows, self.index)
    }

    /// The rows that it is one of.
    pub fn batch(&self) -> &RecordBatch {
        &self.rows
    }

    /// Its number among them.
    pub fn index(&self) -> usize {
        self.index
    }
}
