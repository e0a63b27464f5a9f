//! What can go wrong with a query as a whole.

use crate::query::QueryChange;
use crate::settings::SettingError;
use crate::verdict::{Verdict, VerdictReport};
use millstream_checkpoint::CheckpointError;
use millstream_common::{BatchId, DurableError, Fault, Hint, Panicked};
use millstream_operators::OperatorError;
use millstream_plan::PlanError;
use millstream_sink::SinkError;
use millstream_source::SourceError;
use millstream_state::StateError;
use millstream_wasm::WasmError;
use std::sync::Arc;

/// A query could not be started, or stopped with a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The SQL, or what may not stream.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The sink.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A plugin outside of a batch.
    #[error(transparent)]
    Plugin(#[from] WasmError),
    /// A setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// State outside of a batch.
    #[error(transparent)]
    State(#[from] StateError),
    /// An operator, in a batch.
    #[error("batch {batch} failed")]
    Batch {
        /// The batch.
        batch: BatchId,
        /// What failed.
        #[source]
        source: Box<OperatorError>,
    },
    /// The commit log may have a batch, or not: only the next start can tell.
    #[error("it is not known whether batch {batch} is done, and its rows wait for that")]
    InDoubt {
        /// The batch.
        batch: BatchId,
        /// Why the entry of the commit log may not be there.
        #[source]
        source: Arc<CheckpointError>,
    },
    /// A batch query, after it was planned.
    #[error(transparent)]
    BatchQuery(Box<OperatorError>),
    /// A file beside the logs could not be written.
    #[error("cannot keep {what} in the checkpoint")]
    Keep {
        /// What was to be kept.
        what: String,
        /// What failed.
        #[source]
        source: DurableError,
    },
    /// The query is not the one that the checkpoint belongs to.
    #[error("the query does not fit its checkpoint: {reason}")]
    ForeignQuery {
        /// What differs: source, operator, schema.
        reason: String,
        /// The way out.
        hint: String,
    },
    /// The query differs from the one that made its checkpoint in what may not change.
    #[error("the query does not fit its checkpoint: {}", crate::query::describe_changes(.changes))]
    Changed {
        /// What differs.
        changes: Vec<QueryChange>,
    },
    /// State is there whose form this program does not know, or whose parts do not fit.
    #[error("the state of `{uid}` cannot be {action}: {reason}")]
    UnknownState {
        /// The operator.
        uid: String,
        /// `read`, `moved`.
        action: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A component may not take a plugin's place.
    #[error("plugin `{}` cannot become {}: {}", .report.plugin, .report.candidate(), .report.reasons())]
    Refused {
        /// The verdict.
        report: Box<VerdictReport>,
    },
    /// Something is missing or contradicts itself in what the user asked for.
    #[error("{reason}")]
    Invalid {
        /// What.
        reason: String,
        /// The way out.
        hint: Option<String>,
    },
    /// The query's thread could not be made, or died.
    #[error("the query's thread failed: {reason}")]
    Thread {
        /// What is known.
        reason: String,
    },
    /// A running query could not be reached.
    #[error("{reason}")]
    Control {
        /// What was tried and what happened.
        reason: String,
        /// The way out.
        hint: Option<String>,
    },
}

impl From<Panicked> for RuntimeError {
    fn from(panicked: Panicked) -> Self {
        Self::Thread { reason: panicked.to_string() }
    }
}

impl Hint for RuntimeError {
    fn fault(&self) -> Fault {
        match self {
            Self::Plan(error) => error.fault(),
            Self::Source(error) => error.fault(),
            Self::Sink(error) => error.fault(),
            Self::Checkpoint(error) => error.fault(),
            Self::Plugin(error) => error.fault(),
            Self::State(error) => error.fault(),
            Self::Batch { source, .. } | Self::BatchQuery(source) => source.fault(),
            Self::InDoubt { source, .. } => source.fault(),
            Self::Setting(_)
            | Self::ForeignQuery { .. }
            | Self::Changed { .. }
            | Self::Refused { .. }
            | Self::Invalid { .. } => Fault::Query,
            Self::UnknownState { .. } => Fault::Corrupt,
            Self::Keep { .. } | Self::Control { .. } => Fault::Outside,
            Self::Thread { .. } => Fault::Bug,
        }
    }

    fn may_pass(&self) -> bool {
        match self {
            Self::Plan(error) => error.may_pass(),
            Self::Source(error) => error.may_pass(),
            Self::Sink(error) => error.may_pass(),
            Self::Checkpoint(error) => error.may_pass(),
            Self::Plugin(error) => error.may_pass(),
            Self::State(error) => error.may_pass(),
            Self::Batch { source, .. } | Self::BatchQuery(source) => source.may_pass(),
            // Run again, the batch would prepare a second time what may be done.
            Self::InDoubt { .. } => false,
            other => other.fault() == Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Source(error) => error.hint(),
            Self::Sink(error) => error.hint(),
            Self::Checkpoint(error) => error.hint(),
            Self::Plugin(error) => error.hint(),
            Self::State(error) => error.hint(),
            Self::Batch { source, .. } | Self::BatchQuery(source) => source.hint(),
            Self::InDoubt { source, .. } => Some(source.hint().unwrap_or_else(|| {
                "start the query again: it reads the commit log, and then commits or aborts them".into()
            })),
            Self::ForeignQuery { hint, .. } => Some(hint.clone()),
            Self::UnknownState { .. } => Some(
                "see with `millstream checkpoint verify` whether it is whole, or use the release that wrote it".into(),
            ),
            Self::Changed { changes } => Some(crate::query::advice(changes)),
            Self::Refused { report } if report.verdict == Verdict::NeedsApproval => {
                Some("look at what changes, and say `--approve` if that is what is wanted".into())
            }
            Self::Refused { .. } => Some(
                "the old component goes on; `millstream plugin check` shows the whole verdict without a swap".into(),
            ),
            Self::Invalid { hint, .. } | Self::Control { hint, .. } => hint.clone(),
            Self::Thread { .. } => Some("start the query again: it goes on where its checkpoint is".into()),
            Self::Setting(_) | Self::Keep { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::Hinted;

    #[test]
    fn a_batch_is_run_again_for_what_may_come_back_and_not_for_what_was_decided() {
        let gone = || SourceError::Unavailable {
            name: "in".into(),
            action: "list",
            place: "s3://b/in".into(),
            source: Box::new(std::io::Error::other("reset")),
        };
        let fenced = || SinkError::Fenced { sink: "postgresql".into(), place: "db/t".into(), batch: BatchId(3) };
        let lost = || CheckpointError::LeaseLost { place: "here".into(), reason: "another run has it".into() };
        let away = || CheckpointError::Files {
            place: "here".into(),
            source: DurableError::Storage { action: "write", path: "commits/3".into(), source: "503".into() },
        };
        let in_doubt = || RuntimeError::InDoubt { batch: BatchId(3), source: Arc::new(away()) };
        let in_batch = |error: Hinted| RuntimeError::Batch {
            batch: BatchId(3),
            source: Box::new(OperatorError::Outside { operator: "f".into(), source: Box::new(error) }),
        };
        for (error, may_pass) in [
            (gone().into(), true),
            (fenced().into(), false),
            (lost().into(), false),
            (away().into(), true),
            (in_doubt(), false),
            (in_batch(Hinted::new(gone())), true),
            (in_batch(Hinted::new(fenced())), false),
        ] {
            let error: RuntimeError = error;
            assert_eq!((error.fault(), error.may_pass()), (Fault::Outside, may_pass), "{error:?}");
        }
    }
}
