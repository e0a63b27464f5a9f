//! What a component says about what it offers, checked: one type per kind.

mod aggregate;
mod migration;
mod source;

pub use aggregate::AggregateSignature;
pub use migration::MigrationStep;
pub use source::{SourceOption, SourceSignature};

use arrow::datatypes::FieldRef;
use std::fmt;

/// The kind of a plugin function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// n rows → n values.
    Scalar,
    /// One row → 0..n rows.
    Table,
}

/// What the optimiser may assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// Same arguments, same result: calls may be moved, shared and left out.
    Immutable,
    /// Calls are made exactly where the query has them.
    Volatile,
}

/// One function of a component, as `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionSignature {
    /// The name in SQL: a lower-case identifier.
    pub name: String,
    /// Its kind.
    pub kind: FunctionKind,
    /// Its arguments: name, Arrow type, nullable.
    pub arguments: Vec<FieldRef>,
    /// A scalar's one result, or a table function's columns. A scalar's result may always be null in the end: for
    /// rows with a null argument, and for rows that failed under a policy that goes on.
    pub results: Vec<FieldRef>,
    /// What the optimiser may assume.
    pub volatility: Volatility,
    /// Whether the guest sees rows with a null argument. Where not, the host gives null (or no rows) for them.
    pub nulls_passed: bool,
}

/// Fields as people read them: `x Int64, y Utf8 not null`.
fn list(fields: &[FieldRef]) -> String {
    let field = |field: &FieldRef| {
        let null = if field.is_nullable() { "" } else { " not null" };
        format!("{} {}{null}", field.name(), field.data_type())
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for FunctionSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FunctionKind::Scalar => {
                write!(f, "scalar {}({}) -> {}", self.name, list(&self.arguments), list(&self.results))
            }
            FunctionKind::Table => {
                write!(f, "table {}({}) -> ({})", self.name, list(&self.arguments), list(&self.results))
            }
        }
    }
}
