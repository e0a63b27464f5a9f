//! Small files of a table put together, between two batches: what Delta calls `OPTIMIZE`.
//!
//! ```text
//!   small files of one partition  ──►  one file  ──►  one commit: remove those, add this, no row is new (`dataChange` is false)
//! ```
//!
//! Rule of its life: it is a version of its own, after a batch is in the table; the batch does not fail for it. Where another
//! writer was first nothing changes, and it is tried again later. A file that was put together is not small any more when it
//! has reached half of the target; until then it is taken again, with others. Old files stay for those who read old versions,
//! until `VACUUM`.
//!
//! It does not touch files with rows that are marked as deleted, nor files that are small on the disk only, and no table that
//! maps the names of its columns.

use super::config::CompactionConfig;
use super::sink::FILE_BYTES;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use delta_kernel::committer::FileSystemCommitter;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine_data::FilteredEngineData;
use delta_kernel::expressions::Scalar;
use delta_kernel::scan::state::ScanFile;
use delta_kernel::schema::{DataType, StructType};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::table_features::ColumnMappingMode;
use delta_kernel::transaction::{CommitResult, UpdateTableOperation};
use delta_kernel::{EngineData, FileMeta, KernelError, KernelResult};
use millstream_client::delta::{DeltaError, DeltaTable};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How many files are put together in one version, unless a partition may have more small ones.
const FILES_AT_ONCE: usize = 1_000;

/// A file of the table, and where the kernel's listing has it.
struct Listed {
    part: usize,
    row: usize,
    file: ScanFile,
}

/// The kernel's listing of a table.
struct Listing {
    parts: Vec<Box<dyn EngineData>>,
    files: Vec<Listed>,
}

/// Puts small files together where a partition has enough of them; the table as it is then, if it has changed.
pub(super) fn compact(
    table: &DeltaTable,
    snapshot: &SnapshotRef,
    config: &CompactionConfig,
    engine_info: &str,
) -> Result<Option<SnapshotRef>, DeltaError> {
    const ACTION: &str = "put small files together in";
    let layout = snapshot.table_configuration();
    if layout.column_mapping_mode() != ColumnMappingMode::None {
        return Ok(None);
    }
    let listing = table.apart(ACTION, || list(table, snapshot))?;
    let sizes = listing.files.iter().map(|listed| Small::of(&listed.file)).collect::<Vec<_>>();
    let groups = choose(&sizes, config);
    if groups.is_empty() {
        return Ok(None);
    }
    let partition_columns = layout.logical_partition_columns().to_vec();
    let (mut transaction, state) = table.apart(ACTION, || {
        let builder = Arc::clone(snapshot).update_table(UpdateTableOperation::Optimize, engine_info, false);
        let transaction = builder.build(table.engine().as_ref(), Box::new(FileSystemCommitter::new()))?;
        let state = transaction.write_state()?;
        Ok((transaction, state))
    })?;
    let mut removed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut write = |gathered: Gathered| -> Result<(), DeltaError> {
        let files: Vec<&Listed> = gathered.files.iter().filter_map(|at| listing.files.get(*at)).collect();
        let [first, _, ..] = files.as_slice() else { return Ok(()) };
        let (rows, context) = table.apart(ACTION, || {
            let mut builder = state.write_context_builder();
            if !partition_columns.is_empty() {
                builder = builder.with_partition_values(values(&snapshot.schema(), &partition_columns, &first.file)?);
            }
            Ok((gathered.whole()?, builder.build()?))
        })?;
        let engine = Arc::clone(table.engine());
        transaction.add_files(table.wait(ACTION, async move { engine.write_parquet(&rows, &context).await })?);
        files.iter().for_each(|listed| removed.entry(listed.part).or_default().push(listed.row));
        Ok(())
    };
    for group in &groups {
        let mut gathered = Gathered::default();
        for at in group {
            let Some(listed) = listing.files.get(*at) else { continue };
            let rows = table.apart(ACTION, || read(table, snapshot, &partition_columns, &listed.file))?;
            let Some(rows) = rows else { continue };
            gathered.take(*at, rows, FILE_BYTES).map_or(Ok(()), &mut write)?;
        }
        write(gathered)?;
    }
    if removed.is_empty() {
        return Ok(None);
    }
    for (at, part) in listing.parts.into_iter().enumerate() {
        let Some(rows) = removed.get(&at) else { continue };
        let mut selected = vec![false; part.len()];
        for row in rows {
            if let Some(slot) = selected.get_mut(*row) {
                *slot = true;
            }
        }
        let chosen = FilteredEngineData::try_new(part, selected);
        transaction.remove_files(chosen.map_err(|error| table.failed(ACTION, error))?);
    }
    let committed = table.apart(ACTION, || transaction.commit(table.engine().as_ref()))?;
    match committed {
        CommitResult::Committed(done) => Ok(done.post_commit_snapshot().map(Arc::clone)),
        CommitResult::Conflicted(_) => Ok(None),
        CommitResult::Retryable(transaction) => Err(table.failed(ACTION, transaction.error)),
    }
}

