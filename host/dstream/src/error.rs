//! What can go wrong with a streaming program.
//!
//! Three kinds: a [`Refusal`] says what a program may not do, a [`JobError`] is the failure of a batch's work in the
//! program's own code, and [`DStreamError`] has both and the failures of the parts below.

use crate::Time;
use millstream_checkpoint::CheckpointError;
use millstream_common::{DurableError, Fault, Hint, Panicked};
use millstream_source::SourceError;
use millstream_state::StateError;
use std::sync::Arc;

/// What a program may not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The batch interval is not a whole number of milliseconds above zero.
    #[error("the batch interval cannot be {interval_ms} ms")]
    Interval {
        /// What was asked for.
        interval_ms: i64,
    },
    /// An input, an operation or an output comes too late.
    #[error("cannot add {what}: the context has been started")]
    AfterStart {
        /// What was to be added.
        what: &'static str,
    },
    /// An input, an operation or an output comes too late.
    #[error("cannot add {what}: the context has been stopped")]
    AfterStop {
        /// What was to be added.
        what: &'static str,
    },
    /// A context runs once.
    #[error("cannot start the context: it has been stopped")]
    Restart,
    /// A context runs once.
    #[error("cannot start the context: it is running")]
    Started,
    /// Another context of this process runs.
    #[error("cannot start the context: another one is running in this process")]
    OtherActive,
    /// Nothing would ever run.
    #[error("cannot start the context: no output operation is registered")]
    NoOutput,
    /// An operation needs durable state.
    #[error("`{operation}` needs a checkpoint")]
    NoCheckpoint {
        /// The operation.
        operation: &'static str,
    },
    /// A queue cannot be read again after a restart.
    #[error("a queue stream cannot be in a program with a checkpoint")]
    QueueWithCheckpoint,
    /// A window does not fit the stream.
    #[error("the {what} of `{operation}`, {found_ms} ms, is no multiple of the {of_ms} ms of the stream")]
    NotMultiple {
        /// The operation.
        operation: &'static str,
        /// `window length` or `slide`.
        what: &'static str,
        /// What was asked for.
        found_ms: i64,
        /// The slide of the stream that it is on.
        of_ms: i64,
    },
    /// Streams of other slides cannot be combined.
    #[error("`{operation}` cannot combine streams with slides of {one_ms} ms and {other_ms} ms")]
    Slides {
        /// The operation.
        operation: &'static str,
        /// The slide of one.
        one_ms: i64,
        /// The slide of another.
        other_ms: i64,
    },
    /// Streams of two contexts cannot be combined.
    #[error("`{operation}` cannot combine streams of two contexts")]
    Contexts {
        /// The operation.
        operation: &'static str,
    },
    /// There must be a stream.
    #[error("`{operation}` needs one stream at least")]
    NoStreams {
        /// The operation.
        operation: &'static str,
    },
    /// Two things have one name.
    #[error("two {what} are called `{name}`")]
    SameName {
        /// `inputs` or `operations with state`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The name cannot be one.
    #[error("`{name}` cannot be the name of {what}")]
    Name {
        /// `an input` or `an operation with state`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// There is no state to name.
    #[error("cannot name `{name}`: no operation before it has state of its own")]
    NothingToName {
        /// The name.
        name: String,
    },
    /// Offsets of an input cannot be committed.
    #[error("offsets of input `{input}` cannot be committed: it is no direct stream")]
    NoGroups {
        /// The input.
        input: String,
    },
    /// Offsets of a stream that is no input cannot be committed.
    #[error("only what `direct_stream` gives can commit offsets, not what is made of it")]
    NotDirect,
    /// A setting does not fit.
    #[error("setting `{setting}` cannot be `{value}`: {reason}")]
    Setting {
        /// The setting.
        setting: String,
        /// What was given.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// The streams must live at least that long.
    #[error("rows cannot be remembered for {remember_ms} ms: that is less than the batch interval of {interval_ms} ms")]
    Remember {
        /// What was asked for.
        remember_ms: i64,
        /// The batch interval.
        interval_ms: i64,
    },
}

impl Hint for Refusal {
    fn fault(&self) -> Fault {
        Fault::Query
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Interval { .. } => "give a duration of one millisecond or more",
            Self::AfterStart { .. } => "set the program up before `start`",
            Self::AfterStop { .. } | Self::Restart => "make a new context",
            Self::Started => "start it once",
            Self::OtherActive => "stop the other one first, or use `get_active_or_create`",
            Self::NoOutput => "add `print`, `foreach_rdd` or another output operation",
            Self::NoCheckpoint { .. } => "name a folder with `checkpoint`",
            Self::QueueWithCheckpoint => "use an input that can be read again, or leave the checkpoint out",
            Self::NotMultiple { .. } => "choose a multiple",
            Self::Slides { .. } => "give both the same slide with `window`",
            Self::SameName { .. } | Self::Name { .. } => {
                "use letters, digits, `-` and `_`, at most 100 of them, and each name once"
            }
            Self::NothingToName { .. } => "call `named` on what an operation with state gives",
            Self::Remember { .. } => "remember for one batch interval at least",
            Self::NotDirect => "call `can_commit_offsets` on the stream that `direct_stream` gave",
            Self::NoGroups { .. } => "read from Kafka with `direct_stream(\"kafka\", …)`",
            Self::Contexts { .. } | Self::NoStreams { .. } | Self::Setting { .. } => return None,
        };
        Some(text.to_owned())
    }
}

/// The work of a batch failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A function of the program panicked.
    #[error("a function of the program panicked: {message}")]
    Panicked {
        /// Its last words.
        message: String,
    },
    /// A function of the program, a plugin or a write failed.
    #[error("a function of the program failed")]
    Failed {
        /// How.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl JobError {
    /// The failure of a function of the program.
    pub fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed { source: Arc::from(source.into()) }
    }
}

