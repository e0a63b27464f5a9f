//! `millstream replay`: a batch again, as it was.

use super::json;
use super::query_arguments::QueryArguments;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_common::Fault;
use millstream_runtime::Export;
use millstream_runtime::explain_row::{is_row_folder, remake_row};
use millstream_runtime::replay::{Replay, replay};
use std::fmt::Write;
use std::path::PathBuf;

/// Runs a batch again that the checkpoint still has, with the code, the state and the input that it had, and says whether
/// rows and state come out the same. The query file gives the SQL and the place of the sources; code, offsets, times and
/// settings are those of the checkpoint. Nothing goes to the sink and nothing is written to the checkpoint. For a folder of
/// `millstream explain-row` in place of the query file its row is made again, from the folder alone.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream replay query.toml --batch 41\n  \
    millstream replay query.toml --batch 41 --rows\n  \
    millstream replay query.toml --batch 41 --out replayed --json\n  \
    millstream replay row-of-batch-41\n\n\
    Exit codes: 0 the same, 1 something differs.")]
pub(crate) struct ReplayArguments {
    #[command(flatten)]
    query: QueryArguments,
    /// The batch; left out for a folder that `millstream explain-row` made, which has one.
    #[arg(long, value_name = "N")]
    batch: Option<u64>,
    /// Keeps the rows and everything that the replay wrote in this folder, which must be empty or not be there.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Shows the rows, too.
    #[arg(long)]
    rows: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), Failure> {
    if is_row_folder(arguments.query.file()) {
        return remake(arguments);
    }
    let Some(batch) = arguments.batch else {
        return Err(Failure::query("the batch is missing", Some("say which with `--batch N`")));
    };
    let query = arguments.query.load()?;
    let replayed = replay(&session::of_query(&query), &query.spec, batch, arguments.out.as_deref())?;
    if arguments.rows {
        let rows = Export::Table.bytes(&replayed.schema, &replayed.rows)?;
        output::print(&String::from_utf8_lossy(&rows))?;
    }
    output::print(&if arguments.json { json(&replayed)? } else { describe(&replayed) })?;
    if replayed.is_same { Ok(()) } else { Err(Failure::said(Fault::Query)) }
}

/// Makes the row of a folder again.
fn remake(arguments: &ReplayArguments) -> Result<(), Failure> {
    let remade = remake_row(&session::of_host(&arguments.query.host_places()?), arguments.query.file())?;
    if arguments.rows {
        output::print(&remade.rows.iter().map(|row| format!("{row}\n")).collect::<String>())?;
    }
    let said = if remade.is_same { "the same" } else { "it does not come out" };
    output::print(&match arguments.json {
        true => {
            json(&serde_json::json!({ "row": remade.document.row, "isSame": remade.is_same, "rows": remade.rows }))?
        }
        false => format!("row        {}\n           {said}\n", remade.document.row),
    })?;
    if remade.is_same { Ok(()) } else { Err(Failure::said(Fault::Query)) }
}

fn describe(replay: &Replay) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "batch      {}: {} rows in, {} out", replay.batch, replay.input_rows, replay.output.rows);
    for (plugin, digest) in &replay.plugins {
        let _ = writeln!(text, "plugin     {plugin} {digest}");
    }
    let said = |digest: &str, was: &Option<String>| match was {
        Some(was) if was == digest => "the same".to_owned(),
        Some(was) => format!("differs, it was {was}"),
        None => "nothing to compare with".to_owned(),
    };
    for (stream, input) in &replay.inputs {
        let _ = writeln!(text, "input      {}  {}: {stream}", input.digest, said(&input.digest, &input.was));
    }
    let output = &replay.output;
    let _ = writeln!(text, "output     {}  {}", output.digest, said(&output.digest, &output.was));
    for state in &replay.state {
        let said = said(&state.digest, &state.was);
        let _ = writeln!(text, "state      {}  {said}: {}, {} keys", state.digest, state.uid, state.keys);
    }
    if let Some(folder) = &replay.folder {
        let _ = writeln!(text, "folder     {}", folder.display());
    }
    text
}
