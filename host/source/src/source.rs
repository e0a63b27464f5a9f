//! The contract of a source.

use crate::{Offset, SourceError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{Clock, DurableFiles, Options, ReadLimit, StopSignal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a user says about a source, before it is opened.
#[derive(Debug, Clone)]
pub struct SourceSpec {
    /// The name of the stream in the query: the identity of the source in logs and folders.
    pub name: String,
    /// The connector: `file`, `json`, `csv`, `text`, `parquet`, `socket`, `rate`, …
    pub format: String,
    /// The schema that the user declared; connectors with a schema of their own refuse one.
    pub schema: Option<SchemaRef>,
    /// The options, with Spark's names.
    pub options: Options,
}

/// What a source may use of the host.
#[derive(Debug, Clone)]
pub struct SourceContext {
    /// The folder `sources/<name>` of the query's checkpoint, for logs of the source's own.
    pub files: Arc<dyn DurableFiles>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Set when the query is to stop: long waits and reads end early with what they have.
    pub stop: StopSignal,
    /// How many partitions to read in parallel where the user did not say.
    pub default_parallelism: usize,
}

/// What the operator of a host and the settings of a query say to all sources.
#[derive(Clone)]
pub struct SourceSettings {
    /// Credentials, region and the like for object stores.
    pub object_store: Vec<(String, String)>,
    /// Whether columns are found by looking at the data where none are declared.
    pub schema_inference: bool,
    /// How many batches may be read again.
    pub batches_retained: u64,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self { object_store: Vec::new(), schema_inference: false, batches_retained: 100 }
    }
}

impl std::fmt::Debug for SourceSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values may be secrets.
        let names: Vec<&str> = self.object_store.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SourceSettings")
            .field("object_store", &names)
            .field("schema_inference", &self.schema_inference)
            .field("batches_retained", &self.batches_retained)
            .finish()
    }
}

/// Input that a source passed over because it is bad, to be looked at by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it is: a file, a partition and offset.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Is told what became of offsets that were to be committed.
pub type CommitCallback = Box<dyn FnOnce(Result<(), Arc<SourceError>>) + Send>;

/// An input that can be read again.
///
/// The runtime calls, in this order and from one thread: `latest_offset` → (range is logged) →
/// `read(start, end)` → … → `release(end)` once a later range is logged. After a restart it calls
/// `read` with a logged range before anything else, if that batch was not committed.
pub trait Source: Send {
    /// The columns of every batch that `read` returns. All nullable, as in Spark.
    fn schema(&self) -> SchemaRef;

    /// A line for people and for progress: connector and place, such as `FileStreamSource[file:/data/in]`.
    fn description(&self) -> String;

    /// Says that what its log names was elsewhere when the log was written, and is to be found at its own place now: in a
    /// copy of a checkpoint and its input. A source whose log names no places has nothing to do.
    fn was_at(&mut self, _place: &str) {}

    /// The limit that the user's options ask for (`maxFilesPerTrigger`, …).
    fn read_limit(&self) -> ReadLimit {
        ReadLimit::AllAvailable
    }

    /// The offset up to which a batch that begins after `start` should read; `start` is `None` before the
    /// first batch. Answers `start` (or `None`) when nothing is new. Must not block.
    ///
    /// # Errors
    /// When the place cannot be looked at.
    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError>;

    /// The newest offset there is, regardless of limits: for progress. `None` when not known.
    fn newest_offset(&mut self) -> Option<Offset> {
        None
    }

    /// Figures of the source's own for progress, of a batch that ended at `at`.
    fn metrics(&mut self, at: Option<&Offset>) -> BTreeMap<String, String> {
        let _ = at;
        BTreeMap::new()
    }

    /// The rows of (start, end], as a list of batches per input partition; the order of rows within a
    /// partition is kept. Called again with the same range it must return the same rows.
    ///
    /// `projection` names the columns that the query uses, by index into [`schema`](Self::schema), ascending;
    /// the batches hold exactly those. Connectors decode no others.
    ///
    /// # Errors
    /// When rows of the range are gone or cannot be decoded.
    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError>;

    /// What the last readings passed over and the user wants to be told of; the next call answers nothing of it. The same
    /// for a range that is read again.
    fn take_dead_letters(&mut self) -> Vec<DeadLetter> {
        Vec::new()
    }

    /// Whether it is only the word of foreign code that a range gives the same rows again: then a digest of what was read is
    /// kept, and compared when the range is read again.
    fn is_on_its_word(&self) -> bool {
        false
    }

    /// Everything up to `end` is committed: it may be forgotten (and cleaned, if the user asked for that).
    ///
    /// # Errors
    /// Only when forgetting must not fail silently; best effort work logs and goes on.
    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let _ = end;
        Ok(())
    }

    /// Where the first range begins, in the place of `None`, for a source that can tell. Decided once, like what
    /// [`latest_offset`](Self::latest_offset) begins at.
    ///
    /// # Errors
    /// When the place cannot be looked at.
    fn begin(&mut self) -> Result<Option<Offset>, SourceError> {
        Ok(None)
    }

    /// From now on no partition gives a batch more rows than that. Answers whether the source has partitions with offsets
    /// of their own.
    fn limit_partitions(&mut self, rows: u64) -> bool {
        let _ = rows;
        false
    }

    /// Writes offsets where other programs look for them, soon and beside the work, and tells `done`. Nothing is read by them.
    ///
    /// # Errors
    /// When the place has nothing of the kind, or the options do not say where.
    fn commit_offsets(&mut self, offsets: &Offset, done: CommitCallback) -> Result<(), SourceError> {
        let _ = (offsets, done);
        Err(SourceError::CannotCommit { place: self.description() })
    }

    /// Fixes what is available now: later calls of `latest_offset` never answer more (trigger available now).
    ///
    /// # Errors
    /// When the place cannot be looked at.
    fn prepare_available_now(&mut self) -> Result<(), SourceError>;

    /// The checkpoint goes with this run, and nobody comes back: what the source keeps elsewhere for the next run goes, too.
    /// Best effort, called before [`stop`](Self::stop).
    fn abandon(&mut self) {}

    /// Ends threads and connections. Idempotent.
    fn stop(&mut self) {}
}
