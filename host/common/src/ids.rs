//! Names of things: batch, query, run, operator.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// The number of a batch in the life of a query, from 0 without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchId(pub u64);

impl BatchId {
    /// The first batch of every query.
    pub const FIRST: Self = Self(0);

    /// The batch after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The batch before this one; `None` before the first.
    pub fn previous(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of a query: lives as long as its checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(pub Uuid);

/// The identity of one run of a query: new at each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The stable name of a stateful operator: its folder in the checkpoint.
///
/// It comes from a name that the user gave (view, CTE, `uid`) and the kind of the operator, never from a
/// counter over the whole plan, so that edits elsewhere in the query do not move state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperatorUid(String);

/// The text cannot name a folder.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` cannot be an operator uid: use letters, digits, `-` and `_`, at most 100 of them")]
pub struct UidError(String);

impl OperatorUid {
    /// Checks and wraps a uid.
    ///
    /// # Errors
    /// When it has other characters than letters, digits, `-` and `_`, is empty or longer than 100.
    pub fn new(text: impl Into<String>) -> Result<Self, UidError> {
        let text = text.into();
        let fits = !text.is_empty() && text.len() <= 100;
        if fits && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            Ok(Self(text))
        } else {
            Err(UidError(text))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperatorUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
