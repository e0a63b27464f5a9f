//! Sessions of the command line: their plugins are compiled by this program, started again, so that a component which
//! is dear to compile harms nobody.

use crate::commands::COMPILE;
use millstream_runtime::packages::Packages;
use millstream_runtime::query_file::{HostPlaces, LoadedQuery};
use millstream_runtime::{CacheOptions, CompilerProgram, PluginHostOptions, Session};
use std::path::PathBuf;
use std::sync::Arc;

/// This very program on Linux, also when another one was put into its place since it was started: what another release has
/// compiled is of no use here.
const ITSELF: &str = "/proc/self/exe";

/// A session for a query, as its host file has it.
pub(crate) fn of_query(loaded: &LoadedQuery) -> Session {
    with(loaded.plugin_host.clone(), Some(&loaded.packages))
}

/// A session for looking at components and checkpoints, as a host file has it.
pub(crate) fn of_host(places: &HostPlaces) -> Session {
    with(places.plugin_host.clone(), Some(&places.packages))
}

/// A session for looking at components, without a host file.
pub(crate) fn of_user() -> Session {
    with(PluginHostOptions { cache: CacheOptions::of_user(), ..PluginHostOptions::default() }, None)
}

fn with(mut options: PluginHostOptions, packages: Option<&Arc<Packages>>) -> Session {
    // Without knowing where it is, the program compiles where it is.
    let itself = Some(PathBuf::from(ITSELF)).filter(|itself| itself.exists());
    let program = itself.or_else(|| std::env::current_exe().ok());
    options.compiler = program.map(|program| CompilerProgram { program, arguments: vec![COMPILE.into()] });
    let builder = Session::builder().plugin_host(options);
    match packages {
        Some(packages) => builder.packages(Arc::clone(packages)).build(),
        None => builder.build(),
    }
}
