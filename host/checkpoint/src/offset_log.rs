//! The offset log: what each batch is, written before the batch begins.
//!
//! After the sources said what is new, before the operators run. With the entry the batch is defined: a run that
//! repeats it, on the same day or after a crash, takes everything from here.
//!
//! Rule of its life: entry N is written once, after commit N-1. It is the authority on code, settings and schemas
//! of its batch.
//!
//! It does not understand offsets: they are JSON that only their source reads.

use crate::batch_log::{BatchEntry, BatchLog};
use crate::document::DocumentKind;
use crate::{CanaryPin, CheckpointError, StateSchemas, json_lines};
use millstream_common::{BatchId, Digest, DurableFiles, OutputMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one batch reads from one source: (start, end].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetRange {
    /// What batches before have read; `None` at the beginning of the source.
    pub start: Option<serde_json::Value>,
    /// What this batch reads up to; `None` when the source has nothing yet.
    pub end: Option<serde_json::Value>,
}

/// The exact code behind the name of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginPin {
    /// The component that runs.
    pub digest: Digest,
    /// The component that the query names: another one after a swap. A restart goes on with `digest` as long as the
    /// query still names this one.
    pub declared: Digest,
    /// Name and version of the world that it speaks.
    pub wit: String,
    /// A digest of its configuration.
    pub config_hash: String,
    /// The canary that computes a slice of the keys in place of `digest`, while there is one. Since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryPin>,
}

/// The schema of one stateful operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatePin {
    /// A digest of key and value schema.
    pub schema_id: String,
    /// The schema in words.
    pub schema_text: String,
    /// The number of partitions.
    pub partitions: u32,
    /// What the bytes mean, family by family: JSON that only the operators read. Null in an entry of version 1.
    #[serde(default)]
    pub families: serde_json::Value,
}

/// What a source is: with another one its offsets would mean something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectorPin {
    /// The name of the connector.
    pub format: String,
    /// Where the rows come from, if another place would give other offsets.
    pub place: Option<String>,
}

/// Why a batch is there that reads nothing and gives nothing: its state is that of the batch before it, spread over
/// another number of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepartitionPin {
    /// The number of partitions before it.
    pub from: u32,
    /// The number of partitions from it on.
    pub to: u32,
}

/// Why a batch is there that reads nothing and gives nothing: other code takes over from it on, and the state that it needs
/// was made of what was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BorderPin {
    /// What was done, in words.
    pub what: String,
    /// The batch whose state the old code went on from, when the batches since then were run again with it; `None` when the
    /// state of the batch before was migrated.
    pub restored: Option<BatchId>,
    /// The state after it, as its commit entry names it: made before it is defined.
    pub state: BTreeMap<String, Vec<serde_json::Value>>,
}

/// The definition of one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetEntry {
    /// The batch.
    pub batch: BatchId,
    /// What `current_timestamp` answers in it.
    pub batch_time_ms: i64,
    /// The watermark that it evicts with, and that the batch after it judges late rows by; `None` for a query
    /// without watermark.
    pub watermark_ms: Option<i64>,
    /// What it reads, per source.
    pub sources: BTreeMap<String, OffsetRange>,
    /// Settings that define the meaning of stored state: they win over those of a later run.
    pub settings: BTreeMap<String, String>,
    /// The code of its plugins.
    pub plugins: BTreeMap<String, PluginPin>,
    /// The schemas of its state, per operator.
    pub state_schemas: StateSchemas,
    /// The connector of each source; none in an entry of version 1.
    #[serde(default)]
    pub connectors: BTreeMap<String, ConnectorPin>,
    /// Which rows it gives out; `None` in an entry of version 1.
    #[serde(default)]
    pub output_mode: Option<OutputMode>,
    /// That it only spreads the state anew; `None` for every other batch.
    #[serde(default)]
    pub repartition: Option<RepartitionPin>,
    /// That it only makes the state of other code; `None` for every other batch, and in an entry before version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border: Option<BorderPin>,
}

