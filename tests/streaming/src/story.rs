//! What a story is.

use arrow::datatypes::SchemaRef;
use millstream_common::OutputMode;
use millstream_plan::{DropDuplicates, EventTime};
use millstream_wasm::FaultPolicy;
use std::time::Duration;

/// A story, read from its file.
#[derive(Debug, Clone)]
pub struct Story {
    /// The file's name without its ending.
    pub name: String,
    /// The streams.
    pub sources: Vec<SourceDeclaration>,
    /// The plugins.
    pub plugins: Vec<PluginDeclaration>,
    /// Settings other than the defaults.
    pub settings: Vec<(String, String)>,
    /// The query.
    pub sql: String,
    /// Its output mode.
    pub mode: OutputMode,
    /// Whether the order of the rows in a batch matters.
    pub ordered: bool,
    /// Why it is only played straight, if so: a restart may change what Spark gives.
    pub straight_only: Option<String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// A memory stream of a story.
#[derive(Debug, Clone)]
pub struct SourceDeclaration {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its watermark.
    pub event_time: Option<EventTime>,
    /// Which duplicates it drops, if any.
    pub drop_duplicates: Option<DropDuplicates>,
}

/// A plugin of a story.
#[derive(Debug, Clone)]
pub struct PluginDeclaration {
    /// The component's name, see [`crate::component`].
    pub component: String,
    /// What happens to rows that it fails at.
    pub on_fault: FaultPolicy,
    /// How long a call may take, if not the default.
    pub deadline: Option<Duration>,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its line in the file, from 1.
    pub line: usize,
    /// As it stands there.
    pub text: String,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// A unit of rows arrives in a stream.
    Add {
        /// The stream.
        stream: String,
        /// The rows, values as text; `None` is null.
        rows: Vec<Vec<Option<String>>>,
    },
    /// A batch runs and gives these rows.
    Batch {
        /// Whether it reads new rows.
        with_data: bool,
        /// The rows that the sink must get.
        rows: Vec<String>,
    },
    /// A batch runs and fails with an error that says this.
    Failure(String),
    /// There is nothing to do.
    Idle,
    /// The query stops and starts again.
    Restart,
    /// A counter of the last batch has this value.
    Counter {
        /// `watermark`, `late_rows`, `state_rows`, `input_rows`, `faults`, `dead_letters`.
        name: String,
        /// The value as text.
        value: String,
    },
}
