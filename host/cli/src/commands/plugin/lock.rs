//! `millstream plugin lock` and `update`: which bytes the references of a query mean.

use crate::environment;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::package::{LockEntry, LockFile};
use millstream_runtime::query_file::{self, Overrides, QueryFileError};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Pins every package that a query names and that is not pinned yet, in the lock file beside the query file. What is pinned
/// stays, wherever its tag leads by now. Keep the lock file with the query file.
#[derive(Args)]
#[command(after_help = "Example:\n  millstream plugin lock query.toml")]
pub(crate) struct LockArguments {
    /// The query file.
    #[arg(value_name = "QUERY.toml")]
    query: PathBuf,
    /// The operator's file [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
}

/// Looks where the tags of a query's packages lead now, and pins that in the lock file. The next start of the query runs
/// it; a running query goes on with what it has until it is swapped.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin update query.toml\n  \
    millstream plugin update query.toml words")]
pub(crate) struct UpdateArguments {
    #[command(flatten)]
    query: LockArguments,
    /// The plugins, by their names in the query; all of them when left out.
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
}

/// Does it.
pub(crate) fn lock(arguments: &LockArguments) -> Result<(), Failure> {
    pin(arguments, Overrides::default())
}

/// Does it.
pub(crate) fn update(arguments: &UpdateArguments) -> Result<(), Failure> {
    pin(&arguments.query, Overrides { update: Some(arguments.plugins.clone()), ..Overrides::default() })
}

fn pin(arguments: &LockArguments, overrides: Overrides) -> Result<(), Failure> {
    let read = |query: &Path| LockFile::of_query(query).map_err(QueryFileError::from);
    let before = read(&arguments.query)?;
    let named = overrides.update.clone().unwrap_or_default();
    let loaded =
        query_file::load(&arguments.query, arguments.host_file.as_deref(), &environment::variables(), overrides)?;
    if let Some(unknown) = named.iter().find(|name| !loaded.spec.plugins.iter().any(|plugin| plugin.name == **name)) {
        return Err(Failure::query(format!("the query has no plugin `{unknown}`"), None));
    }
    output::print(&changes(&before, &read(&arguments.query)?))
}

/// What has come, changed and gone.
fn changes(before: &LockFile, after: &LockFile) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (plugin, entry) in after.entries() {
        let _ = match before.get(plugin) {
            None => writeln!(text, "pinned     {plugin} {} {}", entry.reference, short(entry)),
            Some(old) if old == entry => writeln!(text, "unchanged  {plugin} {} {}", entry.reference, short(entry)),
            Some(old) => writeln!(text, "moved      {plugin} {} {} -> {}", entry.reference, short(old), short(entry)),
        };
    }
    for (plugin, entry) in before.entries().filter(|(plugin, _)| after.get(plugin).is_none()) {
        let _ = writeln!(text, "gone       {plugin} {}", entry.reference);
    }
    if text.is_empty() {
        text.push_str("nothing to pin: no plugin of the query is named by reference\n");
    }
    text
}

fn short(entry: &LockEntry) -> String {
    entry.component.short()
}
