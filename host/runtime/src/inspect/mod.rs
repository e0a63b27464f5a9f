//! Looking at things without running them: a query, a checkpoint, a component.
//!
//! Beside the loop: the command line's `check`, `explain`, `checkpoint` and `plugin` are made of it.
//!
//! Rule of its life: nothing is started, created or changed. What a run would refuse for what a query *is*, is refused
//! here with the same words; what only the world can tell (is the server up?) is not asked.
//!
//! It repairs nothing.

mod checkpoint;
mod component;
mod plan;
mod verify;

pub use checkpoint::{BatchSummary, CheckpointSummary, LeaseSummary, PluginSummary, StateSummary, checkpoint, resumes};
pub use component::{ColumnReport, ComponentReport, FunctionReport, component};
pub use millstream_wasm::build::{BuildError, Profile, build_rust_plugin, guest_target_dir};
pub use plan::{CheckedQuery, OperatorState, check};
pub use verify::{VerifyFinding, VerifyReport, verify};
