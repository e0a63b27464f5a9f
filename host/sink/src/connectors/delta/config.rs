//! The options of the Delta sink.

use crate::{SinkError, SinkSpec};
use millstream_client::delta::{is_store_option, store_options};
use millstream_common::{OptionError, Options};

/// The name of the connector.
pub(super) const NAME: &str = "delta";
const OWNER: &str = "sink `delta`";
const KNOWN: [&str; 4] = ["path", "partitionBy", "maxRecordsPerFile", "checkpointInterval"];

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
}

impl DeltaConfig {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let store = options.iter().map(|(name, _)| name).filter(|name| is_store_option(name));
        let known: Vec<&str> = KNOWN.iter().copied().chain(store).collect();
        options.only(OWNER, &known)?;
        let path = options.require(OWNER, "path")?;
        if path.trim().is_empty() {
            return Err(Options::invalid(OWNER, "path", path, "it cannot be empty").into());
        }
        let expected = "write a number of rows, or 0 for no limit";
        let rows = options.parse::<usize>(OWNER, "maxRecordsPerFile", expected)?.unwrap_or(0);
        Ok(Self {
            path: path.to_owned(),
            store: store_options(options),
            partition_by: partition_by(options)?,
            max_rows: if rows == 0 { usize::MAX } else { rows },
            checkpoint_interval: options
                .parse(OWNER, "checkpointInterval", "write a number of commits, or 0 for never")?
                .unwrap_or(10),
        })
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
