//! The Delta sink: files, then one commit with the batch's id.

use super::compaction::compact;
use super::config::{DeltaConfig, NAME};
use super::rows::{Most, TableColumns, new_table};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use delta_kernel::committer::FileSystemCommitter;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::schema::{DataType, PrimitiveType};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::transaction::create_table::create_table;
use delta_kernel::transaction::data_layout::DataLayout;
use delta_kernel::transaction::{CommitResult, Transaction, UpdateTableOperation, WriteState};
use delta_kernel::{EngineData, KernelError};
use millstream_client::delta::{DeltaError, DeltaTable};
use millstream_common::{BatchId, Clock, OutputMode, QueryId, describe_chain};
use std::sync::Arc;
use std::time::Duration;

/// What the log calls the writer.
const ENGINE_INFO: &str = concat!("Millstream/", env!("CARGO_PKG_VERSION"));
/// How long the rows of one file are together, in memory: no column of them outgrows an array, and only they are copied.
pub(super) const FILE_BYTES: usize = 256 << 20;
/// How often a commit is made again that met another writer's.
const ATTEMPTS: u32 = 50;

/// Makes Delta sinks.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeltaSinkFactory;

impl DeltaSinkFactory {
    fn table(config: &DeltaConfig) -> Result<DeltaTable, SinkError> {
        DeltaTable::open(&config.path, &config.store).map_err(|error| unopened("open", &config.path, error))
    }
}

fn unopened(action: &'static str, place: &str, error: DeltaError) -> SinkError {
    SinkError::Open { sink: NAME.to_owned(), action, place: place.to_owned(), source: Box::new(error) }
}

fn unfit(reason: String) -> SinkError {
    SinkError::Schema { sink: NAME.to_owned(), reason }
}

impl SinkFactory for DeltaSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        DeltaConfig::new(spec).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let config = DeltaConfig::new(spec)?;
        let table = new_table(schema).map_err(unfit)?;
        check_partition_columns(&table, config.partition_by.as_deref().unwrap_or_default())
    }

    fn check_resume(&self, spec: &SinkSpec, next: BatchId) -> Result<(), SinkError> {
        if next == BatchId::FIRST {
            return Ok(());
        }
        let table = Self::table(&DeltaConfig::new(spec)?)?;
        // Which query has written it only the sink can ask; batches without rows may have made no table yet.
        table.snapshot(None).map(drop).map_err(|error| unopened("read", table.place(), error))
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = DeltaConfig::new(spec)?;
        let table = Self::table(&config)?;
        let snapshot = table.snapshot(None).map_err(|error| unopened("read", table.place(), error))?;
        if let Some(snapshot) = &snapshot {
            check_layout(&config, snapshot)?;
        }
        let SinkContext { query, clock, .. } = context;
        Ok(Box::new(DeltaSink {
            config,
            table: Arc::new(table),
            query,
            clock,
            snapshot,
            known: None,
            unlooked: usize::MAX,
        }))
    }
}

fn check_partition_columns(table: &delta_kernel::schema::StructType, names: &[String]) -> Result<(), SinkError> {
    for (at, name) in names.iter().enumerate() {
        let Some(field) = table.field(name) else {
            return Err(unfit(format!("option `partitionBy` names column `{name}`, which the query does not have")));
        };
        if !matches!(field.data_type(), DataType::Primitive(primitive) if *primitive != PrimitiveType::Binary) {
            return Err(unfit(format!(
                "column `{name}` of type {} cannot be a partition column; partition by a column of a plain type",
                field.data_type()
            )));
        }
        if names[..at].contains(name) {
            return Err(unfit(format!("option `partitionBy` names column `{name}` twice")));
        }
    }
    if !names.is_empty() && names.len() == table.num_fields() {
        return Err(unfit("all columns are partition columns; leave at least one for the files".into()));
    }
    Ok(())
}

