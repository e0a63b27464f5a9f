//! What becomes of rows that are gone before they were read.
//!
//! Sources that find such losses tell each with its place and range; the option `failOnDataLoss` decides about the query.

use crate::SourceError;
use std::fmt::Display;

/// Ends the query over losses when the user wants that; warns otherwise, and answers how much is lost, each loss by `size`.
pub(crate) fn judge<L: Display>(
    name: &str,
    losses: &[L],
    size: impl Fn(&L) -> u64,
    fails: bool,
) -> Result<u64, SourceError> {
    if losses.is_empty() {
        return Ok(0);
    }
    if fails {
        let what = losses.iter().map(L::to_string).collect::<Vec<_>>().join("; ");
        return Err(SourceError::DataLoss { name: name.to_owned(), what });
    }
    for loss in losses {
        tracing::warn!(source = name, "data is lost: {loss}; the query goes on");
    }
    Ok(losses.iter().map(size).fold(0, u64::saturating_add))
}
