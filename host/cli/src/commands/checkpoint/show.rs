//! `millstream checkpoint show`.

use crate::commands::checkpoint_arguments::CheckpointArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::Session;
use millstream_runtime::inspect::{BatchSummary, CanarySummary, CheckpointSummary, checkpoint};
use std::fmt::Write;

/// Shows whose checkpoint it is, which batches it has, what a restart would do, and the offsets, code and state of the last
/// batch: per operator its partitions with version, files and bytes. Reads only.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream checkpoint show checkpoints/words\n  \
    millstream checkpoint show query.toml --keys\n  \
    millstream checkpoint show s3://bucket/words --host-file host.toml --json")]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    checkpoint: CheckpointArguments,
    /// Reads the state and counts its keys.
    #[arg(long)]
    keys: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let summary = checkpoint(&Session::new()?, &arguments.checkpoint.place()?, arguments.keys)?;
    output::print(&if arguments.json { super::json(&summary)? } else { describe(&summary) })
}

fn describe(summary: &CheckpointSummary) -> String {
    let mut text = String::new();
    let mut line = |title: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{title:<10} {value}");
    };
    line("place", &summary.place);
    line("query", &format!("{} {}", summary.name.as_deref().unwrap_or("unnamed"), summary.query));
    line("made", &format!("{}, format {}", summary.created, summary.format_version));
    if let Some(lease) = &summary.lease {
        let state = if lease.released { "given back by" } else { "held by" };
        line("lease", &format!("{state} {}, until {}", lease.holder, lease.expires));
    }
    line("defined", &span(summary.defined));
    line("done", &span(summary.done));
    line("next", &summary.next);
    if let Some(last) = &summary.last {
        batch(last, &mut line);
    }
    for state in &summary.state {
        let (partitions, version) = (state.partitions, state.version);
        let size = size(state.files, state.bytes, state.keys);
        line("state", &format!("{} in {partitions} partitions: version {version}, {size}", state.uid));
        if let Some(schema) = &state.schema {
            line("", &format!("  {schema}"));
        }
        if state.families.len() > 1 {
            line("", &format!("  families {}", state.families.join(", ")));
        }
        for partition in &state.by_partition {
            let size = self::size(partition.files, partition.bytes, partition.keys);
            line("", &format!("  partition {}: version {}, {size}", partition.partition, partition.version));
        }
    }
    text
}

fn size(files: usize, bytes: u64, keys: Option<u64>) -> String {
    let keys = keys.map(|keys| format!(", {keys} keys")).unwrap_or_default();
    format!("{files} files, {bytes} bytes{keys}")
}

fn batch(last: &BatchSummary, line: &mut impl FnMut(&str, &str)) {
    line("batch", &format!("{} of {}", last.batch, last.time));
    if let Some((from, to)) = last.repartition {
        line("", &format!("  spreads the state over {to} partitions in place of {from}"));
    }
    if let Some(watermark) = &last.watermark {
        line("watermark", watermark);
    }
    for (name, range) in &last.sources {
        let offset = |offset: &Option<serde_json::Value>| offset.as_ref().map_or("the start".into(), |o| o.to_string());
        line("source", &format!("{name}: {} to {}", offset(&range.start), offset(&range.end)));
    }
    for (name, plugin) in &last.plugins {
        let swapped = if plugin.digest == plugin.declared { "" } else { ", swapped in" };
        line("plugin", &format!("{name}: {} ({}){swapped}", plugin.digest, plugin.wit));
        if let Some(canary) = &plugin.canary {
            let CanarySummary { candidate, share, batches, of_batches, rows, differing, .. } = canary;
            let failed = canary.failed.as_ref().map(|why| format!(", given up: {why}")).unwrap_or_default();
            line(
                "canary",
                &format!(
                    "{name}: {candidate} on {share} of the keys since batch {}, {batches} of {of_batches} batches, \
                     {rows} rows, {differing} answers otherwise{failed}",
                    canary.first_batch
                ),
            );
        }
    }
    for (name, value) in &last.settings {
        line("setting", &format!("{name} = {value}"));
    }
}

fn span(batches: Option<(u64, u64)>) -> String {
    match batches {
        None => "none".into(),
        Some((first, last)) if first == last => format!("batch {first}"),
        Some((first, last)) => format!("batches {first} to {last}"),
    }
}