/// Refuses a table that is partitioned otherwise than the options ask for.
fn check_layout(config: &DeltaConfig, snapshot: &SnapshotRef) -> Result<(), SinkError> {
    let there = snapshot.table_configuration().logical_partition_columns();
    match &config.partition_by {
        Some(wanted) if wanted.as_slice() != there => {
            let there = if there.is_empty() { "no column".to_owned() } else { format!("`{}`", there.join(", ")) };
            let wanted = wanted.join(", ");
            Err(unfit(format!("option `partitionBy` is `{wanted}`, and the table is partitioned by {there}")))
        }
        _ => Ok(()),
    }
}

struct DeltaSink {
    config: DeltaConfig,
    table: Arc<DeltaTable>,
    query: QueryId,
    clock: Arc<dyn Clock>,
    /// The table as it was seen last.
    snapshot: Option<SnapshotRef>,
    /// The newest batch of this query in the table, once the log has been asked; nothing after a failure, which may have
    /// arrived after all.
    known: Option<Option<BatchId>>,
    /// How many commits there were since the table was last looked through for small files.
    unlooked: usize,
}

/// The files of a batch, for the table as it was when they were written.
struct Written {
    /// What the table must still be for them to fit.
    shape: (delta_kernel::schema::SchemaRef, Vec<String>),
    adds: Vec<RecordBatch>,
}

impl DeltaSink {
    fn failed(&self, action: &'static str, batch: BatchId, error: DeltaError) -> SinkError {
        let place = self.table.place().to_owned();
        if error.is_passing() {
            return SinkError::Unavailable { sink: NAME.to_owned(), action, place, batch, source: Box::new(error) };
        }
        if error.is_unsupported() {
            let reason = describe_chain(&error);
            return unfit(format!("{reason}; drop the feature from the table, or write to a table without it"));
        }
        SinkError::Corrupt { sink: NAME.to_owned(), place, reason: describe_chain(&error) }
    }

    /// The table as it is now; made, if there is none.
    fn current(&mut self, batch: &SinkBatch<'_>) -> Result<SnapshotRef, SinkError> {
        loop {
            let now = match &self.snapshot {
                Some(snapshot) => self.table.newer(snapshot).map(Some),
                None => self.table.snapshot(None),
            };
            if let Some(snapshot) = now.map_err(|error| self.failed("read", batch.id, error))? {
                check_layout(&self.config, &snapshot)?;
                self.snapshot = Some(Arc::clone(&snapshot));
                return Ok(snapshot);
            }
            self.create(batch)?;
        }
    }

    /// Makes the table with the query's columns, unless somebody else does so meanwhile.
    fn create(&self, batch: &SinkBatch<'_>) -> Result<(), SinkError> {
        let columns = new_table(batch.schema).map_err(unfit)?;
        let names = self.config.partition_by.clone().unwrap_or_default();
        check_partition_columns(&columns, &names)?;
        self.table.make_folder().map_err(|error| self.failed("make", batch.id, error))?;
        let made = self.table.apart("make", || {
            let engine = self.table.engine().as_ref();
            let mut builder = create_table(self.table.url().as_str(), Arc::new(columns), ENGINE_INFO, false);
            if !names.is_empty() {
                builder = builder.with_data_layout(DataLayout::partitioned(&names));
            }
            match builder.build(engine, Box::new(FileSystemCommitter::new())) {
                Ok(transaction) => match transaction.commit(engine)? {
                    CommitResult::Committed(_) | CommitResult::Conflicted(_) => Ok(()),
                    CommitResult::Retryable(transaction) => Err(transaction.error),
                },
                Err(error) if is_there(&error) => Ok(()),
                Err(error) => Err(error),
            }
        });
        made.map_err(|error| self.failed("make", batch.id, error))
    }

    /// Whether the batch is in the table.
    fn is_there(&mut self, snapshot: &SnapshotRef, batch: BatchId) -> Result<bool, SinkError> {
        if let Some(known) = self.known {
            return Ok(known >= Some(batch));
        }
        let query = self.query.to_string();
        let version =
            self.table.apart("read the log of", || snapshot.get_app_id_version(&query, self.table.engine().as_ref()));
        let version = version.map_err(|error| self.failed("read", batch, error))?;
        let known = version.and_then(|version| u64::try_from(version).ok()).map(BatchId);
        self.known = Some(known);
        Ok(known >= Some(batch))
    }

