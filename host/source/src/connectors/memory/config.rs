//! The options of a memory stream.

use crate::{SourceError, SourceSpec};
use millstream_common::{Options, ReadLimit};

/// Checks the options and answers the limit: `maxBatchesPerTrigger` units per batch, or all.
pub(super) fn limit(spec: &SourceSpec) -> Result<ReadLimit, SourceError> {
    let owner = format!("source `{}`", spec.name);
    spec.options.only(&owner, &["maxBatchesPerTrigger"])?;
    let expected = "write a whole number greater than 0";
    match spec.options.parse(&owner, "maxBatchesPerTrigger", expected)? {
        None => Ok(ReadLimit::AllAvailable),
        Some(0) => Err(Options::invalid(&owner, "maxBatchesPerTrigger", "0", expected).into()),
        Some(units) => Ok(ReadLimit::MaxFiles(units)),
    }
}
