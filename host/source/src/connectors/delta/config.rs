//! The options of the Delta source, with Delta's names and defaults.

use crate::{SourceError, SourceSpec};
use millstream_client::store_options::{store_option_names, store_options, with_host_options};
use millstream_common::{Options, ReadLimit};

const KNOWN: [&str; 8] = [
    "path",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "startingVersion",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "versionAsOf",
];

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With the table as it is, or as it was at a version.
    Table(Option<u64>),
    /// With what a version adds.
    Version(u64),
    /// With the version after the newest.
    Latest,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct DeltaConfig {
    pub(super) path: String,
    /// Credentials, region and the like.
    pub(super) store: Vec<(String, String)>,
    pub(super) start: Start,
    pub(super) limit: ReadLimit,
    /// At most so many bytes per batch, beside `limit`; at least one file.
    pub(super) max_bytes: u64,
    pub(super) ignore_deletes: bool,
    pub(super) ignore_changes: bool,
    pub(super) skip_change_commits: bool,
}

impl DeltaConfig {
    /// Checks the options; `host` is what the host says of object stores.
    pub(super) fn new(spec: &SourceSpec, host: &[(String, String)]) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        let path = options.require(owner, "path")?;
        let store = store_option_names(path, options);
        options.only(owner, &[&KNOWN[..], &store].concat())?;
        if spec.schema.is_some() {
            let reason = "a Delta table has a schema of its own; declare none".to_owned();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        if path.trim().is_empty() {
            return Err(Options::invalid(owner, "path", path, "it cannot be empty").into());
        }
        let expected = "write a whole number greater than 0";
        let files = options.parse::<u64>(owner, "maxFilesPerTrigger", expected)?;
        let bytes = options.parse::<u64>(owner, "maxBytesPerTrigger", expected)?;
        for (name, value) in [("maxFilesPerTrigger", files), ("maxBytesPerTrigger", bytes)] {
            if value == Some(0) {
                return Err(Options::invalid(owner, name, "0", expected).into());
            }
        }
        let expected = "write the number of a version";
        let as_of = options.parse::<u64>(owner, "versionAsOf", expected)?;
        let start = match options.get("startingVersion") {
            None => Start::Table(as_of),
            Some(text) if as_of.is_some() => {
                return Err(Options::invalid(owner, "startingVersion", text, "versionAsOf is set too; keep one").into());
            }
            Some(text) if text.eq_ignore_ascii_case("latest") => Start::Latest,
            Some(text) => Start::Version(
                text.trim()
                    .parse()
                    .map_err(|_| Options::invalid(owner, "startingVersion", text, "write a version, or latest"))?,
            ),
        };
        Ok(Self {
            path: path.to_owned(),
            store: with_host_options(path, host, store_options(path, options)),
            start,
            limit: ReadLimit::MaxFiles(files.unwrap_or(1000)),
            max_bytes: bytes.unwrap_or(u64::MAX),
            ignore_deletes: options.flag(owner, "ignoreDeletes", false)?,
            ignore_changes: options.flag(owner, "ignoreChanges", false)?,
            skip_change_commits: options.flag(owner, "skipChangeCommits", false)?,
        })
    }
}
