//! The Delta source: from file to file and from version to version.

use super::commit::{self, Hindrance, Known};
use super::config::{DeltaConfig, Start};
use super::files::{self, DataFile, FileReader};
use super::offset::DeltaOffset;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSettings, SourceSpec, sealed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use delta_kernel::Engine;
use delta_kernel::schema::StructType;
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::table_features::ColumnMappingMode;
use millstream_client::delta::{DeltaError, DeltaTable, arrow_schema};
use millstream_common::{ReadLimit, describe_chain};
use std::sync::Arc;

/// In the source's folder of the checkpoint: the version that a stream of the newest began with.
const START: &str = "starting-version";

/// Makes Delta sources.
#[derive(Clone, Default)]
pub struct DeltaSourceFactory {
    /// What the host says of object stores.
    object_store: Vec<(String, String)>,
}

/// An open table that a stream can be made of.
struct Opened {
    config: DeltaConfig,
    table: DeltaTable,
    snapshot: SnapshotRef,
    schema: SchemaRef,
}

impl DeltaSourceFactory {
    fn open_table(&self, spec: &SourceSpec) -> Result<Opened, SourceError> {
        let config = DeltaConfig::new(spec, &self.object_store)?;
        let failed = |error: DeltaError| match error.is_unsupported() {
            true => unsupported(&spec.name, &error),
            false => SourceError::Unavailable {
                name: spec.name.clone(),
                action: "open",
                place: config.path.clone(),
                source: Box::new(error),
            },
        };
        let table = DeltaTable::open(&config.path, &config.store).map_err(failed)?;
        let version = match config.start {
            Start::Table(version) => version,
            Start::Version(_) | Start::Latest => None,
        };
        let snapshot = table.snapshot(version).map_err(failed)?;
        let snapshot = snapshot.ok_or_else(|| failed(DeltaError::Missing { place: table.place().to_owned() }))?;
        let unfit = |reason: String| SourceError::Schema { name: spec.name.clone(), reason };
        if snapshot.table_configuration().column_mapping_mode() != ColumnMappingMode::None {
            return Err(unfit("the table maps the names of its columns, which is not read here".into()));
        }
        let schema = arrow_schema(&snapshot.schema()).map_err(|error| unfit(error.to_string()))?;
        Ok(Opened { config, table, snapshot, schema })
    }
}

impl SourceFactory for DeltaSourceFactory {
    /// Looks at the table's log: its schema is there and nowhere else.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(self.open_table(spec)?.schema)
    }

    fn with_settings(&self, settings: &SourceSettings) -> Option<Arc<dyn SourceFactory>> {
        Some(Arc::new(Self { object_store: settings.object_store.clone() }))
    }

    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let config = DeltaConfig::new(spec, &self.object_store).ok()?;
        Some(DeltaTable::open(&config.path, &config.store).ok()?.place().to_owned())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let Opened { config, table, snapshot, schema } = self.open_table(spec)?;
        let name = spec.name.clone();
        let first = match config.start {
            Start::Table(_) => None,
            Start::Version(version) => Some(version),
            Start::Latest => Some(starting_version(&name, &context, &snapshot)?),
        };
        Ok(Box::new(DeltaSource {
            columns: snapshot.schema().as_ref().clone(),
            opened: snapshot.version(),
            partition_columns: snapshot.table_configuration().logical_partition_columns().to_vec(),
            name,
            config,
            context,
            table,
            snapshot,
            schema,
            first,
            frozen: None,
            cached: None,
            passed: None,
            looked_back: false,
        }))
    }
}

/// A table that asks for what nobody here knows.
fn unsupported(name: &str, error: &DeltaError) -> SourceError {
    let reason = format!("{}; drop the feature from the table, or read a table without it", describe_chain(error));
    SourceError::Schema { name: name.to_owned(), reason }
}

/// The version after the newest, as it was when the stream began.
fn starting_version(name: &str, context: &SourceContext, snapshot: &SnapshotRef) -> Result<u64, SourceError> {
    if let Some(text) = sealed::read(name, context.files.as_ref(), START)? {
        return text.trim().parse().map_err(|_| SourceError::Damaged {
            name: name.to_owned(),
            place: START.to_owned(),
            reason: "it holds no version".to_owned(),
        });
    }
    let version = snapshot.version() + 1;
    let written = context.files.put_new(START, sealed::seal(version.to_string()));
    written.map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
    Ok(version)
}

struct DeltaSource {
    name: String,
    config: DeltaConfig,
    context: SourceContext,
    table: DeltaTable,
    /// The table as it was seen last.
    snapshot: SnapshotRef,
    schema: SchemaRef,
    /// The version that columns and partition columns are of.
    opened: u64,
    columns: StructType,
    partition_columns: Vec<String>,
    /// The version whose added files come first; `None` when the whole table does.
    first: Option<u64>,
    /// The newest version that counts when everything available was fixed.
    frozen: Option<u64>,
    /// The files of the version that was looked at last.
    cached: Option<(u64, bool, Arc<Vec<DataFile>>)>,
    /// Behind which offset there is nothing up to which version.
    passed: Option<(DeltaOffset, u64)>,
    /// Whether the table was looked at as it was when a stream that comes from far behind goes on.
    looked_back: bool,
}

