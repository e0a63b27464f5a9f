//! The contract of an operator.

use crate::late::LateRows;
use crate::{BatchContext, OperatorError, Partitions, StateFamily};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{OperatorUid, OutputMode, Watermark};
use millstream_state::{StateError, StateManifest, StateStore};

/// One step of a query.
///
/// The life of a batch: any number of `push` on its ports, then one `barrier`. Rows may come out at either.
/// After an error the pipeline calls nothing more in this batch but `abort` and [`Stateful::abort`].
pub trait Operator: Send {
    /// The columns of every batch that comes out.
    fn schema(&self) -> &SchemaRef;

    /// One line for `explain`: kind and expressions.
    fn describe(&self) -> String;

    /// Takes rows on input `port` (numbered from 0 as in [`Node`](crate::Node)); appends rows that can go on to `out`.
    ///
    /// # Errors
    /// When an expression, a plugin or the state store fails.
    fn push(
        &mut self,
        port: usize,
        rows: &RecordBatch,
        context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError>;

    /// The border of the batch: every input has been pushed. Operators that gather rows emit here.
    ///
    /// # Errors
    /// As `push`.
    fn barrier(&mut self, context: &BatchContext, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let _ = (context, out);
        Ok(())
    }

    /// Forgets rows that were gathered and event times that were seen: the batch failed and will be run again.
    /// Changes of state are forgotten by [`Stateful::abort`], which is called as well.
    fn abort(&mut self) {}

    /// The operator's state, if it keeps any.
    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        None
    }

    /// The watermark of the rows that come out: a promise that none of them is older.
    ///
    /// `input` is the least one of the operator's inputs, `None` when no watermark stands below it; `global` is the
    /// query's. What keeps rows back until later must answer less than its input. A pure function: it is asked for
    /// watermarks of the past and of the future too. Source of the semantics: Spark's `PropagateWatermarkSimulator`
    /// and `StateStoreWriter.produceOutputWatermark`.
    fn output_watermark(&self, input: Option<Watermark>, global: Watermark) -> Option<Watermark> {
        let _ = global;
        input
    }

    /// Whether it judges rows on behalf of the operator above it, by that one's watermarks.
    fn judges_for_above(&self) -> bool {
        false
    }

    /// The late rows that were taken out of this batch; taking them forgets them.
    fn take_late_rows(&mut self) -> Option<LateRows> {
        None
    }

    /// What a watermark operator saw in this batch; taking it forgets it.
    fn take_event_time(&mut self) -> Option<EventTimeSeen> {
        None
    }
}

/// What one watermark operator saw in one batch.
#[derive(Debug, Clone, PartialEq)]
pub struct EventTimeSeen {
    /// The watermark operator, by the name of its stream.
    pub node: String,
    /// Its delay in microseconds.
    pub delay_us: i64,
    /// Rows with an event time.
    pub rows: u64,
    /// Least, greatest event time in microseconds and the sum of all (for the average); `None` without rows.
    pub range_us: Option<(i64, i64, i128)>,
    /// The greatest event time that moves the watermark: that of the rows that are not too far in the future.
    pub advance_us: Option<i64>,
    /// Rows that are too far in the future to move the watermark.
    pub rows_ahead: u64,
}

/// Opens the stores of operators: the runtime knows the folders and the files.
pub trait StateOpener {
    /// Opens the store of one partition at exactly the version that `manifest` names.
    ///
    /// # Errors
    /// When the files are not there, whole and right.
    fn open(
        &self,
        uid: &OperatorUid,
        partition: u32,
        manifest: &StateManifest,
    ) -> Result<Box<dyn StateStore>, StateError>;
}

/// The counters of one stateful operator in one batch (Spark's `StateOperatorProgress`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorMetrics {
    /// Spark's name for the operator: `stateStoreSave`, `dedupe`, `globalLimit`, …
    pub operator_name: String,
    /// Keys after the batch.
    pub rows_total: u64,
    /// Keys written in the batch.
    pub rows_updated: u64,
    /// Keys removed in the batch.
    pub rows_removed: u64,
    /// Rows dropped as late (after partial aggregation, as Spark counts).
    pub rows_dropped_by_watermark: u64,
    /// Rows dropped as duplicates; `None` for operators that look for none.
    pub rows_dropped_as_duplicates: Option<u64>,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Keys whose rows are not in memory, because the memory limit of the state leaves no room for them.
    pub spilled_keys: u64,
    /// Bytes of the files that hold those rows.
    pub spilled_bytes: u64,
    /// Milliseconds spent on updates.
    pub updates_ms: u64,
    /// Milliseconds spent on removals.
    pub removals_ms: u64,
    /// Milliseconds spent on making the version durable.
    pub commit_ms: u64,
}

