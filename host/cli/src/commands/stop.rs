//! `millstream stop`: a graceful end.

use super::query_arguments::RunningArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::control::ControlClient;

/// Asks a running query to stop after the batch that it is in, as Ctrl-C does; does not wait for the end.
#[derive(Args)]
#[command(after_help = "Example:\n  millstream stop query.toml")]
pub(crate) struct StopArguments {
    /// The running query: its query file, name, or id.
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    running: RunningArguments,
}

/// Does it.
pub(crate) fn run(arguments: &StopArguments) -> Result<(), Failure> {
    let dir = arguments.running.run_dir()?;
    let query = ControlClient::find(&dir, &arguments.query)?;
    ControlClient::connect(&dir, query.id)?.stop()?;
    output::print(&format!("stopping  {}\n", query.label()))
}
