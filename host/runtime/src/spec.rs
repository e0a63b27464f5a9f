//! A query as the runtime starts it: what the query file and the library's API both make.

use crate::Settings;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{Digest, OutputMode, Trigger};
use millstream_plan::{DropDuplicates, EventTime, Query};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A plugin of a query.
#[derive(Debug, Clone)]
pub struct PluginSpec {
    /// Its name in the query: what `swap` calls it.
    pub name: String,
    /// The component's bytes.
    pub component: Vec<u8>,
    /// What every call may cost.
    pub limits: PluginLimits,
    /// What happens to rows at which it fails.
    pub on_fault: FaultPolicy,
}

impl PluginSpec {
    /// The digest of the component.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.component)
    }
}

/// A static table of a query.
#[derive(Debug, Clone)]
pub enum TableSpec {
    /// Rows in memory.
    Rows {
        /// Its name in SQL.
        name: String,
        /// Its columns.
        schema: SchemaRef,
        /// Its rows.
        rows: Vec<RecordBatch>,
    },
    /// What a source reads when the query starts, and again when its option `refresh` says so.
    Files(SourceSpec),
}

impl TableSpec {
    /// Its name in SQL.
    pub fn name(&self) -> &str {
        match self {
            Self::Rows { name, .. } => name,
            Self::Files(source) => &source.name,
        }
    }
}

/// A stream of a query: where its rows come from, and its event time.
#[derive(Debug, Clone)]
pub struct StreamSpec {
    /// The source.
    pub source: SourceSpec,
    /// The watermark, if there is one.
    pub event_time: Option<EventTime>,
    /// Which duplicates are dropped, if any.
    pub drop_duplicates: Option<DropDuplicates>,
}

/// How much memory the state of a query may take, and where the rest of it lies: the operator of a machine decides that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateLimits {
    /// Bytes for all stateful operators and partitions together; without it memory has no limit. What one batch changes
    /// is in memory until it is committed, so the limit should hold some batches.
    pub memory: Option<u64>,
    /// The folder for what is beyond, on a disk with room for the whole state; by default the system's for temporary
    /// files. Nothing in it outlives the run.
    pub spill: Option<PathBuf>,
}

impl StateLimits {
    /// The folder for what is beyond the limit.
    pub fn spill_folder(&self) -> PathBuf {
        self.spill.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// Everything that a query is.
#[derive(Debug, Clone)]
pub struct QuerySpec {
    /// Its name: for people, for `swap`, and for the memory sink's table.
    pub name: Option<String>,
    /// The streams.
    pub streams: Vec<StreamSpec>,
    /// The static tables.
    pub tables: Vec<TableSpec>,
    /// The plugins.
    pub plugins: Vec<PluginSpec>,
    /// What it computes.
    pub query: Query,
    /// Which rows go out.
    pub mode: OutputMode,
    /// When batches start.
    pub trigger: Trigger,
    /// Where the rows go.
    pub sink: SinkSpec,
    /// The checkpoint's folder or URL; without one the checkpoint lives in a temporary folder that goes with the run.
    pub checkpoint: Option<String>,
    /// Options of the checkpoint's object store (credentials, endpoints).
    pub checkpoint_options: Vec<(String, String)>,
    /// The settings.
    pub settings: Settings,
    /// Other uids for stateful operators.
    pub uids: BTreeMap<String, String>,
    /// What its state may take.
    pub state: StateLimits,
    /// Where late rows go, instead of nowhere: `operator STRING, row STRING` (the row as JSON). Beyond Spark.
    pub late_rows: Option<SinkSpec>,
}

impl QuerySpec {
    /// A query with what every one has, and the defaults of the rest: no name, no tables, no plugins, append mode, one
    /// batch after the other, a checkpoint that goes with the run, no limit on its state.
    pub fn new(query: impl Into<Query>, streams: Vec<StreamSpec>, sink: SinkSpec) -> Self {
        Self {
            name: None,
            streams,
            tables: Vec::new(),
            plugins: Vec::new(),
            query: query.into(),
            mode: OutputMode::Append,
            trigger: Trigger::Default,
            sink,
            checkpoint: None,
            checkpoint_options: Vec::new(),
            settings: Settings::default(),
            uids: BTreeMap::new(),
            state: StateLimits::default(),
            late_rows: None,
        }
    }
}
