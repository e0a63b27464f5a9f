//! `millstream explain`: what a query is made of.

use super::query_arguments::QueryArguments;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_runtime::inspect;

/// Shows the logical plan, the operators with their uids, the state that they keep, and the digests of plugins.
#[derive(Args)]
#[command(after_help = "Example:\n  millstream explain query.toml")]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    query: QueryArguments,
}

/// Does it.
pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let loaded = arguments.query.load()?;
    let checked = inspect::check(&session::of_query(&loaded), &loaded.spec)?;
    output::print(&checked.explain())
}
