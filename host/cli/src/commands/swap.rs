//! `millstream swap`: another component in the place of a plugin.

use super::json;
use super::query_arguments::{RunningArguments, pair};
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_common::{Digest, duration};
use millstream_runtime::CanaryTerms;
use millstream_runtime::control::{AskedSwap, ControlClient, PendingSwap, SwapTerms, Taken};
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
    millstream swap query.toml words=words-v2.wasm --canary 10% --canary-batches 50 --expect same\n  \
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
    canary: CanaryArguments,
    #[command(flatten)]
    terms: SwapTermsArguments,
    #[command(flatten)]
    running: RunningArguments,
}

/// How a component takes over by and by.
#[derive(Args)]
struct CanaryArguments {
    /// Lets the component compute this share of the keys first, such as `10%`: their rows go out. It takes over by itself
    /// after some batches, and is given up by itself when it fails where the running code does not, or costs too much.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    canary: Option<u32>,
    /// After so many batches with keys of that share it takes over.
    #[arg(long, value_name = "N", default_value_t = CanaryTerms::BATCHES, requires = "canary",
        value_parser = clap::value_parser!(u64).range(1..))]
    canary_batches: u64,
    /// `same` gives it up when it answers otherwise than the running code; `any` counts that and goes on.
    #[arg(long, value_name = "ANSWERS", default_value = "any", requires = "canary",
        value_parser = ["same", "any"])]
    expect: String,
    /// Gives it up when it takes more than so many times the CPU time of the running code.
    #[arg(long, value_name = "TIMES", default_value = "3", requires = "canary", value_parser = times)]
    cost: u32,
}

impl CanaryArguments {
    fn terms(&self) -> Option<CanaryTerms> {
        let share = self.canary?;
        let (batches, expect_same, cost_percent) = (self.canary_batches, self.expect == "same", self.cost);
        Some(CanaryTerms { share, batches, expect_same, cost_percent })
    }
}

/// `10%` or `0.5 %`, in ten-thousandths.
fn share(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    let parts = number.map(|number| (number * 100.0).round()).filter(|parts| (1.0..=10_000.0).contains(parts));
    parts.map(|parts| parts as u32).ok_or_else(|| "a share from 0.01% to 100% is expected".to_owned())
}

/// `3` or `1.5`, in percent.
fn times(text: &str) -> Result<u32, String> {
    let number = text.parse::<f64>().ok().map(|number| (number * 100.0).round());
    let percent = number.filter(|percent| (100.0..=1e6).contains(percent));
    percent.map(|percent| percent as u32).ok_or_else(|| "a number from 1 to 10000 is expected".to_owned())
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
        SwapTerms { approve: self.approve, batches: self.batches, restore: false, shadow: self.shadow, canary: None }
    }

    /// Waits for what was accepted, unless nobody wants to, and tells of it.
    pub(crate) fn wait(&self, pending: &mut PendingSwap, tell: impl FnOnce(&Taken) -> String) -> Result<(), Failure> {
        if self.no_wait {
            return Ok(());
        }
        match pending.wait(self.timeout)? {
            Some(taken) => output::print(&tell(&taken)),
            None => Err(Failure::outside(
                format!("no batch began within {:?}; it still waits for the next one", self.timeout),
                Some("a batch begins when there is new data; `millstream status` shows which component ran last"),
            )),
        }
    }
}

/// Does it.
pub(crate) fn run(arguments: &SwapArguments) -> Result<(), Failure> {
    let dir = arguments.running.run_dir()?;
    let (plugin, file) = &arguments.plugin;
    let query = ControlClient::find(&dir, &arguments.query)?;
    let client = ControlClient::connect(&dir, query.id)?;
    let terms = SwapTerms { canary: arguments.canary.terms(), ..arguments.terms.terms() };
    let asked = client.swap(plugin, Path::new(file), &terms)?;
    follow(asked, &arguments.terms, if terms.canary.is_some() { "canary" } else { "taken" })
}

/// Tells the verdict, and what becomes of the swap; `word` is for the last line.
pub(crate) fn follow(asked: AskedSwap, arguments: &SwapTermsArguments, word: &str) -> Result<(), Failure> {
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
    arguments.wait(&mut pending, |taken| {
        let (from, to) = (short(taken.from), short(taken.to));
        format!("{word:<10} {plugin} {from} -> {to}, from batch {} on\n", taken.batch)
    })
}

fn short(digest: Digest) -> String {
    digest.short()
}

fn time(text: &str) -> Result<Duration, String> {
    let micros = duration::parse_micros(text).map_err(|error| error.to_string())?;
    let micros = u64::try_from(micros).map_err(|_| "a time to wait cannot be negative".to_owned())?;
    Ok(Duration::from_micros(micros))
}