    /// A transaction on the table as it is in `snapshot`, and what files for it must be like.
    fn begin(
        &self,
        snapshot: &SnapshotRef,
        batch: &SinkBatch<'_>,
    ) -> Result<(Transaction, Arc<WriteState>), SinkError> {
        let append = batch.mode == OutputMode::Append;
        let version = i64::try_from(batch.id.0).unwrap_or(i64::MAX);
        let parameters = [
            ("outputMode", Some(if append { "Append" } else { "Complete" }.to_owned())),
            ("queryId", Some(self.query.to_string())),
            ("batchId", Some(batch.id.to_string())),
        ];
        let begun = self.table.apart("write", || {
            let engine = self.table.engine().as_ref();
            let mut builder = Arc::clone(snapshot)
                .update_table(UpdateTableOperation::StreamingUpdate, ENGINE_INFO, true)
                .with_transaction_id(self.query.to_string(), version)
                .with_operation_parameters(parameters);
            if append {
                builder = builder.with_blind_append();
            }
            let mut transaction = builder.build(engine, Box::new(FileSystemCommitter::new()))?;
            if !append {
                let scan = Arc::clone(snapshot).scan_builder().build()?;
                for metadata in scan.scan_metadata(engine)? {
                    transaction.remove_files(metadata?.scan_files);
                }
            }
            let state = transaction.write_state()?;
            Ok((transaction, state))
        });
        begun.map_err(|error| self.failed("write", batch.id, error))
    }

    /// Writes the rows into files that nobody knows of yet.
    fn write_files(
        &self,
        state: &Arc<WriteState>,
        snapshot: &SnapshotRef,
        batch: &SinkBatch<'_>,
    ) -> Result<Written, SinkError> {
        let names = snapshot.table_configuration().logical_partition_columns().to_vec();
        let columns = TableColumns::new(&snapshot.schema(), &names, batch.schema).map_err(unfit)?;
        let most = Most { rows: self.config.max_rows, bytes: FILE_BYTES };
        let files = columns.files(batch.rows, most).map_err(|error| unfit(error.to_string()))?;
        let write = |error| self.failed("write", batch.id, error);
        let mut adds = Vec::new();
        for file in files {
            let rows = columns.rows(&file, batch.rows).map_err(|error| unfit(error.to_string()))?;
            let mut builder = state.write_context_builder();
            if !names.is_empty() {
                builder = builder.with_partition_values(file.values);
            }
            let context = self.table.apart("write", || builder.build()).map_err(write)?;
            let (engine, rows) = (Arc::clone(self.table.engine()), ArrowEngineData::new(rows));
            let added = self.table.wait("write", async move { engine.write_parquet(&rows, &context).await });
            let added = added.map_err(write)?;
            let added = self.table.apart("write", || ArrowEngineData::try_from_engine_data(added));
            adds.push(added.map_err(write)?.record_batch().clone());
        }
        Ok(Written { shape: (snapshot.schema(), names), adds })
    }

