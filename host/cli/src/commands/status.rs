//! `millstream status`: what running queries do.

use super::query_arguments::RunningArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::control::{ControlClient, RunningQuery};
use millstream_runtime::{CanaryProgress, PluginProgress};
use std::fmt::Write;

/// Shows one running query with the progress of its last batch, or a line for each of them.
#[derive(Args)]
#[command(after_help = "Examples:\n  millstream status\n  millstream status query.toml")]
pub(crate) struct StatusArguments {
    /// The running query: its query file, name, or id; all of them when left out.
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    #[command(flatten)]
    running: RunningArguments,
}

/// Does it.
pub(crate) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    let dir = arguments.running.run_dir()?;
    let Some(which) = &arguments.query else {
        let lines = ControlClient::running(&dir)?.iter().map(line).collect::<String>();
        return output::print(&lines);
    };
    let query = ControlClient::find(&dir, which)?;
    let mut text = line(&query);
    if let Some(progress) = &query.last_progress {
        for plugin in &progress.plugins {
            let refused = plugin.swap_refused.as_ref().map(|why| format!(", last swap refused: {why}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  plugin {} {}{}", plugin.name, plugin.digest, refused.unwrap_or_default());
            let _ = writeln!(text, "    {}", spent(plugin));
            if let Some(canary) = &plugin.canary {
                let _ = writeln!(text, "    {}", shown(canary));
            }
        }
        if let Some(tenant) = &progress.tenant {
            let _ = writeln!(
                text,
                "  tenant {}: {} calls, {} rows, {:.1} ms of CPU, {} instances",
                tenant.name,
                tenant.calls,
                tenant.rows,
                tenant.cpu_us as f64 / 1000.0,
                tenant.instances
            );
        }
        for state in &progress.state_operators {
            let _ = writeln!(text, "  state {}: {} rows", state.uid, state.num_rows_total);
        }
    }
    output::print(&text)
}

/// What a plugin spent in the last batch.
fn spent(plugin: &PluginProgress) -> String {
    let ms = |us: u64| us as f64 / 1000.0;
    let throttled =
        if plugin.throttled_us > 0 { format!(", waited {:.0} ms", ms(plugin.throttled_us)) } else { String::new() };
    format!(
        "{} calls, {} rows, {} faults, {} traps, {:.1} ms of CPU, {:.1} MiB of memory{throttled}",
        plugin.calls,
        plugin.rows,
        plugin.faults,
        plugin.traps,
        ms(plugin.cpu_us),
        plugin.memory_bytes as f64 / f64::from(1 << 20),
    )
}

/// A canary, and what it has shown.
fn shown(canary: &CanaryProgress) -> String {
    let CanaryProgress { share_percent, batches, of_batches, rows, differing, .. } = canary;
    let candidate = canary.candidate.get(..12).unwrap_or(&canary.candidate);
    let mut text = format!("canary {candidate} on {share_percent} % of the keys, {batches} of {of_batches} batches: ");
    text.push_str(&format!("{rows} rows, {differing} answers otherwise"));
    if let Some(ratio) = canary.cost_ratio {
        text.push_str(&format!(", {ratio:.2} times the CPU time"));
    }
    if let Some(failed) = &canary.failed {
        text.push_str(&format!(", given up: {failed}"));
    }
    text
}

fn line(query: &RunningQuery) -> String {
    let batch = match &query.last_progress {
        Some(progress) => format!("batch {} done", progress.batch_id),
        None => "no batch yet".into(),
    };
    format!("{}: {}, {batch}, process {}\n", query.label(), query.message, query.pid)
}
