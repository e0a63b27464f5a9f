//! Versioned keyed state of one operator and partition.
//!
//! Beside the data path: a stateful operator opens a [`StateStore`] at the version that the commit log names,
//! reads and changes it during a batch, and prepares version N+1, whose files the commit log then names.
//!
//! Rule of its life: hot state is in memory, what a memory limit leaves no room for lies in a spill that ends with the
//! run, and truth is in files. `open` takes an exact version with its exact
//! files and fails when they are not there, whole and right; nothing is ever "the latest". Files are written
//! once and never changed, so a retried batch cannot damage what an earlier attempt wrote.
//!
//! It does not know Arrow types, plans or watermarks: keys and values are bytes whose order is `memcmp`'s.

mod budget;
pub mod contract;
mod error;
mod files;
mod log_store;
mod store;

pub use budget::MemoryBudget;
pub use error::StateError;
pub use files::{StateFile, StateFileKind, StateManifest};
pub use log_store::{LogStore, StateChange, visit_changes};
pub use store::{ByteRows, FamilyId, FamilySpec, Layout, StateMetrics, StateStore, StoreOptions};
