//! Options of a stream, and what a source says about them.

use crate::error::{CallError, CallResult};
use std::fmt::Display;
use std::str::FromStr;

/// An option that a query may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceOption {
    /// The name.
    pub name: &'static str,
    /// Whether a query must give it.
    pub required: bool,
}

impl SourceOption {
    /// An option that a query must give.
    pub const fn required(name: &'static str) -> Self {
        Self { name, required: true }
    }

    /// An option that a query may leave out.
    pub const fn optional(name: &'static str) -> Self {
        Self { name, required: false }
    }
}

/// The options of a stream, by the names that the source gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(pub(super) Vec<(String, String)>);

impl Options {
    /// The value of an option, `None` where the query does not give it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of an option that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn require(&self, name: &str) -> CallResult<&str> {
        self.get(name).ok_or_else(|| CallError::invalid_input(format!("the option `{name}` is missing")))
    }

    /// The value of an option that must be there, as another type.
    ///
    /// # Errors
    /// When it is not there, or no such value.
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> CallResult<T> {
        let value = self.require(name)?;
        let wrong = |error| CallError::invalid_input(format!("the option `{name}` cannot be `{value}`: {error}"));
        value.trim().parse().map_err(wrong)
    }

    /// The value of an option as another type, or `default` where the query does not give it.
    ///
    /// # Errors
    /// When it is no such value.
    pub fn parse_or<T: FromStr<Err: Display>>(&self, name: &str, default: T) -> CallResult<T> {
        if self.get(name).is_some() { self.parse(name) } else { Ok(default) }
    }
}
