//! The options of the Delta sink.

use crate::byte_length::byte_length;
use crate::{SinkError, SinkSpec};
use millstream_client::store_options::{store_option_names, store_options};
use millstream_common::{OptionError, Options};

/// The name of the connector.
pub(super) const NAME: &str = "delta";
const OWNER: &str = "sink `delta`";
const KNOWN: [&str; 6] =
    ["path", "partitionBy", "maxRecordsPerFile", "checkpointInterval", "compactAfterFiles", "targetFileSize"];
/// How long a file becomes that is put together, where the user did not say: its rows are in memory.
const TARGET_BYTES: u64 = 64 << 20;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct DeltaConfig {
    pub(super) path: String,
    /// Credentials, region and the like.
    pub(super) store: Vec<(String, String)>,
    /// The partition columns of a table that is to be made; `None` takes what there is.
    pub(super) partition_by: Option<Vec<String>>,
    /// How many rows a file may have.
    pub(super) max_rows: usize,
    /// Every how many commits the log gets a checkpoint; 0 for never.
    pub(super) checkpoint_interval: u64,
    /// Whether small files are put together, and how.
    pub(super) compaction: Option<CompactionConfig>,
}

/// How small files are put together.
#[derive(Debug, Clone)]
pub(super) struct CompactionConfig {
    /// From how many of them on in a partition.
    pub(super) after_files: usize,
    /// How long a file is to become; one that is shorter than half of it is small.
    pub(super) target_bytes: u64,
}

impl DeltaConfig {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let path = options.require(OWNER, "path")?;
        let store = store_option_names(path, options);
        options.only(OWNER, &[&KNOWN[..], &store].concat())?;
        if path.trim().is_empty() {
            return Err(Options::invalid(OWNER, "path", path, "it cannot be empty").into());
        }
        let expected = "write a number of rows, or 0 for no limit";
        let rows = options.parse::<usize>(OWNER, "maxRecordsPerFile", expected)?.unwrap_or(0);
        Ok(Self {
            path: path.to_owned(),
            store: store_options(path, options),
            partition_by: partition_by(options)?,
            max_rows: if rows == 0 { usize::MAX } else { rows },
            checkpoint_interval: options
                .parse(OWNER, "checkpointInterval", "write a number of commits, or 0 for never")?
                .unwrap_or(10),
            compaction: compaction(options)?,
        })
    }
}

/// Whether and how small files are put together.
fn compaction(options: &Options) -> Result<Option<CompactionConfig>, OptionError> {
    let expected = "write a number of files from 2 on, or 0 for never";
    let after_files = options.parse::<usize>(OWNER, "compactAfterFiles", expected)?.unwrap_or(0);
    let target_bytes = byte_length(OWNER, options, "targetFileSize")?;
    match (after_files, options.get("targetFileSize")) {
        (0, Some(value)) => {
            let reason = "it is the length of files that are put together; set compactAfterFiles too";
            Err(Options::invalid(OWNER, "targetFileSize", value, reason))
        }
        (0, None) => Ok(None),
        (1, _) => Err(Options::invalid(OWNER, "compactAfterFiles", "1", expected)),
        (after_files, _) => {
            let target_bytes = target_bytes.map_or(TARGET_BYTES, |bytes| bytes as u64);
            Ok(Some(CompactionConfig { after_files, target_bytes }))
        }
    }
}

/// Names with commas between, or a JSON array of names.
fn partition_by(options: &Options) -> Result<Option<Vec<String>>, OptionError> {
    let Some(text) = options.get("partitionBy") else { return Ok(None) };
    let invalid = || Options::invalid(OWNER, "partitionBy", text, "write names of columns with commas between");
    let names: Vec<String> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|_| invalid())?
    } else {
        text.split(',').map(|name| name.trim().to_owned()).collect()
    };
    if names.iter().any(String::is_empty) { Err(invalid()) } else { Ok(Some(names)) }
}