/// The next file of a version.
#[derive(Debug, Clone, Copy)]
struct Position {
    version: u64,
    index: u64,
    initial: bool,
}

impl DeltaSource {
    fn failed(&self, action: &'static str, error: DeltaError) -> SourceError {
        let (name, place) = (self.name.clone(), self.table.place().to_owned());
        if error.is_passing() {
            return SourceError::Unavailable { name, action, place, source: Box::new(error) };
        }
        if error.is_unsupported() {
            return unsupported(&name, &error);
        }
        SourceError::Damaged { name, place, reason: describe_chain(&error) }
    }

    /// The newest version that counts.
    fn newest(&mut self) -> Result<u64, SourceError> {
        if let Start::Table(Some(version)) = self.config.start {
            return Ok(version);
        }
        if let Some(frozen) = self.frozen {
            return Ok(frozen);
        }
        let newer = self.table.newer(&self.snapshot).map_err(|error| self.failed("read the log of", error))?;
        self.snapshot = newer;
        Ok(self.snapshot.version())
    }

    /// The files of a version: all of the table, or those that the version adds.
    fn files(&mut self, version: u64, initial: bool) -> Result<Arc<Vec<DataFile>>, SourceError> {
        if let Some((at, kind, files)) = &self.cached
            && (*at, *kind) == (version, initial)
        {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(if initial { self.all_files(version)? } else { self.added_files(version)? });
        self.cached = Some((version, initial, Arc::clone(&files)));
        Ok(files)
    }

    fn all_files(&self, version: u64) -> Result<Vec<DataFile>, SourceError> {
        let then;
        let snapshot = if self.snapshot.version() == version {
            &self.snapshot
        } else {
            let read = self.table.snapshot(Some(version));
            let read = read.map_err(|error| self.failed("read the log of", error))?;
            then = read.ok_or_else(|| self.lost(version, "the table is gone"))?;
            &then
        };
        files::all(&self.table, snapshot).map_err(|error| self.failed("list the files of", error))
    }

    /// Looks at the table as it was at the first version that is read: from there on the versions themselves say what changes,
    /// but what was so before them they do not say.
    fn look_back(&mut self, version: u64) -> Result<(), SourceError> {
        if self.looked_back || version >= self.opened {
            return Ok(());
        }
        match self.table.snapshot(Some(version)) {
            Ok(Some(then)) if then.table_configuration().column_mapping_mode() != ColumnMappingMode::None => {
                return Err(self.not_appended(version, commit::MAPPED.to_owned()));
            }
            Ok(_) => {}
            Err(error) if error.is_passing() || error.is_unsupported() => {
                return Err(self.failed("read the log of", error));
            }
            Err(error) => {
                // The log may be cut off before it, and the version itself still be there.
                let error = describe_chain(&error);
                tracing::warn!(table = self.table.place(), version, error, "the table as it was is not known any more");
            }
        }
        self.looked_back = true;
        Ok(())
    }

    fn added_files(&mut self, version: u64) -> Result<Vec<DataFile>, SourceError> {
        let path = format!("_delta_log/{version:020}.json");
        let bytes = self.table.apart("read the log of", || {
            let url = self.table.url().join(&path)?;
            let mut files = self.table.engine().storage_handler().read_files(vec![(url, None)])?;
            files.next().transpose()
        });
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(self.lost(version, "the log no longer has it")),
            Err(error) if is_missing(&error) => return Err(self.lost(version, "the log no longer has it")),
            Err(error) => return Err(self.failed("read the log of", error)),
        };
        self.look_back(version)?;
        let place = format!("{}/{path}", self.table.place());
        let damaged = |reason: String| SourceError::Malformed { name: self.name.clone(), place, reason };
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => return Err(damaged(error.to_string())),
        };
        let partition_columns = (version > self.opened).then_some(self.partition_columns.as_slice());
        let known = Known { columns: &self.columns, partition_columns };
        match commit::added(text, &self.config, known) {
            Ok(files) => Ok(files.into_iter().map(DataFile::from).collect()),
            Err(Hindrance::Damaged(reason)) => Err(damaged(reason)),
            Err(Hindrance::Change(reason)) => Err(self.not_appended(version, reason)),
        }
    }

    fn not_appended(&self, version: u64, reason: String) -> SourceError {
        SourceError::NotAppended { name: self.name.clone(), place: self.table.place().to_owned(), version, reason }
    }

    fn lost(&self, version: u64, reason: &str) -> SourceError {
        let range = format!("of version {version}");
        SourceError::Lost { name: self.name.clone(), range, reason: reason.to_owned() }
    }

    /// Where reading begins behind an offset; `end` tells what the first range began with.
    fn position(&self, start: Option<DeltaOffset>, whole_table: u64) -> Position {
        match (start, self.first) {
            (Some(offset), _) => {
                Position { version: offset.version, index: offset.index.saturating_add(1), initial: offset.initial }
            }
            (None, Some(version)) => Position { version, index: 0, initial: false },
            (None, None) => Position { version: whole_table, index: 0, initial: true },
        }
    }

    fn admits(&self, limit: ReadLimit, files: u64, bytes: u64) -> bool {
        match limit {
            _ if files == 1 => true,
            ReadLimit::AllAvailable | ReadLimit::MaxRows(_) => true,
            ReadLimit::MaxFiles(most) => files <= most && bytes <= self.config.max_bytes,
            ReadLimit::MaxBytes(most) => bytes <= most,
        }
    }
}

