//! A position in a source.

use crate::SourceError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A position in a source: JSON that only its source understands, compared by value.
///
/// A range is (start, end]: what stands after `start`, up to and including `end`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub serde_json::Value);

impl Offset {
    /// The number that is the whole offset, for sources that count.
    pub(crate) fn number(&self, name: &str) -> Result<i64, SourceError> {
        self.0.as_i64().ok_or_else(|| SourceError::ForeignOffset { name: name.to_owned(), offset: self.to_string() })
    }
}

impl From<i64> for Offset {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
