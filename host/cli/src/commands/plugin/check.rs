//! `millstream plugin check`: may a component take a plugin's place?

use crate::commands::checkpoint_arguments::place_and_session;
use crate::commands::json;
use crate::environment;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_common::Fault;
use millstream_runtime::query_file::{self, Overrides};
use millstream_runtime::verdict::{Verdict, VerdictRequest, check_component};
use std::path::PathBuf;

/// Says whether a component could take the place of a plugin, and what would change: compares functions, permissions and
/// the meaning of state, and runs the last batches again with both components on a fork of the checkpoint. Changes
/// nothing; the query may run meanwhile. The answer is the one that `swap` would give.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin check words-v2.wasm --against query.toml\n  \
    millstream plugin check oci://registry.example.com/acme/words:2 --against query.toml\n  \
    millstream plugin check words-v2.wasm --against checkpoints/words --query query.toml --batches 20 --json\n\n\
    Exit codes: 0 ok, or ok after migration; 1 needs approval, or reject.")]
pub(crate) struct CheckArguments {
    /// The component's file, or a reference to its package.
    #[arg(value_name = "FILE|REFERENCE")]
    component: String,
    /// The checkpoint's folder or URL, or the query file of the query that has it.
    #[arg(long, value_name = "CHECKPOINT|QUERY.toml")]
    against: String,
    /// The query file, when `--against` names a checkpoint: without it nothing is run and every function counts as called.
    #[arg(long, value_name = "QUERY.toml")]
    query: Option<PathBuf>,
    /// The plugin's name in the query; needed when it has several.
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// How many of the last batches are run again; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 3)]
    batches: u64,
    /// The operator's file, with the credentials of object stores [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let (mut place, mut session) = place_and_session(&arguments.against, arguments.host_file.as_deref())?;
    if let Some(query) = &arguments.query {
        let environment = environment::variables();
        let loaded = query_file::load(query, arguments.host_file.as_deref(), &environment, Overrides::default())?;
        session = session::of_query(&loaded);
        let mut spec = loaded.spec;
        spec.checkpoint = Some(place.place.clone());
        place.query = Some(spec);
    }
    let request = VerdictRequest { plugin: arguments.plugin.clone(), batches: arguments.batches };
    let component = session.packages().component(&arguments.component)?;
    let report = check_component(&session, &place, &request, &component)?;
    output::print(&if arguments.json { json(&report)? } else { report.to_string() })?;
    match report.verdict {
        Verdict::Ok | Verdict::OkAfterMigration => Ok(()),
        Verdict::NeedsApproval | Verdict::Reject => Err(Failure::said(Fault::Query)),
    }
}
