//! `millstream plugin history`: which code ran since when.

use crate::commands::checkpoint_arguments::CheckpointArguments;
use crate::commands::json;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::Session;
use millstream_runtime::inspect::{CanarySpan, CodeHistory, CodeSpan, history};
use std::fmt::Write;

/// Shows which component each plugin of a query ran from which batch on, who wanted it, and what the verdict on it was.
/// Reads only, also beside a running query.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin history query.toml\n  \
    millstream plugin history checkpoints/words --json")]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    checkpoint: CheckpointArguments,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &HistoryArguments) -> Result<(), Failure> {
    let histories = history(&Session::new()?, &arguments.checkpoint.place()?)?;
    output::print(&if arguments.json { json(&histories)? } else { histories.iter().map(describe).collect() })
}

fn describe(history: &CodeHistory) -> String {
    let mut text = format!("plugin     {}\n", history.plugin);
    for span in &history.components {
        line(span, &mut text);
    }
    history.canaries.iter().for_each(|span| canary(span, &mut text));
    text
}

fn canary(span: &CanarySpan, text: &mut String) {
    let batches = match span.to_batch {
        None => format!("from batch {} on", span.from_batch),
        Some(last) => format!("batches {} to {last}", span.from_batch),
    };
    let digest = span.digest.get(..12).unwrap_or(&span.digest);
    let CanarySpan { share, verdict, outcome, .. } = span;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {digest}  canary on {share} of the keys, {batches}: {verdict}, {outcome}");
    if let Some(why) = &span.why {
        let _ = writeln!(text, "                {why}");
    }
}

fn line(span: &CodeSpan, text: &mut String) {
    let batches = match span.to_batch {
        None => format!("from batch {} on", span.from_batch),
        Some(last) if last == span.from_batch => format!("batch {last}"),
        Some(last) => format!("batches {} to {last}", span.from_batch),
    };
    let gone = if span.is_kept { "" } else { ", no longer kept" };
    // Writing to a string cannot fail.
    let _ = write!(text, "  {}  {batches}, by {}", span.digest.get(..12).unwrap_or(&span.digest), span.by);
    if let Some(verdict) = &span.verdict {
        let approved = if span.approved { ", approved" } else { "" };
        let _ = write!(text, ": {verdict}{approved}");
    }
    if let Some(state) = &span.state {
        let _ = write!(text, ", state {state}");
    }
    let _ = writeln!(text, "{gone}");
    for finding in &span.findings {
        let _ = writeln!(text, "                {finding}");
    }
}
