//! `millstream plugin …`: from nothing to a component, and what is in one.

mod build;
mod cache;
mod check;
mod history;
mod inspect;
mod lock;
mod new;
mod pull;
mod push;
mod sign;
mod templates;
mod test;
mod verify;

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
    /// Puts a component into a registry, as a package.
    Push(push::PushArguments),
    /// Gets a component out of a registry.
    Pull(pull::PullArguments),
    /// Pins the packages of a query that are not pinned yet.
    Lock(lock::LockArguments),
    /// Looks where the tags of a query's packages lead now, and pins that.
    Update(lock::UpdateArguments),
    /// Signs a component.
    Sign(sign::SignArguments),
    /// Says who has signed a component.
    Verify(verify::VerifyArguments),
    /// Shows what is kept of compiled components and pulled packages, or removes it.
    Cache(cache::CacheArguments),
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
            Self::Push(arguments) => push::run(&arguments),
            Self::Pull(arguments) => pull::run(&arguments),
            Self::Lock(arguments) => lock::lock(&arguments),
            Self::Update(arguments) => lock::update(&arguments),
            Self::Sign(arguments) => sign::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Cache(arguments) => cache::run(&arguments),
        }
    }
}
