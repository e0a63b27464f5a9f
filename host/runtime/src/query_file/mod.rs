//! The two files that make a query: `query.toml`, which is the author's, and `host.toml`, which is the operator's.
//!
//! Before everything else: [`load`] turns them, the environment and the flags of a command line into one [`QuerySpec`].
//! It goes in two steps: the text becomes raw values that know their place (unknown keys end here), then the values
//! are checked and become a spec.
//!
//! ```toml
//! name = "network-word-count"
//! sql = "SELECT word, count(*) AS count FROM lines LATERAL VIEW explode(split(value, ' ')) w AS word GROUP BY word"
//! output_mode = "complete"         # append (default), update, complete
//! trigger = "10 seconds"           # default, a duration, once, available now
//! checkpoint = "checkpoint"        # beside this file, or a URL
//!
//! [[source]]
//! name = "lines"
//! format = "socket"
//! options = { host = "localhost", port = 9999 }
//!
//! [sink]
//! format = "console"
//! ```
//!
//! Rule of its life: default < host file < query file < environment < flag, and every value remembers which of them it
//! is from. A plugin's limits are asked for in the query file and granted by the host file.
//!
//! It opens no source and no sink; of the files that a query names it reads the SQL and the components. Those that are named
//! by reference come from a registry the first time, and are pinned in the lock file beside the query file; later they come
//! from where pulled packages are kept, or from the checkpoint.

mod accounts;
mod compiling;
mod connectors;
mod environment;
mod error;
mod host_file;
mod packaging;
mod permissions;
mod plugins;
mod raw;
mod scalar;
mod size;
mod text;
mod trigger;
mod validate;
mod value;

#[cfg(test)]
mod tests;

pub use error::{Place, QueryFileError};
pub use value::{Origin, Value};

use crate::QuerySpec;
use crate::packages::Packages;
use millstream_wasm::PluginHostOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a query file or host file.
const FILE_BYTES: u64 = 1 << 20;
/// The most bytes of SQL.
const SQL_BYTES: u64 = 1 << 20;
/// The most bytes of a component that `component_max` can allow; what it does allow the plugin host looks at.
const COMPONENT_BYTES: u64 = 1 << 30;

/// What flags of a command line say: the last word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Another trigger, as in the query file.
    pub trigger: Option<String>,
    /// Another checkpoint; a relative path is relative to the working directory.
    pub checkpoint: Option<String>,
    /// Settings by name.
    pub settings: Vec<(String, String)>,
    /// The lock file must pin every package, and is not changed.
    pub locked: bool,
    /// The plugins whose tags are looked up again, whatever the lock file says; all of them when the list is empty.
    pub update: Option<Vec<String>>,
}

/// A query as its files describe it.
#[derive(Debug, Clone)]
pub struct LoadedQuery {
    /// The query, ready to start.
    pub spec: QuerySpec,
    /// Every value that was decided on, with its origin, for people.
    pub values: Vec<Value>,
    /// The query file, absolute.
    pub file: PathBuf,
    /// Where the host file wants the control sockets of running queries.
    pub run_dir: Option<PathBuf>,
    /// How its plugins are compiled, and where compiled ones are kept.
    pub plugin_host: PluginHostOptions,
    /// Where its components come from, and which may be loaded.
    pub packages: Arc<Packages>,
}

/// What the host file says about object stores and folders, for commands that need no query.
#[derive(Debug, Clone, Default)]
pub struct HostPlaces {
    /// Options of object stores, credentials among them.
    pub object_store: Vec<(String, String)>,
    /// Where the control sockets of running queries are.
    pub run_dir: Option<PathBuf>,
    /// How plugins are compiled, and where compiled ones are kept.
    pub plugin_host: PluginHostOptions,
    /// Where components come from, and which may be loaded where no tenant has keys of its own.
    pub packages: Arc<Packages>,
}

/// Loads a query file under a host file, an environment and flags.
///
/// Of the environment, `MILLSTREAM_CHECKPOINT`, `MILLSTREAM_TRIGGER` and `MILLSTREAM_SETTING_<NAME>` count, where
/// `<NAME>` is a setting in capitals with `_` for each dot (`MILLSTREAM_SETTING_SPARK_SQL_SHUFFLE_PARTITIONS`), and
/// `MILLSTREAM_HOST_FILE` names the host file when `host` does not. Other names that begin with `MILLSTREAM_` are
/// refused, except those that the process itself reads.
///
/// # Errors
/// [`QueryFileError`] with file, line and key.
pub fn load(
    path: &Path,
    host: Option<&Path>,
    env: &[(String, String)],
    overrides: Overrides,
) -> Result<LoadedQuery, QueryFileError> {
    let environment = environment::Environment::read(env)?;
    let host = host_file::load(host.or(environment.host_file.as_deref()), env)?;
    let text = text::SourceText::read(path, FILE_BYTES, "a query file")?;
    let raw: raw::RawQuery = text.parse()?;
    validate::query(&text, raw, &host, &environment, overrides)
}

/// Reads a component.
///
/// # Errors
/// When it is no plain file, cannot be read, or is too large.
pub fn read_component(path: &Path) -> Result<Vec<u8>, QueryFileError> {
    text::read_bytes(path, COMPONENT_BYTES, "a component")
}

/// Loads the part of a host file that does not belong to a query.
///
/// # Errors
/// [`QueryFileError`] with file, line and key.
pub fn load_host_places(host: Option<&Path>, env: &[(String, String)]) -> Result<HostPlaces, QueryFileError> {
    let environment = environment::Environment::read(env)?;
    let host = host_file::load(host.or(environment.host_file.as_deref()), env)?;
    let object_store = host.object_store.into_iter().map(|(name, value, _)| (name, value)).collect();
    let run_dir = host.run_dir.map(|(path, _)| path);
    Ok(HostPlaces { object_store, run_dir, plugin_host: host.compiling, packages: host.packages.of(None) })
}
