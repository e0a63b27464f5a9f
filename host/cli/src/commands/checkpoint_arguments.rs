//! What commands that look at a checkpoint have in common.

use crate::environment;
use crate::failure::Failure;
use clap::Args;
use millstream_runtime::inspect::CheckpointPlace;
use millstream_runtime::query_file::{self, Overrides, load_host_places};
use std::path::{Path, PathBuf};

/// A checkpoint and how to get at it.
#[derive(Args)]
pub(crate) struct CheckpointArguments {
    /// The checkpoint's folder or URL, or the query file of the query that has it.
    #[arg(value_name = "CHECKPOINT|QUERY.toml")]
    place: String,
    /// The operator's file, with the credentials of object stores [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
}

impl CheckpointArguments {
    /// The checkpoint; of a file it is the query's.
    pub(crate) fn place(&self) -> Result<CheckpointPlace, Failure> {
        place_of(&self.place, self.host_file.as_deref())
    }
}

/// The checkpoint at a place; of a file it is the query's.
pub(crate) fn place_of(place: &str, host: Option<&Path>) -> Result<CheckpointPlace, Failure> {
    let environment = environment::variables();
    let file = Path::new(place);
    if file.is_file() {
        let query = query_file::load(file, host, &environment, Overrides::default())?;
        return Ok(CheckpointPlace::of_query(query.spec)?);
    }
    let options = load_host_places(host, &environment)?.object_store;
    Ok(CheckpointPlace { place: place.to_owned(), options, query: None })
}
