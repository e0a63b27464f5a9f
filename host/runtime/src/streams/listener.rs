//! What happens to the queries of a session, for those who want to know (Spark's `StreamingQueryListener`).

use crate::Progress;
use millstream_common::{Fault, QueryId, RunId};

/// A query has started; told before `start` returns.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryStartedEvent {
    /// The query.
    pub id: QueryId,
    /// This run.
    pub run_id: RunId,
    /// The query's name, if it has one.
    pub name: Option<String>,
    /// When, ISO-8601 in UTC with milliseconds.
    pub timestamp: String,
}

/// A batch is in the commit log.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryProgressEvent {
    /// What it did.
    pub progress: Progress,
}

/// A query waits for new rows: told at most once per `spark.sql.streaming.noDataProgressEventInterval`.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryIdleEvent {
    /// The query.
    pub id: QueryId,
    /// This run.
    pub run_id: RunId,
    /// When, ISO-8601 in UTC with milliseconds.
    pub timestamp: String,
}

/// A run has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerminatedEvent {
    /// The query.
    pub id: QueryId,
    /// The run.
    pub run_id: RunId,
    /// Why it failed, with all causes; `None` when it was stopped or done.
    pub exception: Option<String>,
    /// Whose turn it is, when it failed.
    pub fault: Option<Fault>,
}

/// Hears of the queries of a session. Each method does nothing unless it is written.
///
/// `on_query_started` is called on the thread that starts the query, before `start` returns; all others on one thread of
/// the session, in order, after the fact: a slow listener delays other listeners, never a query. A listener that panics
/// is heard of in the log and goes on being called. Source of the semantics: Spark's `StreamingQueryListenerBus`.
pub trait StreamingQueryListener: Send + Sync {
    /// A query has started.
    fn on_query_started(&self, event: &QueryStartedEvent) {
        let _ = event;
    }

    /// A batch is in the commit log.
    fn on_query_progress(&self, event: &QueryProgressEvent) {
        let _ = event;
    }

    /// A query waits for new rows.
    fn on_query_idle(&self, event: &QueryIdleEvent) {
        let _ = event;
    }

    /// A run has ended.
    fn on_query_terminated(&self, event: &QueryTerminatedEvent) {
        let _ = event;
    }
}
