//! The files that make up one version of a store: what the commit log names.

use serde::{Deserialize, Serialize};

/// What a state file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateFileKind {
    /// Everything at one version.
    Snapshot,
    /// The changes from the version before.
    Changelog,
}

/// One immutable file of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// The name in the store's folder; never used twice.
    pub name: String,
    /// What it holds.
    pub kind: StateFileKind,
    /// The version that it leads to.
    pub version: u64,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 of the whole file.
    pub crc: u32,
}

/// The files from which exactly one version of a store is read: at most one snapshot, first, then the
/// changelogs after it, ascending. No files at all is the empty store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateManifest {
    /// The version: batch N makes version N+1. A batch without changes adds no file.
    pub version: u64,
    /// The files.
    pub files: Vec<StateFile>,
}
