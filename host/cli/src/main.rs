//! The command line of Millstream: start a query, look at it, swap its plugins.
//!
//! Above everything: arguments become the options of the runtime here, and errors become lines and exit codes.
//!
//! Rule of its life: standard output is data, standard error is for people. Exit code 0 is fine, 1 is the query's fault
//! (its SQL, its data, a plugin), 2 is ours or the world's. Every error is told with its causes and, where there is one,
//! a way out.
//!
//! It knows nothing of how queries work: each command is a few calls of the runtime.

mod commands;
mod environment;
mod failure;
mod output;
mod session;

use clap::Parser;
use std::process::ExitCode;

/// Stream processing with SQL whose parts are swapped while it runs.
#[derive(Parser)]
#[command(
    name = "millstream",
    version,
    about,
    after_help = "Examples:\n  \
        millstream run query.toml\n  \
        millstream check query.toml --show-settings\n  \
        millstream swap query.toml words=words.wasm\n\n\
        Exit codes: 0 fine, 1 the query's fault (SQL, data, plugin), 2 ours or the world's.\n\
        Environment: MILLSTREAM_LOG is a filter for logs, such as `info` or `millstream_runtime=debug`."
)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match output::start_logging().and_then(|()| arguments.command.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
