//! A table or a query of a database as rows that are read whole.
//!
//! As a static table it is read when a query starts. Its offset counts the readings, so it has one batch.

use crate::{Offset, Source, SourceError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;

/// Reads the rows of some columns, by index.
pub(crate) type ReadTable = Box<dyn FnMut(&[usize]) -> Result<Vec<RecordBatch>, SourceError> + Send>;

/// The rows of a table as they are when they are read.
pub(crate) struct TableSource {
    pub(crate) description: String,
    pub(crate) schema: SchemaRef,
    pub(crate) read: ReadTable,
}

impl Source for TableSource {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn latest_offset(&mut self, _: Option<&Offset>, _: ReadLimit) -> Result<Option<Offset>, SourceError> {
        Ok(Some(0.into()))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        _: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        match start {
            Some(_) => Ok(Vec::new()),
            None => Ok(vec![(self.read)(projection)?]),
        }
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}
