//! Sessions of the command line: their plugins are compiled by this program, started again, so that a component which
//! is dear to compile harms nobody.

use crate::commands::COMPILE;
use millstream_runtime::query_file::LoadedQuery;
use millstream_runtime::{CacheOptions, CompilerProgram, PluginHostOptions, Session};

/// A session for a query, as its host file has it.
pub(crate) fn of_query(loaded: &LoadedQuery) -> Session {
    with(loaded.plugin_host.clone())
}

/// A session for looking at components, without a host file.
pub(crate) fn of_user() -> Session {
    with(PluginHostOptions { cache: CacheOptions::of_user(), ..PluginHostOptions::default() })
}

fn with(mut options: PluginHostOptions) -> Session {
    // Without knowing where it is, the program compiles where it is.
    let program = std::env::current_exe().ok();
    options.compiler = program.map(|program| CompilerProgram { program, arguments: vec![COMPILE.into()] });
    Session::builder().plugin_host(options).build()
}