impl OffsetEntry {
    /// The components that it names: those that run, and a canary's candidate.
    pub fn components(&self) -> impl Iterator<Item = Digest> {
        let candidate = |pin: &PluginPin| pin.canary.as_ref().map(|canary| canary.candidate);
        self.plugins.values().flat_map(move |pin| [Some(pin.digest), candidate(pin)]).flatten()
    }

    /// Whether it reads nothing and reaches no sink: it only makes state anew.
    pub fn is_of_state_only(&self) -> bool {
        self.repartition.is_some() || self.border.is_some()
    }
}

impl BatchEntry for OffsetEntry {
    const FOLDER: &'static str = "offsets";
    const KIND: DocumentKind = DocumentKind { word: "offset-log", version: 3, oldest: 1 };
    fn batch(&self) -> BatchId {
        self.batch
    }

    fn json(&self) -> Result<Vec<u8>, serde_json::Error> {
        // Taken apart, so that a field that is added cannot be forgotten here.
        let Self {
            batch,
            batch_time_ms,
            watermark_ms,
            sources,
            settings,
            plugins,
            state_schemas,
            connectors,
            output_mode,
            repartition,
            border,
        } = self;
        let changing = Changing {
            batch: *batch,
            batch_time_ms: *batch_time_ms,
            watermark_ms: *watermark_ms,
            sources,
            settings,
            plugins,
            connectors,
            output_mode: *output_mode,
            repartition: *repartition,
            border: border.as_ref(),
        };
        let mut json = json_lines::to_vec(&changing, 0)?;
        // The schemas are the same for the whole run, so their text is there already: it is put in before the last brace.
        let schemas = state_schemas.json()?;
        json.truncate(json.len() - END.len());
        json.reserve(SCHEMAS.len() + schemas.len() + END.len());
        for part in [SCHEMAS, schemas, END] {
            json.extend_from_slice(part);
        }
        Ok(json)
    }
}

const SCHEMAS: &[u8] = b",\n  \"state_schemas\": ";
const END: &[u8] = b"\n}";

/// All of an entry but the schemas of its state.
#[derive(Serialize)]
struct Changing<'a> {
    batch: BatchId,
    batch_time_ms: i64,
    watermark_ms: Option<i64>,
    sources: &'a BTreeMap<String, OffsetRange>,
    settings: &'a BTreeMap<String, String>,
    plugins: &'a BTreeMap<String, PluginPin>,
    connectors: &'a BTreeMap<String, ConnectorPin>,
    output_mode: Option<OutputMode>,
    repartition: Option<RepartitionPin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    border: Option<&'a BorderPin>,
}

/// The folder `offsets`.
#[derive(Debug, Clone)]
pub struct OffsetLog(BatchLog<OffsetEntry>);

impl OffsetLog {
    /// The offset log of a checkpoint.
    pub fn new(files: Arc<dyn DurableFiles>) -> Self {
        Self(BatchLog::new(files))
    }

    /// Defines a batch.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`] when another process has defined it; the files' own errors.
    pub fn add(&self, entry: &OffsetEntry) -> Result<(), CheckpointError> {
        self.0.add(entry)
    }

    /// The entry of a batch; `None` when there is none.
    ///
    /// # Errors
    /// When the file is torn, foreign, of another release or of another batch.
    pub fn get(&self, batch: BatchId) -> Result<Option<OffsetEntry>, CheckpointError> {
        self.0.get(batch)
    }

    /// The batches that have an entry, ascending.
    ///
    /// # Errors
    /// When the folder cannot be listed or holds a file that is no entry.
    pub fn batches(&self) -> Result<Vec<BatchId>, CheckpointError> {
        self.0.batches()
    }

    pub(crate) fn purge(&self, before: BatchId) -> Result<usize, CheckpointError> {
        self.0.purge(before)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, CheckpointError> {
        self.0.names()
    }
}
