//! `millstream checkpoint repartition`.

use crate::commands::checkpoint_arguments::CheckpointArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::Session;
use millstream_runtime::repartition::{Repartitioned, repartition};
use std::fmt::Write;

/// Spreads the state of all operators that are spread over partitions over another number of them. The query must be
/// stopped and its last batch done. It is done by a batch of its own, which reads nothing and gives nothing: from then on the
/// query runs with the new number, whatever its settings say, and the batches before stay as they are. When it is
/// interrupted, the next start of the query ends it, or the same command.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream checkpoint repartition query.toml --partitions 8\n  \
    millstream checkpoint repartition s3://bucket/words --host-file host.toml --partitions 1")]
pub(crate) struct RepartitionArguments {
    #[command(flatten)]
    checkpoint: CheckpointArguments,
    /// The number of partitions, from 1 to 1024.
    #[arg(long, value_name = "N")]
    partitions: u32,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &RepartitionArguments) -> Result<(), Failure> {
    let done = repartition(&Session::new()?, &arguments.checkpoint.place()?, arguments.partitions)?;
    output::print(&if arguments.json { super::json(&done)? } else { describe(&done) })
}

fn describe(done: &Repartitioned) -> String {
    let Some(batch) = done.batch else {
        return format!("the state has {} partitions already\n", done.to);
    };
    let mut text = String::new();
    for operator in &done.operators {
        // Writing to a string cannot fail.
        let _ = match operator.from == operator.to {
            true => writeln!(text, "{}: global, in one partition as before", operator.uid),
            false => writeln!(
                text,
                "{}: {} keys from {} to {} partitions",
                operator.uid, operator.keys, operator.from, operator.to
            ),
        };
    }
    let _ = writeln!(text, "batch {batch} done: {} to {} partitions", done.from, done.to);
    text
}