fn list(table: &DeltaTable, snapshot: &SnapshotRef) -> KernelResult<Listing> {
    let scan = Arc::clone(snapshot).scan_builder().build()?;
    let mut listing = Listing { parts: Vec::new(), files: Vec::new() };
    for metadata in scan.scan_metadata(table.engine().as_ref())? {
        let metadata = metadata?;
        let found: Vec<ScanFile> = metadata.visit_scan_files(Vec::new(), |files, file| files.push(file))?;
        let (data, selection) = metadata.scan_files.into_parts();
        // Rows behind the end of the vector are selected.
        let rows: Vec<usize> = (0..data.len()).filter(|row| selection.get(*row).copied().unwrap_or(true)).collect();
        if rows.len() != found.len() {
            return Err(KernelError::generic("the listing of the table and its files differ"));
        }
        let part = listing.parts.len();
        listing.files.extend(rows.into_iter().zip(found).map(|(row, file)| Listed { part, row, file }));
        listing.parts.push(data);
    }
    Ok(listing)
}

/// The rows of a file; nothing when they are too long for one array, so that the file is not small after all.
fn read(
    table: &DeltaTable,
    snapshot: &SnapshotRef,
    partition_columns: &[String],
    file: &ScanFile,
) -> KernelResult<Option<Vec<RecordBatch>>> {
    let table_schema = snapshot.schema();
    let fields = table_schema.fields().filter(|field| !partition_columns.contains(field.name())).cloned();
    let schema = Arc::new(StructType::try_new(fields)?);
    let location = table.url().join(&file.path)?;
    let size = u64::try_from(file.size).unwrap_or(0);
    let mut batches = Vec::new();
    let mut bytes = 0_usize;
    for rows in table.file_rows(FileMeta { location, last_modified: file.modification_time, size }, &schema)? {
        let rows = rows?;
        bytes = bytes.saturating_add(rows.get_array_memory_size());
        if bytes > FILE_BYTES {
            return Ok(None);
        }
        batches.push(rows);
    }
    Ok(Some(batches))
}

/// Files whose rows become one file.
#[derive(Debug, Default)]
struct Gathered {
    /// Their numbers.
    files: Vec<usize>,
    rows: Vec<RecordBatch>,
    bytes: usize,
}

impl Gathered {
    /// Takes a file in. Those before it come back when it does not fit beside them.
    fn take(&mut self, file: usize, rows: Vec<RecordBatch>, most: usize) -> Option<Self> {
        let bytes: usize = rows.iter().map(RecordBatch::get_array_memory_size).sum();
        let full = (self.bytes.saturating_add(bytes) > most).then(|| std::mem::take(self));
        self.files.push(file);
        self.rows.extend(rows);
        self.bytes += bytes;
        full
    }

    fn whole(self) -> KernelResult<ArrowEngineData> {
        let Some(first) = self.rows.first() else {
            return Err(KernelError::generic("the files to put together are empty"));
        };
        Ok(ArrowEngineData::new(concat_batches(&first.schema(), &self.rows).map_err(KernelError::generic_err)?))
    }
}

