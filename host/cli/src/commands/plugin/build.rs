//! `millstream plugin build`: source to component.

use super::inspect;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_runtime::inspect::{Profile, Project, build_plugin, component, guest_target_dir};
use millstream_runtime::query_file::read_component;
use std::path::{Path, PathBuf};

/// Compiles a plugin, makes it a component, and checks that the host takes it. The language is found by the files of the
/// folder, or named in its plugin.toml. Compiled code is kept for the next build in a folder that all plugins share
/// (MILLSTREAM_TARGET_DIR, or the user's cache).
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin build plugins/words\n  \
    millstream plugin build --out words-v2.wasm")]
pub(crate) struct BuildArguments {
    /// The plugin's folder.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The component's file; in the plugin's folder, named like the plugin, when left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compiles fast, for code that runs slowly.
    #[arg(long)]
    dev: bool,
}

/// Does it.
pub(crate) fn run(arguments: &BuildArguments) -> Result<(), Failure> {
    let project = Project::open(&arguments.dir)?;
    let profile = if arguments.dev { Profile::Dev } else { Profile::Release };
    let built = build_plugin(&project, profile, &guest_target_dir(), &output::note)?;
    let out = match (&arguments.out, built.file_name()) {
        (Some(out), _) => out.clone(),
        (None, Some(name)) => arguments.dir.join(name),
        (None, None) => built.clone(),
    };
    let bytes = read_component(&built)?;
    let report = component(&session::of_user(), &out.display().to_string(), &bytes)?;
    replace(&out, &bytes)?;
    output::print(&format!("{}\n{}", out.display(), inspect::describe(&report)))
}

/// Writes aside and renames: a query that reads the file sees the old component or the new one.
fn replace(out: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let aside = out.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&aside, bytes)
        .and_then(|()| std::fs::rename(&aside, out))
        .map_err(|error| Failure::outside(format!("cannot write `{}`: {error}", out.display()), None))
}
