//! The last compiled pattern of one invocation.
//!
//! Where it stands: between a row's pattern text and its compiled form, in regular expressions and datetime patterns.
//!
//! Rule of its life: lives for one column; a constant pattern is compiled once, a changing one at each change.

use datafusion::common::Result;

/// Remembers the value made from the last key.
pub(crate) struct Memo<T> {
    last: Option<(String, T)>,
}

impl<T> Memo<T> {
    /// Nothing remembered.
    pub(crate) fn new() -> Self {
        Self { last: None }
    }

    /// The value of the key, made when it is not the last one.
    pub(crate) fn get(&mut self, key: &str, make: impl FnOnce(&str) -> Result<T>) -> Result<&T> {
        if self.last.as_ref().is_none_or(|(known, _)| known != key) {
            self.last = Some((key.to_string(), make(key)?));
        }
        match &self.last {
            Some((_, value)) => Ok(value),
            None => datafusion::common::internal_err!("a value that was just made is missing"),
        }
    }
}
