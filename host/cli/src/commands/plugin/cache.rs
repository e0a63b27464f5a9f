//! `millstream plugin cache`: what is kept so that nothing is compiled or pulled twice.

use crate::environment;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::query_file::{QueryFileError, load_host_places};
use std::path::PathBuf;

/// Shows what is kept of compiled components and of pulled packages, and where. Everything is made or had anew when it is
/// needed and not there.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin cache\n  \
    millstream plugin cache --clear")]
pub(crate) struct CacheArguments {
    /// Removes it.
    #[arg(long)]
    clear: bool,
    /// The operator's file, if it names the folders [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
}

/// Does it.
pub(crate) fn run(arguments: &CacheArguments) -> Result<(), Failure> {
    let places = load_host_places(arguments.host_file.as_deref(), &environment::variables())?;
    let mut text = String::new();
    match &places.plugin_host.cache {
        None => text.push_str("compiled   nowhere\n"),
        Some(cache) => {
            let folder = cache.folder.display();
            let failed = |error| Failure::outside(format!("cannot read or clear `{folder}`: {error}"), None);
            if arguments.clear {
                cache.clear().map_err(failed)?;
            }
            let figures = cache.figures().map_err(failed)?;
            text.push_str(&format!(
                "compiled   {} components, {} of at most {}, in {folder}\n",
                figures.entries,
                mebibytes(figures.bytes),
                mebibytes(cache.limit_bytes)
            ));
        }
    }
    match places.packages.store() {
        None => text.push_str("packages   nowhere\n"),
        Some(store) => {
            if arguments.clear {
                store.clear().map_err(QueryFileError::from)?;
            }
            let held = store.held();
            let folder = store.folder().display();
            text.push_str(&format!("packages   {} files, {}, in {folder}\n", held.files, mebibytes(held.bytes)));
        }
    }
    output::print(&text)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