/// The values of the partition that a file belongs to.
fn values(table: &StructType, names: &[String], file: &ScanFile) -> KernelResult<HashMap<String, Scalar>> {
    let value = |name: &String| {
        let data_type = table.field(name).map(|field| field.data_type().clone());
        let scalar = match (file.partition_values.get(name), data_type) {
            (Some(text), Some(DataType::Primitive(primitive))) => primitive.parse_scalar(text)?,
            (None, Some(data_type)) => Scalar::Null(data_type),
            _ => return Err(KernelError::generic(format!("partition column `{name}` is of no plain type"))),
        };
        Ok((name.clone(), scalar))
    };
    names.iter().map(value).collect()
}

/// What is asked of a file to decide about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Small {
    partition: BTreeMap<String, String>,
    bytes: u64,
    modified_ms: i64,
    has_deleted: bool,
}

impl Small {
    fn of(file: &ScanFile) -> Self {
        Self {
            partition: file.partition_values.clone().into_iter().collect(),
            bytes: u64::try_from(file.size).unwrap_or(u64::MAX),
            modified_ms: file.modification_time,
            has_deleted: file.dv_info.has_vector(),
        }
    }
}

/// Which files become one, by their numbers: of partitions with enough small ones the oldest, no longer together than one
/// target in all.
fn choose(files: &[Small], config: &CompactionConfig) -> Vec<Vec<usize>> {
    let mut partitions: BTreeMap<&BTreeMap<String, String>, Vec<usize>> = BTreeMap::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.bytes < config.target_bytes / 2) {
        if !file.has_deleted {
            partitions.entry(&file.partition).or_default().push(at);
        }
    }
    let (mut bytes_left, mut files_left) = (config.target_bytes, FILES_AT_ONCE.max(config.after_files));
    let mut groups = Vec::new();
    for (_, mut small) in partitions.into_iter().filter(|(_, small)| small.len() >= config.after_files) {
        small.sort_by_key(|at| files[*at].modified_ms);
        let mut group = Vec::new();
        let mut bytes = 0;
        for at in small.into_iter().take(files_left) {
            if bytes + files[at].bytes > bytes_left {
                break;
            }
            bytes += files[at].bytes;
            group.push(at);
        }
        if group.len() >= 2 {
            bytes_left -= bytes;
            files_left -= group.len();
            groups.push(group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(partition: &str, bytes: u64, modified_ms: i64) -> Small {
        let partition = [("k".to_owned(), partition.to_owned())].into();
        Small { partition, bytes, modified_ms, has_deleted: false }
    }

    #[test]
    fn what_is_put_together_fits_into_memory() {
        let rows = |length: usize| {
            let text = Arc::new(arrow::array::StringArray::from(vec!["x".repeat(length)])) as arrow::array::ArrayRef;
            vec![RecordBatch::try_from_iter(vec![("v", text)]).unwrap()]
        };
        let (mut gathered, mut full) = (Gathered::default(), Vec::new());
        for (file, length) in [1000, 1000, 5000, 8000, 1000, 1000, 1000].into_iter().enumerate() {
            full.extend(gathered.take(file, rows(length), 9000).map(|gathered| gathered.files));
        }
        full.push(gathered.files.clone());
        assert_eq!(full, [vec![0, 1, 2], vec![3], vec![4, 5, 6]]);
        assert_eq!(gathered.whole().unwrap().record_batch().num_rows(), 3);
    }

    #[test]
    fn the_oldest_small_files_of_a_partition_are_taken_up_to_the_target() {
        let config = |after_files, target_bytes| CompactionConfig { after_files, target_bytes };
        let mut files = vec![small("a", 3, 9), small("b", 3, 0), small("a", 3, 1), small("a", 60, 0), small("a", 3, 5)];
        assert_eq!(choose(&files, &config(3, 100)), [[2, 4, 0]]);
        assert_eq!(choose(&files, &config(3, 8)), [[2, 4]], "those that fit");
        assert!(choose(&files, &config(4, 100)).is_empty());
        files[2].has_deleted = true;
        assert!(choose(&files, &config(3, 100)).is_empty());
        files.push(small("b", 3, 0));
        assert_eq!(choose(&files, &config(2, 10)), [[4, 0]], "one target for all partitions");
    }
}
