//! `millstream plugin inspect`: what is in a component.

use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_common::{Digest, Fault, Hint};
use millstream_runtime::RuntimeError;
use millstream_runtime::inspect::{ComponentReport, component};
use millstream_runtime::query_file::read_component;
use std::fmt::Write;
use std::path::PathBuf;

/// Shows a component's functions with their Arrow types, what it asks the host for, its digest, size and WIT version. Of a
/// component that the host does not take, shows what it imports and exports, and why it is not taken.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin inspect words.wasm\n  \
    millstream plugin inspect words.wasm --json")]
pub(crate) struct InspectArguments {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(crate) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let bytes = read_component(&arguments.file)?;
    let name = arguments.file.display().to_string();
    let session = session::of_user();
    match component(&session, &name, &bytes) {
        Ok(report) if arguments.json => {
            let json = serde_json::to_string_pretty(&report);
            let json = json.map_err(|error| Failure::outside(format!("cannot write JSON: {error}"), None))?;
            output::print(&format!("{json}\n"))
        }
        Ok(report) => output::print(&describe(&report)),
        Err(error) => {
            if !arguments.json {
                output::print(&refused(&bytes, &error))?;
            }
            Err(error.into())
        }
    }
}

/// A component for people.
pub(super) fn describe(report: &ComponentReport) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    let _ = writeln!(text, "digest     {}", report.digest);
    let _ = writeln!(text, "size       {} bytes", report.size_bytes);
    let _ = writeln!(text, "world      millstream:plugin@{}", report.wit_version);
    list(&mut text, "may use", &report.imports);
    for function in &report.functions {
        let nulls = if function.sees_nulls { ", sees nulls" } else { "" };
        let _ = writeln!(text, "function   {}  [{}{nulls}]", function.signature, function.volatility);
    }
    for processor in &report.processors {
        let _ = writeln!(text, "processor  {}", processor.trim_start_matches("processor "));
    }
    for source in &report.sources {
        let _ = writeln!(text, "source     {}", source.trim_start_matches("source "));
    }
    for step in &report.migrations {
        let _ = writeln!(text, "migration  {step}");
    }
    text
}

fn list(text: &mut String, title: &str, names: &[String]) {
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let _ = writeln!(text, "{title:<10} {names}");
}

/// What can be told of bytes that the host refuses.
fn refused(bytes: &[u8], error: &RuntimeError) -> String {
    let mut text = format!("digest     {}\nsize       {} bytes\n", Digest::of(bytes), bytes.len());
    // Only of a well-formed component are names worth showing.
    if error.fault() == Fault::Query
        && let Ok(decoded) = wit_component::decode(bytes)
    {
        let resolve = decoded.resolve();
        if let wit_component::DecodedWasm::Component(_, world) = &decoded {
            let world = &resolve.worlds[*world];
            let imports = world.imports.keys().map(|key| resolve.name_world_key(key)).collect::<Vec<_>>();
            let exports = world.exports.keys().map(|key| resolve.name_world_key(key)).collect::<Vec<_>>();
            list(&mut text, "imports", &imports);
            list(&mut text, "exports", &exports);
        }
    }
    text
}