    /// One attempt to write a batch; what an earlier one has written is used again where it still fits.
    fn attempt(&mut self, batch: &SinkBatch<'_>, written: &mut Option<Written>) -> Result<Attempt, SinkError> {
        let snapshot = self.current(batch)?;
        if self.is_there(&snapshot, batch.id)? {
            return Ok(Attempt::Before);
        }
        let (mut transaction, state) = self.begin(&snapshot, batch)?;
        let names = snapshot.table_configuration().logical_partition_columns();
        let fits = written.as_ref().is_some_and(|written| written.shape == (snapshot.schema(), names.to_vec()));
        if !fits {
            *written = Some(self.write_files(&state, &snapshot, batch)?);
        }
        for add in written.iter().flat_map(|written| &written.adds) {
            transaction.add_files(Box::new(ArrowEngineData::new(add.clone())) as Box<dyn EngineData>);
        }
        // What happens from here on may have arrived whatever it answers.
        self.known = None;
        let table = Arc::clone(&self.table);
        let committed = table.apart("write", || transaction.commit(table.engine().as_ref()));
        match committed.map_err(|error| self.failed("write", batch.id, error))? {
            CommitResult::Committed(done) => {
                self.known = Some(Some(batch.id));
                if let Some(after) = done.post_commit_snapshot() {
                    self.snapshot = Some(Arc::clone(after));
                    self.checkpoint(after, done.post_commit_stats().commits_since_checkpoint);
                }
                self.put_together();
                Ok(Attempt::Done)
            }
            CommitResult::Conflicted(_) => Ok(Attempt::Met),
            CommitResult::Retryable(transaction) => {
                Err(self.failed("write", batch.id, table.failed("write", transaction.error)))
            }
        }
    }

    /// Puts small files together now and then: looking through the table costs as much as it has files. The batch is in
    /// without it.
    fn put_together(&mut self) {
        let (Some(config), Some(snapshot)) = (&self.config.compaction, &self.snapshot) else { return };
        self.unlooked = self.unlooked.saturating_add(1);
        if self.unlooked < config.after_files {
            return;
        }
        self.unlooked = 0;
        match compact(&self.table, snapshot, config, ENGINE_INFO) {
            Ok(Some(after)) => self.snapshot = Some(after),
            Ok(None) => {}
            Err(error) => {
                let error = describe_chain(&error);
                tracing::warn!(table = self.table.place(), error, "small files could not be put together");
            }
        }
    }

    /// Sums the log up now and then, so that readers need not read it from its beginning. The batch is in without it.
    fn checkpoint(&self, snapshot: &SnapshotRef, commits: u64) {
        let interval = self.config.checkpoint_interval;
        if interval == 0 || commits < interval {
            return;
        }
        let made = self
            .table
            .apart("make a checkpoint of", || snapshot.checkpoint(self.table.engine().as_ref(), None).map(drop));
        if let Err(error) = made {
            tracing::warn!(table = self.table.place(), %error, "the log of a Delta table could not be summed up");
        }
    }
}

/// What became of an attempt to write a batch.
enum Attempt {
    /// The batch is in the table now.
    Done,
    /// It was there already.
    Before,
    /// Another writer was first.
    Met,
}

fn is_there(error: &KernelError) -> bool {
    match error {
        KernelError::Backtraced { source, .. } => is_there(source),
        KernelError::TableAlreadyExistsAtPath(_) | KernelError::FileAlreadyExists(_) => true,
        _ => false,
    }
}

impl Sink for DeltaSink {
    fn description(&self) -> String {
        format!("DeltaSink[{}]", self.table.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, mode: OutputMode) -> bool {
        matches!(mode, OutputMode::Append | OutputMode::Complete)
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        if !self.supports(batch.mode) {
            let known = "append and complete".to_owned();
            return Err(SinkError::Mode { sink: NAME.to_owned(), mode: batch.mode, known });
        }
        let rows: u64 = batch.rows.iter().map(|rows| rows.num_rows() as u64).sum();
        if rows == 0 && batch.mode == OutputMode::Append {
            return Ok(SinkReport { rows: 0 });
        }
        let mut written = None;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(batch, &mut written)? {
                Attempt::Done => return Ok(SinkReport { rows }),
                Attempt::Before => return Ok(SinkReport { rows: 0 }),
                Attempt::Met => self.clock.sleep(Duration::from_millis(u64::from(attempt.min(20)) * 5)),
            }
        }
        let error = Crowded { attempts: ATTEMPTS };
        let place = self.table.place().to_owned();
        Err(SinkError::Unavailable {
            sink: NAME.to_owned(),
            action: "write",
            place,
            batch: batch.id,
            source: Box::new(error),
        })
    }
}

/// Other writers were first again and again.
#[derive(Debug, thiserror::Error)]
#[error("other writers were first {attempts} times")]
struct Crowded {
    attempts: u32,
}
