//! Output mode: which rows of the result go to the sink in each batch (Spark's three modes).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which rows of the result table a batch hands to the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// Rows that are final, each once. Spark's default.
    #[default]
    Append,
    /// Rows that changed in this batch.
    Update,
    /// The whole result, each batch.
    Complete,
}

impl fmt::Display for OutputMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "append",
            Self::Update => "update",
            Self::Complete => "complete",
        })
    }
}

/// The text is no output mode.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an output mode: use append, update or complete")]
pub struct OutputModeError(String);

impl FromStr for OutputMode {
    type Err = OutputModeError;

    fn from_str(text: &str) -> Result<Self, OutputModeError> {
        match text.to_ascii_lowercase().as_str() {
            "append" => Ok(Self::Append),
            "update" => Ok(Self::Update),
            "complete" => Ok(Self::Complete),
            _ => Err(OutputModeError(text.to_owned())),
        }
    }
}
