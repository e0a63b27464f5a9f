//! A source, checked.

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use std::fmt;
use std::sync::Arc;

use super::list;

/// One source of a component, as its `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceSignature {
    /// The name: a lower-case identifier, by which a query asks for it.
    pub name: String,
    /// The columns of its rows, at least one.
    pub columns: Vec<FieldRef>,
    /// The options that it knows.
    pub options: Vec<SourceOption>,
}

/// An option of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOption {
    /// The name.
    pub name: String,
    /// Whether a query must give it.
    pub required: bool,
}

impl SourceSignature {
    /// An option by its name; case does not matter.
    pub fn option(&self, name: &str) -> Option<&SourceOption> {
        self.options.iter().find(|option| option.name.eq_ignore_ascii_case(name))
    }

    /// The columns as a query sees them: all of them may be null, as those of every stream.
    pub fn schema(&self) -> SchemaRef {
        let nullable = |field: &FieldRef| Field::clone(field).with_nullable(true);
        Arc::new(Schema::new(self.columns.iter().map(nullable).collect::<Vec<_>>()))
    }
}

impl fmt::Display for SourceSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} -> ({})", self.name, list(&self.columns))?;
        if !self.options.is_empty() {
            let option = |option: &SourceOption| format!("{}{}", option.name, if option.required { "" } else { "?" });
            write!(f, ", options {}", self.options.iter().map(option).collect::<Vec<_>>().join(" "))?;
        }
        Ok(())
    }
}
