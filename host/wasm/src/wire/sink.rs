//! Interfaces `sink` and `sink-transaction`: rows on their way out of the host.

use wasmtime::component::{ComponentType, Lift, Lower};

use super::{BatchRef, Field, RowError, SINK, SINK_TRANSACTION};
use crate::export::{answers, export};

wasmtime::component::flags! {
    SinkModes {
        #[component(name = "append")]
        const APPEND;
        #[component(name = "update")]
        const UPDATE;
        #[component(name = "complete")]
        const COMPLETE;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum SinkMode {
    #[component(name = "append")]
    Append,
    #[component(name = "update")]
    Update,
    #[component(name = "complete")]
    Complete,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct SinkOption {
    pub(crate) name: String,
    pub(crate) required: bool,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct SinkType {
    pub(crate) name: String,
    pub(crate) columns: Vec<Field>,
    pub(crate) modes: SinkModes,
    pub(crate) options: Vec<SinkOption>,
}

/// What is written, on its way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct TargetRef<'a> {
    #[component(name = "query-id")]
    pub(crate) query_id: &'a str,
    pub(crate) partition: u32,
    pub(crate) batch: u64,
    pub(crate) options: &'a [(&'a str, &'a str)],
}

/// One node of a schema on its way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct FieldRef<'a> {
    pub(crate) name: &'a str,
    pub(crate) format: &'a str,
    pub(crate) nullable: bool,
    pub(crate) children: u32,
}

export! {
    /// `sink.describe`: what sinks there are.
    DescribeSinks = SINK, "describe", () -> Vec<SinkType>;
}

answers! {
    /// `sink.open`: sink number, what is written, output mode, columns.
    Open = SINK, "open", (u32, TargetRef<'a>, SinkMode, &'a [FieldRef<'a>]) -> bool;
    /// `sink.process`: rows.
    ProcessRows = SINK, "process", (BatchRef<'a>) -> Vec<RowError>;
    /// `sink.close`: what went wrong, if something did.
    Close = SINK, "close", (Option<&'a str>) -> ();
    /// `sink-transaction.prepare`.
    Prepare = SINK_TRANSACTION, "prepare", () -> Vec<u8>;
    /// `sink-transaction.commit`: sink number, what is written, the token.
    Commit = SINK_TRANSACTION, "commit", (u32, TargetRef<'a>, &'a [u8]) -> ();
    /// `sink-transaction.abort`: sink number, what is written, the token.
    Abort = SINK_TRANSACTION, "abort", (u32, TargetRef<'a>, &'a [u8]) -> ();
}
