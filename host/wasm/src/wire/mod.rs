//! The types of `millstream:plugin`, as they cross the boundary: those that all interfaces share here, and one file for
//! each interface with its own types and its [`Export`](crate::export::Export)s.
//!
//! One Rust type per WIT type, lowered and lifted by Wasmtime. Buffers cross as whole byte lists: one copy each way.
//!
//! Rule of its life: nothing that was lifted is trusted before [`crate::layout::decode`] or
//! [`crate::description`] has looked at it.
//!
//! It checks nothing.

pub(crate) mod aggregate;
pub(crate) mod function;
pub(crate) mod migration;
pub(crate) mod processor;
pub(crate) mod source;

use wasmtime::component::{ComponentType, Lift, Lower};

/// The versions of the WIT package that this host speaks, the newest first. What 0.1.0 has, 0.2.0 has unchanged; so
/// an old component is entered under the old names, and no value needs another form.
pub(crate) const VERSIONS: [&str; 2] = ["0.2.0", "0.1.0"];
pub(crate) const LOG: &str = "log";
pub(crate) const TYPES: &str = "types";
pub(crate) const DESCRIBE: &str = "describe";
pub(crate) const CONFIG: &str = "config";
pub(crate) const CLOCK: &str = "clock";
pub(crate) const RANDOM: &str = "random";
pub(crate) const HTTP: &str = "http";
pub(crate) const SCALAR: &str = "scalar";
pub(crate) const TABLE: &str = "table";
pub(crate) const AGGREGATE: &str = "aggregate";
pub(crate) const PROCESSOR: &str = "processor";
pub(crate) const SOURCE: &str = "source";
pub(crate) const MIGRATION: &str = "migration";

/// The full name of an interface in a version of the package.
pub(crate) fn interface(name: &str, version: &str) -> String {
    format!("millstream:plugin/{name}@{version}")
}

/// The name of one of the package's interfaces, from its full name in any version of [`VERSIONS`].
pub(crate) fn known(full: &str) -> Option<&str> {
    let (name, version) = full.strip_prefix("millstream:plugin/")?.split_once('@')?;
    VERSIONS.contains(&version).then_some(name)
}

/// How important a line of log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum Level {
    #[component(name = "error")]
    Error,
    #[component(name = "warn")]
    Warn,
    #[component(name = "info")]
    Info,
    #[component(name = "debug")]
    Debug,
    #[component(name = "trace")]
    Trace,
}

/// One node of a flattened schema.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) nullable: bool,
    pub(crate) children: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum Nulls {
    #[component(name = "passed")]
    Passed,
    #[component(name = "skipped")]
    Skipped,
}

/// Columns on their way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct BatchRef<'a> {
    pub(crate) rows: u32,
    pub(crate) buffers: &'a [&'a [u8]],
}

/// Columns as a guest gave them.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Batch {
    pub(crate) rows: u32,
    pub(crate) buffers: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct RowError {
    pub(crate) row: u32,
    pub(crate) message: String,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum CallError {
    #[component(name = "invalid-input")]
    InvalidInput(String),
    #[component(name = "unavailable")]
    Unavailable(String),
    #[component(name = "internal")]
    Internal(String),
}
