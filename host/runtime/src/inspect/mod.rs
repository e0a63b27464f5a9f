//! Looking at things without running them: a query, a checkpoint, a component.
//!
//! Beside the loop: the command line's `check`, `explain`, `state`, `checkpoint` and `plugin` are made of it.
//!
//! Rule of its life: nothing is started, created or changed. What a run would refuse for what a query *is*, is refused
//! here with the same words; what only the world can tell (is the server up?) is not asked.
//!
//! It repairs nothing.

mod checkpoint;
mod component;
mod history;
mod place;
mod plan;
mod state;
mod verify;

pub(crate) use checkpoint::manifests;
pub use checkpoint::{
    BatchSummary, CanarySummary, CheckpointSummary, LeaseSummary, PartitionSummary, PluginSummary, StateSummary,
    checkpoint, resumes,
};
pub use component::{ColumnReport, ComponentReport, FunctionReport, StateReport, component};
pub use history::{CanarySpan, CodeHistory, CodeSpan, history};
pub use millstream_wasm::build::{
    BuildError, Language, Profile, Project, build_plugin, find_sdk, guest_target_dir, test_plugin,
};
pub use place::CheckpointPlace;
pub use plan::{CheckedQuery, OperatorState, check};
pub use state::{StateRequest, StateTable, state};
pub use verify::{VerifyFinding, VerifyReport, verify};
