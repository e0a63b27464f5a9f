//! `millstream state`: what an operator remembers.

use super::checkpoint_arguments::CheckpointArguments;
use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use millstream_runtime::inspect::{StateRequest, StateTable, state};
use millstream_runtime::{Export, Session};
use std::path::PathBuf;

/// Shows the keys and values that a stateful operator has after a batch, decoded, with the partition of each. Of an operator
/// with several families of keys, each is a table of its own. Reads only, also beside a running query.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream state query.toml\n  \
    millstream state checkpoints/words --operator query-aggregate --batch 41 --limit 20\n  \
    millstream state query.toml --format parquet --out state.parquet")]
pub(crate) struct StateArguments {
    #[command(flatten)]
    checkpoint: CheckpointArguments,
    /// The operator's uid; needed when the query has several.
    #[arg(long, value_name = "UID")]
    operator: Option<String>,
    /// The family of keys; all of them when left out.
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// The batch after which; the last one that is done when left out.
    #[arg(long, value_name = "N")]
    batch: Option<u64>,
    /// How to write the rows.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The file to write; standard output when left out.
    #[arg(long, value_name = "FILE", required_if_eq("format", "parquet"))]
    out: Option<PathBuf>,
    /// The most rows to show of each family.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns for people.
    Table,
    /// A JSON object per line: key, value, partition_id.
    Json,
    /// A Parquet file: key, value, partition_id.
    Parquet,
}

/// Does it.
pub(crate) fn run(arguments: &StateArguments) -> Result<(), Failure> {
    let request = StateRequest {
        operator: arguments.operator.clone(),
        family: arguments.family.clone(),
        batch: arguments.batch,
        limit: arguments.limit,
    };
    let tables = state(&Session::new()?, &arguments.checkpoint.place()?, &request)?;
    let mut bytes = Vec::new();
    match (arguments.format, &*tables) {
        (Format::Table, tables) => {
            for table in tables {
                bytes.extend(headline(table).into_bytes());
                let (schema, rows) = table.flat();
                bytes.extend(Export::Table.bytes(&schema, &rows)?);
            }
        }
        (Format::Json, [table]) => bytes = Export::Json.bytes(&table.schema, &table.rows)?,
        (Format::Parquet, [table]) => bytes = Export::Parquet.bytes(&table.schema, &table.rows)?,
        (_, tables) => {
            let known = tables.iter().map(|table| table.family.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Failure::query(
                format!("the state has several families with columns of their own: {known}"),
                Some("name one of them with `--family`"),
            ));
        }
    }
    let Some(path) = &arguments.out else {
        return output::print(&String::from_utf8_lossy(&bytes));
    };
    std::fs::write(path, bytes).map_err(|error| {
        Failure::outside(format!("cannot write `{}`: {error}", path.display()), Some("check the path"))
    })
}

fn headline(table: &StateTable) -> String {
    let family = if table.is_only { String::new() } else { format!(", family {}", table.family) };
    format!("{} after batch {}{family}\n", table.uid, table.batch)
}
