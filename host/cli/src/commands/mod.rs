//! The commands, one file each: arguments as typed, then the options of the runtime, then a few calls.

mod check;
mod checkpoint;
mod checkpoint_arguments;
mod compile;
mod explain;
mod explain_row;
mod plugin;
mod query_arguments;
mod registry_arguments;
mod replay;
mod rollback;
mod run;
mod state;
mod status;
mod stop;
mod swap;

use crate::failure::Failure;
use clap::Subcommand;

/// The name of the command that compiles for other processes of this program.
pub(crate) const COMPILE: &str = "compile-component";

/// What can be asked for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs a query until it is done or told to stop.
    Run(run::RunArguments),
    /// Plans a query and says why it could not run; runs and creates nothing.
    Check(check::CheckArguments),
    /// Shows a query's plan, operators with their uids, state and plugins with their digests.
    Explain(explain::ExplainArguments),
    /// Puts another component in the place of a plugin of a running query, between two batches.
    Swap(swap::SwapArguments),
    /// Puts the component that ran before in its place again.
    Rollback(rollback::RollbackArguments),
    /// Puts a row that went out into a folder with everything that made it.
    ExplainRow(explain_row::ExplainRowArguments),
    /// Runs a batch again as it was, and compares.
    Replay(replay::ReplayArguments),
    /// Shows what running queries do.
    Status(status::StatusArguments),
    /// Asks a running query to stop after the batch that it is in.
    Stop(stop::StopArguments),
    /// Shows the state of an operator after a batch, as rows.
    State(state::StateArguments),
    /// Makes, builds and inspects plugins.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Shows and verifies checkpoints, and spreads their state over another number of partitions.
    #[command(subcommand)]
    Checkpoint(checkpoint::CheckpointCommand),
    /// Compiles for another process of this program.
    #[command(name = COMPILE, hide = true)]
    CompileComponent,
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Run(arguments) => run::run(arguments),
            Self::Check(arguments) => check::run(&arguments),
            Self::Explain(arguments) => explain::run(&arguments),
            Self::ExplainRow(arguments) => explain_row::run(&arguments),
            Self::Swap(arguments) => swap::run(&arguments),
            Self::Rollback(arguments) => rollback::run(&arguments),
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Status(arguments) => status::run(&arguments),
            Self::Stop(arguments) => stop::run(&arguments),
            Self::State(arguments) => state::run(&arguments),
            Self::Plugin(command) => command.run(),
            Self::Checkpoint(command) => command.run(),
            Self::CompileComponent => compile::run(),
        }
    }
}

/// A value as JSON for people and programs.
fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(value);
    json.map(|json| format!("{json}\n")).map_err(|error| Failure::outside(format!("cannot write JSON: {error}"), None))
}
