//! The options of the console sink.

use crate::{SinkError, SinkSpec};
use millstream_common::Options;

/// The options, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConsoleConfig {
    pub(super) rows: usize,
    /// How many characters a cell may have; 0 for any number.
    pub(super) truncate: usize,
}

impl ConsoleConfig {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        const OWNER: &str = "sink `console`";
        spec.options.only(OWNER, &["numRows", "truncate"])?;
        let rows = spec.options.parse(OWNER, "numRows", "write a whole number of rows")?.unwrap_or(20);
        let truncate = match spec.options.get("truncate").unwrap_or("true") {
            text if text.eq_ignore_ascii_case("true") => 20,
            text if text.eq_ignore_ascii_case("false") => 0,
            text => text.trim().parse().map_err(|_| {
                Options::invalid(OWNER, "truncate", text, "write true, false or a number of characters")
            })?,
        };
        Ok(Self { rows, truncate })
    }
}