/// The state side of an operator.
///
/// An operator says what it has: its stores, what lies in them, what it counted. Opening, preparing, committing and
/// forgetting follow from that and are the same for all.
pub trait Stateful {
    /// The stores.
    fn state(&self) -> &Partitions;

    /// The stores, to be changed.
    fn state_mut(&mut self) -> &mut Partitions;

    /// What the bytes of the stores mean, family by family: stored with each batch, so that state can be read and
    /// moved between partitions without the query.
    fn families(&self) -> Vec<StateFamily>;

    /// The schema in words, for messages and `checkpoint show`: `key: word utf8 | value: count int64`.
    fn schema_text(&self) -> String;

    /// Whether a batch without new rows would change the result, now that the watermark of the operator's input
    /// moved from `old` to `new`.
    fn wants_no_data_batch(&self, old: Watermark, new: Watermark) -> bool;

    /// Whether a batch without new rows would change the result at that time, in milliseconds: something is due by the
    /// clock. Asked between two batches.
    ///
    /// # Errors
    /// When the stores cannot be read.
    fn is_due(&self, now_ms: i64) -> Result<bool, StateError> {
        let _ = now_ms;
        Ok(false)
    }

    /// What the operator counted in the batch: all but the totals, which the stores know.
    fn counters(&self) -> &OperatorMetrics;

    /// Whether rows of state that the watermark has passed are dropped in that output mode. A query that goes on in a
    /// mode that needs them is refused.
    fn forgets_in(&self, mode: OutputMode) -> bool {
        let _ = mode;
        false
    }

    /// The rows of state as a person would count them, after the batch that was last prepared: the keys of all families,
    /// unless some of them only help to find others.
    fn rows_total(&self) -> u64 {
        self.state().totals().keys
    }

    /// The operator's stable name.
    fn uid(&self) -> &OperatorUid {
        self.state().uid()
    }

    /// The digest of key and value schema: stored with each batch; a change is refused.
    fn schema_id(&self) -> String {
        self.state().schema_id().to_owned()
    }

    /// How many partitions the state has.
    fn partitions(&self) -> u32 {
        self.state().count()
    }

    /// Opens all partitions, `manifests[p]` for partition `p`. Replaces stores that were open.
    ///
    /// # Errors
    /// When a store cannot be opened.
    fn open(&mut self, opener: &dyn StateOpener, manifests: &[StateManifest]) -> Result<(), StateError> {
        self.state_mut().open(opener, manifests)
    }

    /// Makes the batch's changes durable; answers the files of the new version per partition.
    ///
    /// # Errors
    /// When a changelog cannot be written.
    fn prepare(&mut self) -> Result<Vec<StateManifest>, StateError> {
        self.state_mut().prepare()
    }

    /// The commit log has the batch.
    fn commit(&mut self) {
        self.state_mut().commit();
    }

    /// Forgets the batch's changes; [`Operator::abort`], which is called as well, forgets the rows.
    fn abort(&mut self) {
        self.state_mut().abort();
    }

    /// Deletes files that no retained batch names; `retained[p]` are the manifests of partition `p`.
    ///
    /// # Errors
    /// When files cannot be deleted.
    fn retain(&mut self, retained: &[Vec<&StateManifest>]) -> Result<(), StateError> {
        self.state_mut().retain(retained)
    }

    /// The counters of the batch that was last prepared.
    fn metrics(&self) -> OperatorMetrics {
        let totals = self.state().totals();
        OperatorMetrics {
            rows_total: self.rows_total(),
            memory_bytes: totals.memory_bytes,
            spilled_keys: totals.spilled_keys,
            spilled_bytes: totals.spilled_bytes,
            commit_ms: totals.commit_ms,
            ..self.counters().clone()
        }
    }
}
