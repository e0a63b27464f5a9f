//! `millstream rollback`: back to the component before.

use super::query_arguments::RunningArguments;
use super::swap::{SwapTermsArguments, follow};
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::control::{ControlClient, SwapTerms};

/// Asks a running query to run the component again that it ran before the last swap. A rollback is a swap: the same checks
/// come before it, it takes place between two batches, and no row goes to the sink a second time.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream rollback query.toml --approve\n  \
    millstream rollback query.toml --canary\n  \
    millstream rollback network-word-count words --to 3f0c2a5e8f2b")]
pub(crate) struct RollbackArguments {
    /// The running query: its query file, name, or id.
    #[arg(value_name = "QUERY")]
    query: String,
    /// The plugin's name in the query; needed when it has several.
    #[arg(value_name = "PLUGIN")]
    plugin: Option<String>,
    /// The component to go back to, by the beginning of its digest.
    #[arg(long, value_name = "DIGEST")]
    to: Option<String>,
    /// Also makes the state as if the code had never been another: goes back to the state before the swap and runs the
    /// batches since then again, whose rows went out already and do not go out a second time. The query waits meanwhile.
    #[arg(long)]
    restore: bool,
    /// Ends the canary that runs: the component before it computes all keys again, and goes on with the state as it is.
    #[arg(long, conflicts_with_all = ["to", "restore"])]
    canary: bool,
    #[command(flatten)]
    terms: SwapTermsArguments,
    #[command(flatten)]
    running: RunningArguments,
}

/// Does it.
pub(crate) fn run(arguments: &RollbackArguments) -> Result<(), Failure> {
    let dir = arguments.running.run_dir()?;
    let query = ControlClient::find(&dir, &arguments.query)?;
    let client = ControlClient::connect(&dir, query.id)?;
    if arguments.canary {
        let mut pending = client.end_canary()?;
        let candidate = pending.accepted().digest.short();
        output::print(&format!("accepted   the canary {candidate} ends with the next batch\n"))?;
        return arguments.terms.wait(&mut pending, |taken| {
            format!("ended      {} -> {}, from batch {} on\n", taken.from.short(), taken.to.short(), taken.batch)
        });
    }
    let terms = SwapTerms { restore: arguments.restore, ..arguments.terms.terms() };
    let asked = client.rollback(arguments.plugin.as_deref(), arguments.to.as_deref(), &terms)?;
    output::print(match (arguments.restore, asked.verdict()) {
        (false, verdict) if !verdict.migration.is_empty() => "rollback   migrates the state back\n",
        (false, verdict) if !verdict.restores => "rollback   keeps the state as it is\n",
        _ => "rollback   restores the state before the swap and runs the batches since then again\n",
    })?;
    follow(asked, &arguments.terms, "taken")
}
