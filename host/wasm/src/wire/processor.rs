//! Interface `processor`: code over keys, whose state and timers the host keeps.

use wasmtime::component::{ComponentType, Lift, Lower};

use super::{Batch, BatchRef, Field, PROCESSOR, RowError};
use crate::export::{answers, export};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum VariableKind {
    #[component(name = "value")]
    Value,
    #[component(name = "list")]
    List,
    #[component(name = "map")]
    Map,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: VariableKind,
    #[component(name = "map-key")]
    pub(crate) map_key: Vec<Field>,
    pub(crate) columns: Vec<Field>,
    #[component(name = "state-id")]
    pub(crate) state_id: String,
    #[component(name = "ttl-ms")]
    pub(crate) ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum TimeMode {
    #[component(name = "none")]
    None,
    #[component(name = "processing-time")]
    ProcessingTime,
    #[component(name = "event-time")]
    EventTime,
}

wasmtime::component::flags! {
    OutputModes {
        #[component(name = "append")]
        const APPEND;
        #[component(name = "update")]
        const UPDATE;
        #[component(name = "complete")]
        const COMPLETE;
    }
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ProcessorType {
    pub(crate) name: String,
    pub(crate) key: Vec<Field>,
    pub(crate) input: Vec<Field>,
    pub(crate) output: Vec<Field>,
    pub(crate) initial: Vec<Field>,
    pub(crate) variables: Vec<Variable>,
    #[component(name = "time-mode")]
    pub(crate) time_mode: TimeMode,
    #[component(name = "output-modes")]
    pub(crate) output_modes: OutputModes,
}

/// Rows of a variable on their way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct EntriesRef<'a> {
    #[component(name = "key-of-entry")]
    pub(crate) key_of_entry: &'a [u8],
    #[component(name = "map-keys")]
    pub(crate) map_keys: BatchRef<'a>,
    pub(crate) columns: BatchRef<'a>,
}

/// Timers on their way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct TimersRef<'a> {
    #[component(name = "key-of-timer")]
    pub(crate) key_of_timer: &'a [u8],
    #[component(name = "due-ms")]
    pub(crate) due_ms: &'a [u8],
}

/// A call's keys on their way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct InvocationRef<'a> {
    pub(crate) keys: BatchRef<'a>,
    #[component(name = "key-of-row")]
    pub(crate) key_of_row: &'a [u8],
    pub(crate) rows: BatchRef<'a>,
    pub(crate) state: &'a [EntriesRef<'a>],
    pub(crate) timers: TimersRef<'a>,
    #[component(name = "batch-time-ms")]
    pub(crate) batch_time_ms: i64,
    #[component(name = "watermark-ms")]
    pub(crate) watermark_ms: Option<i64>,
}

/// Rows of a variable as a guest gave them.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Entries {
    #[component(name = "key-of-entry")]
    pub(crate) key_of_entry: Vec<u8>,
    #[component(name = "map-keys")]
    pub(crate) map_keys: Batch,
    pub(crate) columns: Batch,
}

/// Timers as a guest gave them.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Timers {
    #[component(name = "key-of-timer")]
    pub(crate) key_of_timer: Vec<u8>,
    #[component(name = "due-ms")]
    pub(crate) due_ms: Vec<u8>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct VariableChanges {
    pub(crate) cleared: Vec<u8>,
    #[component(name = "key-of-removed")]
    pub(crate) key_of_removed: Vec<u8>,
    pub(crate) removed: Batch,
    pub(crate) put: Entries,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Outcome {
    pub(crate) rows: Batch,
    #[component(name = "key-of-row")]
    pub(crate) key_of_row: Vec<u8>,
    pub(crate) changes: Vec<VariableChanges>,
    #[component(name = "deleted-timers")]
    pub(crate) deleted_timers: Timers,
    #[component(name = "registered-timers")]
    pub(crate) registered_timers: Timers,
    #[component(name = "key-errors")]
    pub(crate) key_errors: Vec<RowError>,
}

export! {
    /// `processor.describe`: what processors there are.
    DescribeProcessors = PROCESSOR, "describe", () -> Vec<ProcessorType>;
}

answers! {
    /// `processor.process`: processor number, the call.
    Process = PROCESSOR, "process", (u32, InvocationRef<'a>) -> Outcome;
    /// `processor.expire`: processor number, the call, the timers that are due.
    Expire = PROCESSOR, "expire", (u32, InvocationRef<'a>, TimersRef<'a>) -> Outcome;
    /// `processor.initialise`: processor number, the call.
    Initialise = PROCESSOR, "initialise", (u32, InvocationRef<'a>) -> Outcome;
}