/// A streaming program failed or was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DStreamError {
    /// The program does what it may not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The checkpoint failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// State failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A batch failed in the program's own code.
    #[error("batch {time} failed in {place}")]
    Job {
        /// The batch.
        time: Time,
        /// The output operation, or the operation with state.
        place: String,
        /// How.
        #[source]
        source: JobError,
    },
    /// The rows of a received input could not be kept or read back.
    #[error("cannot keep the rows that input `{input}` received")]
    Received {
        /// The input.
        input: String,
        /// How.
        #[source]
        source: DurableError,
    },
    /// The rows of a received input are not what was written.
    #[error("the rows that input `{input}` received for batch {time} are damaged: {reason}")]
    ReceivedDamaged {
        /// The input.
        input: String,
        /// The batch.
        time: Time,
        /// What is wrong.
        reason: String,
    },
    /// A value has no bytes.
    #[error("{what} cannot be stored: {reason}")]
    Encode {
        /// What it is.
        what: String,
        /// Why.
        reason: String,
    },
    /// Bytes are no value of that type.
    #[error("{what} cannot be read back: {reason}")]
    Decode {
        /// What it is.
        what: String,
        /// Why.
        reason: String,
    },
    /// There is a checkpoint, and the program did not ask to go on with it.
    #[error("there is a checkpoint in `{place}`, and this program would begin anew")]
    Present {
        /// The checkpoint.
        place: String,
    },
    /// The program that wrote the checkpoint had state that this one does not have.
    #[error("the checkpoint in `{place}` has state of `{name}` ({was}), {now}")]
    StateWouldBeLost {
        /// The checkpoint.
        place: String,
        /// The operation.
        name: String,
        /// What it was.
        was: String,
        /// What the program has of that name.
        now: String,
    },
    /// The program that wrote the checkpoint had an input that this one does not have.
    #[error("the checkpoint in `{place}` has a position of input `{name}` ({was}), {now}")]
    InputWouldBeLost {
        /// The checkpoint.
        place: String,
        /// The input.
        name: String,
        /// What it was.
        was: String,
        /// What the program has of that name.
        now: String,
    },
    /// Something that gives the batches their meaning is another one.
    #[error("the checkpoint in `{place}` was made with {setting} {was}, the program has {now}")]
    Differs {
        /// The checkpoint.
        place: String,
        /// `a batch interval of`, `component`.
        setting: String,
        /// What it was.
        was: String,
        /// What it is.
        now: String,
    },
    /// A file of the checkpoint does not say what it must.
    #[error("the checkpoint in `{place}` cannot be of a streaming program: {reason}")]
    Foreign {
        /// The checkpoint.
        place: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start the thread of {what}")]
    Thread {
        /// What it is for.
        what: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A thread of the context panicked, outside of the program's functions.
    #[error("the thread of {what} has failed")]
    Panicked {
        /// What it is for.
        what: &'static str,
        /// How.
        #[source]
        source: Panicked,
    },
}

impl Hint for DStreamError {
    fn fault(&self) -> Fault {
        match self {
            Self::Refused(refusal) => refusal.fault(),
            Self::Source(error) => error.fault(),
            Self::Checkpoint(error) => error.fault(),
            Self::State(error) => error.fault(),
            Self::Job { .. }
            | Self::Encode { .. }
            | Self::Present { .. }
            | Self::StateWouldBeLost { .. }
            | Self::InputWouldBeLost { .. }
            | Self::Differs { .. } => Fault::Query,
            Self::Received { .. } | Self::Thread { .. } => Fault::Outside,
            Self::Panicked { .. } => Fault::Bug,
            Self::ReceivedDamaged { .. } | Self::Decode { .. } | Self::Foreign { .. } => Fault::Corrupt,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Refused(refusal) => return refusal.hint(),
            Self::Source(error) => return error.hint(),
            Self::Checkpoint(error) => return error.hint(),
            Self::State(error) => return error.hint(),
            Self::Present { .. } => "go on with it by `get_or_create`, or name another folder",
            Self::StateWouldBeLost { .. } => {
                "give the operation back, name it as it was with `named`, or start a new checkpoint"
            }
            Self::InputWouldBeLost { .. } => "give the input back, or start a new checkpoint",
            Self::Differs { .. } => "take what the checkpoint was made with, or start a new checkpoint",
            Self::Panicked { .. } => "start the program again: it goes on after the last batch that is done",
            Self::Decode { .. } => "give a type whose fields change another name, and start a new checkpoint",
            _ => return None,
        };
        Some(text.to_owned())
    }
}
