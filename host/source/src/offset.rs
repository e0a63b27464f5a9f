//! A position in a source.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A position in a source: JSON that only its source understands, compared by value.
///
/// A range is (start, end]: what stands after `start`, up to and including `end`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub serde_json::Value);

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
