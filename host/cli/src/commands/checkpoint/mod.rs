//! `millstream checkpoint …`: what is in a query's durable folder.

mod show;
mod verify;

use crate::environment;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use millstream_runtime::query_file::{HostPlaces, load_host_places};
use std::path::PathBuf;

/// What can be done with checkpoints.
#[derive(Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Shows the query, the last batch, its code and its state.
    Show(show::ShowArguments),
    /// Reads everything and says what is wrong.
    Verify(verify::VerifyArguments),
}

impl CheckpointCommand {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Show(arguments) => show::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
        }
    }
}

/// A checkpoint and how to get at it.
#[derive(Args)]
struct PlaceArguments {
    /// The checkpoint's folder or URL.
    #[arg(value_name = "PLACE")]
    place: String,
    /// The operator's file, with the credentials of object stores [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

impl PlaceArguments {
    fn host(&self) -> Result<HostPlaces, Failure> {
        Ok(load_host_places(self.host_file.as_deref(), &environment::variables())?)
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(value);
    json.map(|json| format!("{json}\n")).map_err(|error| Failure::outside(format!("cannot write JSON: {error}"), None))
}
