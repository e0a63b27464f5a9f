//! What commands that load a query have in common.

use crate::environment;
use crate::failure::Failure;
use clap::Args;
use millstream_runtime::control::RunDir;
use millstream_runtime::query_file::{self, HostPlaces, LoadedQuery, Overrides};
use std::path::{Path, PathBuf};

/// A query and the flags that change it.
#[derive(Args)]
pub(crate) struct QueryArguments {
    /// The query file.
    #[arg(value_name = "QUERY.toml")]
    query: PathBuf,
    /// The operator's file: grants, credentials, settings for all queries [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
    /// When batches start: default, once, "available now", or an interval such as "10 seconds".
    #[arg(long, value_name = "TRIGGER")]
    trigger: Option<String>,
    /// The checkpoint's folder or URL.
    #[arg(long, value_name = "PLACE")]
    checkpoint: Option<String>,
    /// A setting of the query; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Fails when the lock file does not say which bytes each package is, and does not change it.
    #[arg(long)]
    locked: bool,
}

impl QueryArguments {
    /// What the operator's file says that does not belong to a query.
    pub(crate) fn host_places(&self) -> Result<HostPlaces, Failure> {
        Ok(query_file::load_host_places(self.host_file.as_deref(), &environment::variables())?)
    }

    /// The query file, or what stands in its place.
    pub(crate) fn file(&self) -> &Path {
        &self.query
    }

    /// The query.
    pub(crate) fn load(&self) -> Result<LoadedQuery, Failure> {
        let overrides = Overrides {
            trigger: self.trigger.clone(),
            checkpoint: self.checkpoint.clone(),
            settings: self.set.clone(),
            locked: self.locked,
            update: None,
        };
        Ok(query_file::load(&self.query, self.host_file.as_deref(), &environment::variables(), overrides)?)
    }
}

/// Which running queries there are to choose from.
#[derive(Args)]
pub(crate) struct RunningArguments {
    /// The operator's file, if it names the folder of control sockets [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
}

impl RunningArguments {
    /// The folder of the control sockets.
    pub(crate) fn run_dir(&self) -> Result<RunDir, Failure> {
        let environment = environment::variables();
        let places = query_file::load_host_places(self.host_file.as_deref(), &environment)?;
        Ok(RunDir::locate(&environment, places.run_dir.as_deref())?)
    }
}

/// Splits `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write a name, `=`, and a value".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_two_sides() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        for text in ["", "a", "=b", "a=", " =b"] {
            assert!(pair(text).is_err(), "{text}");
        }
    }
}
