//! What commands that look at a checkpoint have in common.

use crate::environment;
use crate::failure::Failure;
use crate::session;
use clap::Args;
use millstream_runtime::Session;
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
    Ok(place_and_session(place, host)?.0)
}

/// The same, and a session as the host file has it, in which code of the checkpoint can be run.
pub(crate) fn place_and_session(place: &str, host: Option<&Path>) -> Result<(CheckpointPlace, Session), Failure> {
    let environment = environment::variables();
    let file = Path::new(place);
    if file.is_file() {
        let query = query_file::load(file, host, &environment, Overrides::default())?;
        let session = session::of_query(&query);
        return Ok((CheckpointPlace::of_query(query.spec)?, session));
    }
    let places = load_host_places(host, &environment)?;
    let session = session::of_host(&places);
    Ok((CheckpointPlace { place: place.to_owned(), options: places.object_store, query: None }, session))
}
