//! `millstream check`: would it start?

use super::query_arguments::QueryArguments;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_runtime::inspect;
use millstream_runtime::query_file::LoadedQuery;
use std::fmt::Write;

/// Plans a query, checks its options, its plugins, its output mode and what its checkpoint says; runs and creates nothing.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream check query.toml\n  \
    millstream check query.toml --host-file host.toml --show-settings")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    query: QueryArguments,
    /// Prints every value with the place that it is from.
    #[arg(long)]
    show_settings: bool,
}

/// Does it.
pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let loaded = arguments.query.load()?;
    let session = session::of_query(&loaded);
    let checked = inspect::check(&session, &loaded.spec)?;
    let next = match &loaded.spec.checkpoint {
        Some(place) => Some(inspect::resumes(&session, place, &loaded.spec)?),
        None => None,
    };
    let spec = &loaded.spec;
    let mut text = format!("plan ok: {}\n", spec.name.as_deref().unwrap_or("unnamed query"));
    let mut line = |title: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {title:<11} {value}");
    };
    for (name, format) in &checked.sources {
        line("source", &format!("{name} ({format})"));
    }
    for state in &checked.state {
        line("state", &format!("{} in {} partitions: {}", state.uid, state.partitions, state.schema));
    }
    for (name, digest) in &checked.plugins {
        line("plugin", &format!("{name} {}", digest.short()));
    }
    let columns = checked.columns.iter().map(|(name, data_type)| format!("{name} {data_type}"));
    line("result", &columns.collect::<Vec<_>>().join(", "));
    line("sink", &format!("{} in mode {}", spec.sink.format, spec.mode));
    line("trigger", &spec.trigger.to_string());
    match (&spec.checkpoint, next) {
        (Some(place), Some(next)) => line("checkpoint", &format!("{place}: {next}")),
        _ => line("checkpoint", "none: state is lost when the query stops"),
    }
    if arguments.show_settings {
        text.push('\n');
        text.push_str(&settings(&loaded));
    }
    output::print(&text)
}

/// Every value with its origin, in columns.
fn settings(loaded: &LoadedQuery) -> String {
    let width = loaded.values.iter().map(|value| value.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for value in &loaded.values {
        let _ = writeln!(text, "{:<width$} = {}  [{}]", value.name, value.value, value.origin);
    }
    text
}
