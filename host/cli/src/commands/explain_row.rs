//! `millstream explain-row`: what made a row.

use super::json;
use super::query_arguments::{QueryArguments, pair};
use crate::failure::Failure;
use crate::{output, session};
use clap::Args;
use millstream_runtime::explain_row::{RowChoice, RowDocument, explain_row};
use std::fmt::Write;
use std::path::PathBuf;

/// Puts a row that went out into a folder with everything that made it: the rows of the input without which it does not come
/// out, the state before, the components, the query and its configuration, watermarks and offsets. The folder gives the same
/// row again on any machine, without the sources and without the checkpoint: `millstream replay FOLDER`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream explain-row query.toml --batch 41 --row 0 --out row-of-batch-41\n  \
    millstream explain-row query.toml --batch 41 --where word=help --out row-of-batch-41\n  \
    millstream replay row-of-batch-41\n\n\
    `millstream replay query.toml --batch 41 --rows` shows the rows of the batch.")]
pub(crate) struct ExplainRowArguments {
    #[command(flatten)]
    query: QueryArguments,
    /// The batch that gave the row.
    #[arg(long, value_name = "N")]
    batch: u64,
    /// The row by its number among the rows that a replay of the batch gives, from 0.
    #[arg(long, value_name = "K", required_unless_present = "conditions", conflicts_with = "conditions")]
    row: Option<u64>,
    /// The first row that has this value in this column of the result; may be given several times.
    #[arg(long = "where", id = "conditions", value_name = "COLUMN=VALUE", value_parser = pair)]
    conditions: Vec<(String, String)>,
    /// The folder, which must be empty or not be there.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &ExplainRowArguments) -> Result<(), Failure> {
    let query = arguments.query.load()?;
    let row = match arguments.row {
        Some(row) => RowChoice::Number(row),
        None => RowChoice::Where(arguments.conditions.clone()),
    };
    let session = session::of_query(&query);
    let document = explain_row(&session, &query.spec, arguments.batch, &row, &arguments.out)?;
    if arguments.json {
        return output::print(&json(&document)?);
    }
    let mut text = describe(&document);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "folder     {}", arguments.out.display());
    output::print(&text)
}

fn describe(document: &RowDocument) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "row        {}", document.row);
    let watermark = document.watermark.as_ref().map(|at| format!(", watermark {at}")).unwrap_or_default();
    let _ = writeln!(text, "batch      {} of {}{watermark}", document.batch, document.time);
    for (plugin, made_by) in &document.made_by {
        let canary = made_by.canary.as_ref().map(|canary| format!(", canary {canary}")).unwrap_or_default();
        let _ = writeln!(text, "plugin     {plugin} {}{canary}", made_by.digest);
    }
    let narrowed = &document.narrowed;
    let least = match narrowed.is_least {
        true => "without any of them it does not come out",
        false => "not all of them may be needed: there were too many to try",
    };
    let _ = writeln!(text, "input      {} of {} rows of the batch: {least}", narrowed.rows, narrowed.of_rows);
    for input in &document.inputs {
        let _ = writeln!(text, "           {} rows of {} ({})", input.rows, input.stream, input.columns.join(", "));
    }
    text
}
