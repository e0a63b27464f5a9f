//! What an operator knows of the batch it works in.

use millstream_common::{BatchId, Watermarks};

/// The facts of one batch. All of them come from the offset log, so a replayed batch has the same.
#[derive(Debug, Clone, Copy)]
pub struct BatchContext {
    /// The batch.
    pub batch: BatchId,
    /// The time that `current_timestamp` answers, in milliseconds.
    pub batch_time_ms: i64,
    /// The late and the eviction watermark: for a pipeline the query's, `None` for a query without watermark; for an
    /// operator those of its input, `None` when no watermark stands below it.
    pub watermarks: Option<Watermarks>,
}
