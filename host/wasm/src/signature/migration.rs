//! A step of a migration, checked.

use arrow::datatypes::FieldRef;
use std::fmt;

use super::list;

/// One step from one meaning of a piece of state to another, as `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq)]
pub struct MigrationStep {
    /// What it is about: the name of an aggregate function, or `processor.variable`.
    pub state: String,
    /// The meaning of what is stored.
    pub from_id: String,
    /// The stored columns.
    pub from_columns: Vec<FieldRef>,
    /// The meaning of what comes out.
    pub to_id: String,
    /// The columns that come out.
    pub to_columns: Vec<FieldRef>,
}

impl fmt::Display for MigrationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, from_id, from_columns, to_id, to_columns } = self;
        write!(f, "{state}: `{from_id}` ({}) -> `{to_id}` ({})", list(from_columns), list(to_columns))
    }
}
