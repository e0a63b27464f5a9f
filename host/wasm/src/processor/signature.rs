//! What a component says about a processor, checked.

use arrow::datatypes::{DataType, FieldRef, Fields};
use millstream_common::OutputMode;
use std::fmt;

/// What a state variable holds for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// One row or none.
    Value,
    /// Any number of rows, in the order in which they were appended.
    List,
    /// Any number of rows, each under a map key of its own.
    Map,
}

impl fmt::Display for VariableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value",
            Self::List => "list",
            Self::Map => "map",
        })
    }
}

/// One state variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableSignature {
    /// The name, unique within the processor.
    pub name: String,
    /// What it holds.
    pub kind: VariableKind,
    /// The columns of a map's keys; none for values and lists.
    pub map_key: Fields,
    /// The columns of its rows.
    pub columns: Fields,
    /// The author's name for what the columns mean.
    pub state_id: String,
    /// How long an entry lives after it was last written, in milliseconds of processing time; none: for ever.
    pub ttl_ms: Option<i64>,
}

/// Which time a processor's timers go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeMode {
    /// It has no timers.
    None,
    /// The time of the batch.
    ProcessingTime,
    /// The watermark.
    EventTime,
}

impl fmt::Display for TimeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no time",
            Self::ProcessingTime => "processing time",
            Self::EventTime => "event time",
        })
    }
}

/// One processor of a component, as `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorSignature {
    /// The name in SQL: a lower-case identifier.
    pub name: String,
    /// The columns of a key.
    pub key: Fields,
    /// The columns of its input rows.
    pub input: Fields,
    /// The columns of its output rows.
    pub output: Fields,
    /// The columns of initial rows; none when it takes none.
    pub initial: Fields,
    /// Its state variables, in the order of their numbers.
    pub variables: Vec<VariableSignature>,
    /// Which time its timers go by.
    pub time_mode: TimeMode,
    /// The output modes that a query with it may have.
    pub output_modes: Vec<OutputMode>,
}

impl ProcessorSignature {
    /// A state variable by its name.
    pub fn variable(&self, name: &str) -> Option<&VariableSignature> {
        self.variables.iter().find(|variable| variable.name == name)
    }
}

impl fmt::Display for VariableSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.kind)?;
        if self.kind == VariableKind::Map {
            write!(f, "({} -> {})", list(&self.map_key), list(&self.columns))?;
        } else {
            write!(f, "({})", list(&self.columns))?;
        }
        write!(f, " `{}`", self.state_id)?;
        match self.ttl_ms {
            Some(ttl) => write!(f, " for {ttl} ms"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ProcessorSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, input, output) = (list(&self.key), list(&self.input), list(&self.output));
        write!(f, "processor {}({input}) by ({key}) -> ({output}), {}", self.name, self.time_mode)?;
        if !self.initial.is_empty() {
            write!(f, ", initial ({})", list(&self.initial))?;
        }
        for variable in &self.variables {
            write!(f, ", {variable}")?;
        }
        Ok(())
    }
}

/// Columns as `a Int64, b Utf8 not null`.
fn list(fields: &Fields) -> String {
    let field = |field: &FieldRef| {
        let null = if field.is_nullable() { "" } else { " not null" };
        format!("{} {}{null}", field.name(), field.data_type())
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

/// The types of columns.
pub(super) fn types(fields: &Fields) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}
