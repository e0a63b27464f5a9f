//! A sink, checked.

use arrow::datatypes::FieldRef;
use millstream_common::OutputMode;
use std::fmt;

use super::list;

/// One sink of a component, as its `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSignature {
    /// The name: a lower-case identifier.
    pub name: String,
    /// The columns that it takes of the result, by name; none: all of them, whatever they are.
    pub columns: Vec<FieldRef>,
    /// The output modes that it takes, at least one.
    pub modes: Vec<OutputMode>,
    /// The options that it knows.
    pub options: Vec<SinkOption>,
    /// Whether its rows are seen once or not at all: it prepares them, and commits them when the batch is done.
    pub transactional: bool,
}

/// An option of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkOption {
    /// The name.
    pub name: String,
    /// Whether a query must give it.
    pub required: bool,
}

impl SinkSignature {
    /// An option by its name; case does not matter.
    pub fn option(&self, name: &str) -> Option<&SinkOption> {
        self.options.iter().find(|option| option.name.eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for SinkSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = if self.columns.is_empty() { "any columns".to_owned() } else { list(&self.columns) };
        let modes = self.modes.iter().map(OutputMode::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "sink {}({columns}), {modes}", self.name)?;
        if !self.options.is_empty() {
            let option = |option: &SinkOption| format!("{}{}", option.name, if option.required { "" } else { "?" });
            write!(f, ", options {}", self.options.iter().map(option).collect::<Vec<_>>().join(" "))?;
        }
        write!(f, ", {}", if self.transactional { "exactly once" } else { "at least once" })
    }
}
