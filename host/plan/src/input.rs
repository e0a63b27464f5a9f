//! What a query consists of, before it is planned.

use crate::frame::Frame;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, TableProvider};
use millstream_common::{OutputMode, SqlSettings};
use millstream_operators::{LateRowsPolicy, SegmentSlot};
use millstream_wasm::PluginSlot;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The event time of a stream (Spark's `withWatermark`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTime {
    /// The column, of type TIMESTAMP.
    pub column: String,
    /// How long late rows are waited for, in microseconds, at least 0.
    pub delay_us: i64,
}

/// Duplicates of a stream that are dropped before the query sees them (Spark's `dropDuplicates`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropDuplicates {
    /// The columns that make the key; none means all.
    pub columns: Vec<String>,
    /// Spark's `dropDuplicatesWithinWatermark`: a key is forgotten when the watermark reaches the event time of its first
    /// row plus the delay.
    pub within_watermark: bool,
}

/// A stream that the query may name.
#[derive(Debug, Clone)]
pub struct StreamInput {
    /// Its name in SQL.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its event time, if it has one.
    pub event_time: Option<EventTime>,
    /// Which duplicates are dropped, if any; after the watermark has seen them.
    pub drop_duplicates: Option<DropDuplicates>,
}

/// A table that is no stream.
#[derive(Debug, Clone)]
pub struct StaticTable {
    /// Its name in SQL.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows when it was planned.
    pub rows: Vec<RecordBatch>,
    /// Where its rows of now are, when they may change between batches.
    pub live: Option<Arc<SegmentSlot>>,
}

impl StaticTable {
    /// What hands its rows out.
    pub(crate) fn provider(&self) -> datafusion::error::Result<Arc<dyn TableProvider>> {
        if let Some(live) = &self.live {
            live.fill(self.rows.clone());
            return Ok(Arc::clone(live) as _);
        }
        let rows = if self.rows.is_empty() { vec![vec![]] } else { vec![self.rows.clone()] };
        Ok(Arc::new(MemTable::try_new(Arc::clone(&self.schema), rows)?))
    }
}

/// The settings that a plan depends on. `sql` and `partitions` are frozen with the state.
#[derive(Debug, Clone)]
pub struct PlanSettings {
    /// What expressions depend on.
    pub sql: SqlSettings,
    /// How many partitions state has.
    pub partitions: u32,
    /// Other uids for stateful operators, by the uid that they would have: keeps state when a name changes.
    pub uids: BTreeMap<String, String>,
    /// What Spark does not have.
    pub beyond: BeyondSpark,
}

/// What a query may do with event time that Spark does not; off unless asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct BeyondSpark {
    /// How far ahead of the clock an event time may be to move the watermark, in microseconds.
    pub max_ahead_us: Option<i64>,
    /// Late rows are taken out in front of each operator that would drop them, and counted one by one.
    pub late_rows: Option<LateRowsPolicy>,
}

/// What a query computes.
#[derive(Debug, Clone)]
pub enum Query {
    /// One SELECT in Spark's SQL, over the streams and tables by their names.
    Sql(String),
    /// A tree of operations.
    Frame(Frame),
}

impl From<&str> for Query {
    fn from(sql: &str) -> Self {
        Self::Sql(sql.to_owned())
    }
}

impl From<String> for Query {
    fn from(sql: String) -> Self {
        Self::Sql(sql)
    }
}

impl From<Frame> for Query {
    fn from(frame: Frame) -> Self {
        Self::Frame(frame)
    }
}

/// Everything that makes a query.
pub struct QueryInput {
    /// The streams.
    pub streams: Vec<StreamInput>,
    /// The static tables.
    pub tables: Vec<StaticTable>,
    /// The plugins; their functions are called by their names in SQL.
    pub plugins: Vec<Arc<PluginSlot>>,
    /// What it computes.
    pub query: Query,
    /// Which rows go out.
    pub mode: OutputMode,
    /// The settings.
    pub settings: PlanSettings,
}
