//! `millstream plugin …`: from nothing to a component, and what is in one.

mod build;
mod check;
mod history;
mod inspect;
mod new;
mod templates;
mod test;

use crate::failure::Failure;
use clap::Subcommand;

/// What can be done with plugins.
#[derive(Subcommand)]
pub(crate) enum PluginCommand {
    /// Makes the folder of a new plugin, which builds and passes its tests as it is.
    New(new::NewArguments),
    /// Builds a plugin's component.
    Build(build::BuildArguments),
    /// Runs a plugin's own tests, without WebAssembly.
    Test(test::TestArguments),
    /// Shows a component's functions, permissions, digest and size.
    Inspect(inspect::InspectArguments),
    /// Says whether a component could take a plugin's place, and what would change.
    Check(check::CheckArguments),
    /// Shows which component ran since when, and the verdicts on them.
    History(history::HistoryArguments),
}

impl PluginCommand {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::New(arguments) => new::run(&arguments),
            Self::Build(arguments) => build::run(&arguments),
            Self::Test(arguments) => test::run(&arguments),
            Self::Inspect(arguments) => inspect::run(&arguments),
            Self::Check(arguments) => check::run(&arguments),
            Self::History(arguments) => history::run(&arguments),
        }
    }
}
