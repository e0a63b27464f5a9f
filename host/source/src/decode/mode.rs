//! What happens to a malformed record. Source of the semantics: Spark's option `mode`.

use millstream_common::{OptionError, Options};

/// What happens to a malformed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParseMode {
    /// What can be read is kept, the rest is null. Spark's default.
    #[default]
    Permissive,
    /// The record vanishes.
    DropMalformed,
    /// The read fails.
    FailFast,
}

impl ParseMode {
    /// Reads option `mode`.
    ///
    /// # Errors
    /// When it is none of Spark's three.
    pub fn from_options(owner: &str, options: &Options) -> Result<Self, OptionError> {
        let Some(value) = options.get("mode") else { return Ok(Self::Permissive) };
        match value.trim().to_ascii_uppercase().as_str() {
            "PERMISSIVE" => Ok(Self::Permissive),
            "DROPMALFORMED" => Ok(Self::DropMalformed),
            "FAILFAST" => Ok(Self::FailFast),
            _ => Err(Options::invalid(owner, "mode", value, "write PERMISSIVE, DROPMALFORMED or FAILFAST")),
        }
    }
}
