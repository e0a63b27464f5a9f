//! `millstream checkpoint verify`.

use crate::commands::checkpoint_arguments::CheckpointArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_common::Fault;
use millstream_runtime::Session;
use millstream_runtime::inspect::{VerifyReport, verify};
use std::fmt::Write;

/// Reads every entry of the logs, every component, and the state of every batch that can be returned to, and says what is
/// wrong with each file. Reads only.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream checkpoint verify checkpoints/words\n  \
    millstream checkpoint verify s3://bucket/words --host-file host.toml --json\n\n\
    Exit codes: 0 whole, 2 something is wrong.")]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    checkpoint: CheckpointArguments,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<(), Failure> {
    let report = verify(&Session::new()?, &arguments.checkpoint.place()?)?;
    output::print(&if arguments.json { super::json(&report)? } else { describe(&report) })?;
    if report.findings.is_empty() { Ok(()) } else { Err(Failure::said(Fault::Corrupt)) }
}

fn describe(report: &VerifyReport) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    for finding in &report.findings {
        let _ = writeln!(text, "{}: {}", finding.path, finding.what);
        if let Some(way_out) = &finding.way_out {
            let _ = writeln!(text, "  hint: {way_out}");
        }
    }
    let _ = writeln!(
        text,
        "checkpoint {}: {} batches defined, {} done, {} components, {} stores read, {}",
        report.place,
        report.offsets,
        report.commits,
        report.plugins,
        report.stores,
        match report.findings.len() {
            0 => "all whole".into(),
            1 => "1 thing is wrong".into(),
            many => format!("{many} things are wrong"),
        }
    );
    text
}
