//! `millstream plugin test`: a plugin's own tests, on this machine.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::inspect::{Project, guest_target_dir, test_plugin};
use std::path::PathBuf;

/// Runs a plugin's own tests with the test runner of its language: cargo, unittest, node. The functions run as ordinary
/// functions, no component is made.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    millstream plugin test plugins/words")]
pub(crate) struct TestArguments {
    /// The plugin's folder.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Does it.
pub(crate) fn run(arguments: &TestArguments) -> Result<(), Failure> {
    let project = Project::open(&arguments.dir)?;
    Ok(test_plugin(&project, &guest_target_dir(), &output::note)?)
}
