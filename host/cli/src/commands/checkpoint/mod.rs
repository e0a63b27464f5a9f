//! `millstream checkpoint …`: what is in a query's durable folder.

mod repartition;
mod show;
mod verify;

use super::json;
use crate::failure::Failure;
use clap::Subcommand;

/// What can be done with checkpoints.
#[derive(Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Shows the query, the last batch, its code and its state.
    Show(show::ShowArguments),
    /// Reads everything and says what is wrong.
    Verify(verify::VerifyArguments),
    /// Spreads the state of a stopped query over another number of partitions.
    Repartition(repartition::RepartitionArguments),
}

impl CheckpointCommand {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Show(arguments) => show::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Repartition(arguments) => repartition::run(&arguments),
        }
    }
}
