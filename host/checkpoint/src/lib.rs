//! The durable folder of a query: identity, offset log, commit log, components, lease; on a folder or an object store.
//!
//! Around the loop: each batch is defined here before it runs and is done when its commit entry is written here. A
//! restart reads the two logs and gets one value, [`ResumePoint`].
//!
//! Rule of its life: every file is written once, whole, with put-if-absent, and read with its checksum. What is torn,
//! missing or foreign is named and refused, never guessed around. A second writer is told so and cannot commit.
//!
//! Every kind of place passes the suite in [`contract`].
//!
//! It does not know what an offset or a state manifest means, and it does not run anything.

mod batch_log;
mod canary;
mod checkpoint;
mod commit_log;
pub mod contract;
mod document;
mod error;
pub mod faulty;
mod forked_files;
mod json_lines;
mod lease;
mod local_files;
mod lock;
mod metadata;
mod object_files;
mod offset_log;
mod place;
mod plugin_store;
mod prepared_store;
mod query_store;
mod resume;
mod state_schemas;
mod swap_log;
#[cfg(test)]
mod tests;
mod verify;

pub use canary::{CanaryPin, CanaryTally, FallbackEntry, FallbackLog};
pub use checkpoint::{Checkpoint, Purged, RETAINED_BATCHES};
pub use commit_log::{CommitEntry, CommitLog, OutputPin};
pub use error::CheckpointError;
pub use forked_files::ForkedFiles;
pub use lease::{LEASE_MS, Lease, LeaseHolder, LeaseRecord};
pub use local_files::LocalFiles;
pub use metadata::{FORMAT_VERSION, Metadata};
pub use object_files::ObjectFiles;
pub use offset_log::{
    BorderPin, ConnectorPin, OffsetEntry, OffsetLog, OffsetRange, PluginPin, RepartitionPin, StatePin,
};
pub use place::open_files;
pub use plugin_store::PluginStore;
pub use prepared_store::{PreparedEntry, PreparedStore};
pub use query_store::QueryStore;
pub use resume::{LogContents, ResumePoint, resume};
pub use state_schemas::StateSchemas;
pub use swap_log::{CanaryEvent, CanaryRecord, SwapEntry, SwapLog, SwapRecord};
pub use verify::{Finding, Report, verify};
