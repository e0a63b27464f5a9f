//! Positions in the binary log.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A position in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The file.
    pub(super) file: String,
    /// Where in it.
    pub(super) position: u64,
}

impl Position {
    /// Files are numbered behind their last point.
    fn number(&self) -> u64 {
        self.file.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.number(), self.position, &self.file).cmp(&(other.number(), other.position, &other.file))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_the_order_of_the_log() {
        let position = |file: &str, position| Position { file: file.into(), position };
        assert!(position("binlog.000009", 900) < position("binlog.000010", 4));
        assert!(position("binlog.999999", 4) < position("binlog.1000000", 4));
        assert!(position("binlog.000010", 4) < position("binlog.000010", 5));
    }
}