fn is_missing(error: &DeltaError) -> bool {
    let DeltaError::Kernel { source, .. } = error else { return false };
    let mut error: &delta_kernel::KernelError = source;
    while let delta_kernel::KernelError::Backtraced { source, .. } = error {
        error = source;
    }
    match error {
        delta_kernel::KernelError::FileNotFound(_) => true,
        delta_kernel::KernelError::ObjectStore(delta_kernel::object_store::Error::NotFound { .. }) => true,
        delta_kernel::KernelError::IOError(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

impl Source for DeltaSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn description(&self) -> String {
        format!("DeltaSource[{}]", self.table.place())
    }

    fn read_limit(&self) -> ReadLimit {
        self.config.limit
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = start.map(|offset| DeltaOffset::parse(&self.name, offset)).transpose()?;
        let newest = self.newest()?;
        if let Some(from) = from.filter(|from| from.version > newest) {
            let reason = format!("the table ends at version {newest}: it was made anew, or put back");
            return Err(self.lost(from.version, &reason));
        }
        let mut at = self.position(from, newest);
        if let Some((offset, version)) = self.passed
            && Some(offset) == from
        {
            at = Position { version: version + 1, index: 0, initial: false };
        }
        let (mut taken, mut bytes, mut end): (u64, u64, Option<DeltaOffset>) = (0, 0, None);
        'versions: while at.version <= newest {
            let files = match self.files(at.version, at.initial) {
                Ok(files) => files,
                // First the rows before it; then it is met again.
                Err(_) if end.is_some() => break,
                Err(error) => return Err(error),
            };
            for file in files.iter().skip(usize::try_from(at.index).unwrap_or(usize::MAX)) {
                (taken, bytes) = (taken + 1, bytes.saturating_add(file.bytes));
                if !self.admits(limit, taken, bytes) {
                    break 'versions;
                }
                end = Some(DeltaOffset { version: at.version, index: at.index, initial: at.initial });
                at.index += 1;
            }
            at = Position { version: at.version + 1, index: 0, initial: false };
        }
        match (end, from) {
            (Some(end), _) => Ok(Some(end.into())),
            (None, Some(from)) => {
                self.passed = Some((from, newest.max(from.version)));
                Ok(start.cloned())
            }
            (None, None) => Ok(None),
        }
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let name = self.name.clone();
        let foreign = |offset: &Offset| SourceError::ForeignOffset { name: name.clone(), offset: offset.to_string() };
        let last = DeltaOffset::parse(&self.name, end)?;
        let from = start.map(|offset| DeltaOffset::parse(&self.name, offset)).transpose()?;
        if from.is_none() && last.initial && self.first.is_some() {
            return Err(foreign(end));
        }
        let mut files = Vec::new();
        let mut at = self.position(from, last.version);
        if from.is_none() && self.first.is_none() && !last.initial {
            // All of the table, however it came there: as it was before the last version, and what that one adds.
            if let Some(before) = last.version.checked_sub(1) {
                files.extend_from_slice(&self.files(before, true)?);
            }
            at.initial = false;
        }
        let backwards = (at.version, at.index) > (last.version, last.index.saturating_add(1));
        if backwards || (at.version == last.version && at.initial != last.initial) {
            return Err(foreign(end));
        }
        loop {
            let of_version = self.files(at.version, at.initial)?;
            let ends = at.version == last.version;
            let to = if ends { last.index.saturating_add(1) } else { of_version.len() as u64 };
            let range = usize::try_from(at.index).ok().zip(usize::try_from(to).ok());
            let range = range.and_then(|(from, to)| of_version.get(from.min(to)..to));
            files.extend_from_slice(range.ok_or_else(|| self.lost(at.version, "it has fewer files now"))?);
            if ends {
                break;
            }
            at = Position { version: at.version + 1, index: 0, initial: false };
        }
        let schema = self.schema.project(projection);
        let schema =
            schema.map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?;
        let reader = FileReader {
            name: &self.name,
            table: &self.table,
            columns: &self.columns,
            schema: Arc::new(schema),
            stop: &self.context.stop,
        };
        reader.read(&files, self.context.default_parallelism)
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.frozen = None;
        self.frozen = Some(self.newest()?);
        Ok(())
    }
}
