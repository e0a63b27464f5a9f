//! `millstream swap`: another component in the place of a plugin.

use super::json;
use super::query_arguments::{RunningArguments, pair};
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_common::{Digest, duration};
use millstream_runtime::control::{AskedSwap, ControlClient, SwapTerms};
use millstream_runtime::verdict::VerdictReport;
use std::path::Path;
use std::time::Duration;

/// Asks a running query to run another component in the place of a plugin. The component is checked first, as by
/// `plugin check`, and takes its place between two batches; when it does not fit, the old one goes on.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream swap query.toml words=target/words.wasm\n  \
    millstream swap query.toml words=words-v2.wasm --approve\n  \
    millstream swap query.toml words=words-v2.wasm --shadow 20\n  \
    millstream swap query.toml words=oci://registry.example.com/acme/words:2\n  \
    millstream swap network-word-count words=words-v2.wasm --timeout '5 minutes'\n  \
    millstream swap 3f0c2a5e-8f2b-4c39-9d1f-2d9f1f6f9e11 words=words-v2.wasm --no-wait")]
pub(crate) struct SwapArguments {
    /// The running query: its query file, name, or id.
    #[arg(value_name = "QUERY")]
    query: String,
    /// The plugin's name in the query, and the file of the new component or a reference to its package.
    #[arg(value_name = "PLUGIN=FILE|REFERENCE", value_parser = pair)]
    plugin: (String, String),
    #[command(flatten)]
    terms: SwapTermsArguments,
    #[command(flatten)]
    running: RunningArguments,
}

/// How a swap or a rollback is done.
#[derive(Args)]
pub(crate) struct SwapTermsArguments {
    /// Goes on when the verdict is that it needs approval.
    #[arg(long)]
    approve: bool,
    /// How many of the last batches are run again before, with both components; 0 for none. As many as the setting
    /// `millstream.swap.dryRunBatches` of the query says when left out.
    #[arg(long, value_name = "N")]
    batches: Option<u64>,
    /// Lets the component run beside the query for so many batches first, and compares; nothing of it reaches the sink.
    #[arg(long, value_name = "N", default_value_t = 0)]
    shadow: u64,
    /// Leaves when the component is checked and waits for its turn.
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for the next batch.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    timeout: Duration,
    /// Prints the verdict as JSON.
    #[arg(long)]
    json: bool,
}

impl SwapTermsArguments {
    /// The same for the query.
    pub(crate) fn terms(&self) -> SwapTerms {
        SwapTerms { approve: self.approve, batches: self.batches, restore: false, shadow: self.shadow }
    }
}

/// Does it.
pub(crate) fn run(arguments: &SwapArguments) -> Result<(), Failure> {
    let dir = arguments.running.run_dir()?;
    let (plugin, file) = &arguments.plugin;
    let query = ControlClient::find(&dir, &arguments.query)?;
    let client = ControlClient::connect(&dir, query.id)?;
    follow(client.swap(plugin, Path::new(file), &arguments.terms.terms())?, &arguments.terms)
}

/// Tells the verdict, and what becomes of the swap.
pub(crate) fn follow(asked: AskedSwap, arguments: &SwapTermsArguments) -> Result<(), Failure> {
    let verdict = asked.verdict();
    let plugin = verdict.plugin.clone();
    let show = |report: &VerdictReport| if arguments.json { json(report) } else { Ok(report.to_string()) };
    output::print(&show(verdict)?)?;
    let mut said = Ok(());
    let pending = asked.accepted(&mut |report| {
        said = show(report).and_then(|text| output::print(&text));
    });
    said?;
    let mut pending = pending?;
    let digest = pending.accepted().digest;
    output::print(&format!("accepted   {plugin} {}, for the next batch\n", short(digest)))?;
    if arguments.no_wait {
        return Ok(());
    }
    match pending.wait(arguments.timeout)? {
        Some(taken) => output::print(&format!(
            "taken      {plugin} {} -> {}, from batch {} on\n",
            short(taken.from),
            short(taken.to),
            taken.batch
        )),
        None => Err(Failure::outside(
            format!("no batch began within {:?}; the swap still waits for the next one", arguments.timeout),
            Some("a batch begins when there is new data; `millstream status` shows which component ran last"),
        )),
    }
}

fn short(digest: Digest) -> String {
    digest.short()
}

fn time(text: &str) -> Result<Duration, String> {
    let micros = duration::parse_micros(text).map_err(|error| error.to_string())?;
    let micros = u64::try_from(micros).map_err(|_| "a time to wait cannot be negative".to_owned())?;
    Ok(Duration::from_micros(micros))
}
