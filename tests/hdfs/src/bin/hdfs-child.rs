//! `hdfs-child QUERY_FILE HOST_FILE`: runs the query of a query file until its input is at its end.

#![allow(clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, anyhow};
use millstream_common::describe_chain;
use millstream_runtime::query_file::{Overrides, load};
use millstream_runtime::{Session, StreamingQuery};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [query, host] = arguments.as_slice() else {
        eprintln!("usage: hdfs-child QUERY_FILE HOST_FILE");
        return ExitCode::from(2);
    };
    match run(Path::new(query), Path::new(host)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(query: &Path, host: &Path) -> Result<()> {
    let loaded = load(query, Some(host), &[], Overrides::default()).map_err(|error| anyhow!(describe_chain(&error)))?;
    let session = Session::new().context("there is no session")?;
    let query = StreamingQuery::start(&session, loaded.spec, None).map_err(|error| anyhow!(describe_chain(&error)))?;
    query.await_termination().map_err(|error| anyhow!(describe_chain(&*error)))
}
