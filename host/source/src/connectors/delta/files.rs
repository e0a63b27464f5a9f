//! Data files of a table: which there are, and their rows.

use super::commit::AddedFile;
use crate::SourceError;
use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array, new_null_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options, filter_record_batch, take};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use delta_kernel::scan::state::{DvInfo, ScanFile};
use delta_kernel::schema::StructType;
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::{FileMeta, KernelError};
use millstream_client::delta::DeltaTable;
use millstream_common::StopSignal;
use std::collections::HashMap;
use std::sync::Arc;

/// A data file of a table.
#[derive(Debug, Clone)]
pub(super) struct DataFile {
    /// Relative to the table, or whole; as a URL.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// The values of the partition columns, those that the table had when the file was added; all others are in the file.
    values: HashMap<String, Option<String>>,
    /// Which rows are marked as deleted.
    deleted: DvInfo,
}

impl From<AddedFile> for DataFile {
    fn from(file: AddedFile) -> Self {
        Self { path: file.path, bytes: file.size, values: file.partition_values, deleted: DvInfo::default() }
    }
}

impl DataFile {
    /// A file of a table with these partition columns; the kernel leaves out those that are null.
    fn of(mut file: ScanFile, partition_columns: &[String]) -> Self {
        let value = |name: &String| (name.clone(), file.partition_values.remove(name));
        let values = partition_columns.iter().map(value).collect();
        Self { path: file.path, bytes: u64::try_from(file.size).unwrap_or(0), values, deleted: file.dv_info }
    }
}

/// All files that a table has, oldest first.
pub(super) fn all(
    table: &DeltaTable,
    snapshot: &SnapshotRef,
) -> Result<Vec<DataFile>, millstream_client::delta::DeltaError> {
    table.apart("list the files of", || {
        let scan = Arc::clone(snapshot).scan_builder().build()?;
        let mut files: Vec<ScanFile> = Vec::new();
        for metadata in scan.scan_metadata(table.engine().as_ref())? {
            files = metadata?.visit_scan_files(files, |files, file| files.push(file))?;
        }
        files.sort_by(|a, b| a.modification_time.cmp(&b.modification_time).then_with(|| a.path.cmp(&b.path)));
        let partition_columns = snapshot.table_configuration().logical_partition_columns();
        Ok(files.into_iter().map(|file| DataFile::of(file, partition_columns)).collect())
    })
}

/// Reads data files of one table.
pub(super) struct FileReader<'a> {
    pub(super) name: &'a str,
    pub(super) table: &'a DeltaTable,
    /// The table's columns.
    pub(super) columns: &'a StructType,
    /// The columns that are wanted, in order.
    pub(super) schema: SchemaRef,
    pub(super) stop: &'a StopSignal,
}

impl FileReader<'_> {
    /// The rows of files, in at most `partitions` groups of neighbours, one thread each.
    pub(super) fn read(&self, files: &[DataFile], partitions: usize) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let groups: Vec<&[DataFile]> = files.chunks(files.len().div_ceil(partitions.max(1))).collect();
        let results: Vec<Result<Vec<RecordBatch>, SourceError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = groups.iter().map(|group| scope.spawn(|| self.read_group(group))).collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        results.into_iter().collect()
    }

    fn read_group(&self, files: &[DataFile]) -> Result<Vec<RecordBatch>, SourceError> {
        let mut batches = Vec::new();
        for file in files {
            if self.stop.is_set() {
                return Err(self.unreadable(file, "the query is stopping".into()));
            }
            for batch in self.physical(file)? {
                let batch = self.logical(file, &batch).map_err(|error| SourceError::Malformed {
                    name: self.name.to_owned(),
                    place: self.place(file),
                    reason: error.to_string(),
                })?;
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    fn place(&self, file: &DataFile) -> String {
        format!("{}/{}", self.table.place(), file.path)
    }

    fn unreadable(&self, file: &DataFile, source: Box<dyn std::error::Error + Send + Sync>) -> SourceError {
        SourceError::Unavailable { name: self.name.to_owned(), action: "read", place: self.place(file), source }
    }

    /// The rows as they are in the file, without those that are marked as deleted.
    fn physical(&self, file: &DataFile) -> Result<Vec<RecordBatch>, SourceError> {
        let in_file = |name: &str| !file.values.contains_key(name);
        let wanted = |name: &str| self.schema.field_with_name(name).is_ok();
        let mut fields: Vec<_> =
            self.columns.fields().filter(|field| in_file(field.name()) && wanted(field.name())).cloned().collect();
        if fields.is_empty() {
            // Some column tells how many rows there are.
            fields.extend(self.columns.fields().find(|field| in_file(field.name())).cloned());
        }
        let read = self.table.apart("read", || {
            let location = self.table.url().join(&file.path)?;
            let meta = FileMeta { location, last_modified: 0, size: file.bytes };
            let engine = self.table.engine();
            let selection = file.deleted.get_selection_vector(engine.as_ref(), self.table.url())?;
            let schema = Arc::new(StructType::try_new(fields)?);
            let mut batches = Vec::new();
            let mut row = 0;
            for batch in self.table.file_rows(meta, &schema)? {
                let batch = batch?;
                let rows = batch.num_rows();
                batches.push(match &selection {
                    Some(kept) => {
                        // Rows behind the end of the vector are there.
                        let kept = (row..row + rows).map(|at| kept.get(at).copied().unwrap_or(true));
                        let kept = BooleanArray::from(kept.collect::<Vec<bool>>());
                        filter_record_batch(&batch, &kept).map_err(KernelError::generic_err)?
                    }
                    None => batch,
                });
                row += rows;
            }
            Ok(batches)
        });
        read.map_err(|error| self.unreadable(file, Box::new(error)))
    }

    /// The columns that are wanted.
    fn logical(&self, file: &DataFile, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let columns: Vec<ArrayRef> = self
            .schema
            .fields()
            .iter()
            .map(|field| {
                if let Some(value) = file.values.get(field.name()) {
                    return constant(value.as_deref(), field.data_type(), rows);
                }
                match batch.column_by_name(field.name()) {
                    Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
                    Some(column) => cast(column, field.data_type()),
                    None => Ok(new_null_array(field.data_type(), rows)),
                }
            })
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// A column of one value, which the log has as text.
fn constant(value: Option<&str>, data_type: &DataType, rows: usize) -> Result<ArrayRef, ArrowError> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(new_null_array(data_type, rows)) };
    let one = StringArray::from(vec![value]);
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let one = cast_with_options(&one, data_type, &strict)?;
    if one.is_null(0) {
        return Err(ArrowError::CastError(format!("`{value}` is no value of type {data_type}")));
    }
    take(&one, &UInt32Array::from(vec![0; rows]), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{Date32Type, TimeUnit, TimestampMicrosecondType};

    #[test]
    fn partition_values_come_out_of_text() {
        let dates = constant(Some("2024-05-01"), &DataType::Date32, 2).unwrap();
        assert_eq!(dates.as_primitive::<Date32Type>().values(), &[19_844, 19_844]);
        let at = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for text in ["1970-01-01 00:00:01", "1970-01-01T00:00:01.000000Z"] {
            let times = constant(Some(text), &at, 1).unwrap();
            assert_eq!(times.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000, "{text}");
        }
        assert!(constant(Some(""), &DataType::Utf8, 1).unwrap().is_null(0));
        assert!(constant(Some("x"), &DataType::Int32, 1).is_err());
    }
}
