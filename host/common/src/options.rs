//! Options of connectors: Spark's names, any case, text values; what nobody reads is refused.

use std::collections::BTreeMap;

/// Options as a user wrote them. Keys are compared without regard to case, as Spark does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    entries: BTreeMap<String, (String, String)>,
}

/// An option is missing, unknown or has a value that does not fit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// A required option is not there.
    #[error("option `{option}` of {owner} is missing")]
    Missing {
        /// The connector, for example ``source `socket` ``.
        owner: String,
        /// The option.
        option: String,
    },
    /// The value does not fit.
    #[error("option `{option}` of {owner} cannot be `{value}`: {reason}")]
    Invalid {
        /// The connector.
        owner: String,
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// Nobody reads an option of this name.
    #[error("option `{option}` is unknown to {owner}; it takes {known}")]
    Unknown {
        /// The connector.
        owner: String,
        /// The option.
        option: String,
        /// The options that exist.
        known: String,
    },
}

impl Options {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option; a later value replaces an earlier one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        self.entries.insert(key.to_ascii_lowercase(), (key, value.into()));
    }

    /// The same, as a chain.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(key, value);
        self
    }

    /// The value of an option.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(&key.to_ascii_lowercase()).map(|(_, value)| value.as_str())
    }

    /// The value of an option that must be there.
    ///
    /// # Errors
    /// [`OptionError::Missing`].
    pub fn require(&self, owner: &str, key: &str) -> Result<&str, OptionError> {
        self.get(key).ok_or_else(|| OptionError::Missing { owner: owner.to_owned(), option: key.to_owned() })
    }

    /// The value of an option, parsed; `None` when it is not set.
    ///
    /// # Errors
    /// [`OptionError::Invalid`] with `expected` as the reason.
    pub fn parse<T: std::str::FromStr>(
        &self,
        owner: &str,
        key: &str,
        expected: &str,
    ) -> Result<Option<T>, OptionError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.trim().parse() {
            Ok(parsed) => Ok(Some(parsed)),
            Err(_) => Err(Self::invalid(owner, key, value, expected)),
        }
    }

    /// A yes-or-no option; `default` when it is not set.
    ///
    /// # Errors
    /// [`OptionError::Invalid`] when it is neither `true` nor `false`.
    pub fn flag(&self, owner: &str, key: &str, default: bool) -> Result<bool, OptionError> {
        match self.get(key).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(Self::invalid(owner, key, other, "write true or false")),
        }
    }

    /// An [`OptionError::Invalid`].
    pub fn invalid(owner: &str, key: &str, value: &str, reason: &str) -> OptionError {
        OptionError::Invalid { owner: owner.into(), option: key.into(), value: value.into(), reason: reason.into() }
    }

    /// Refuses options outside `known`.
    ///
    /// # Errors
    /// [`OptionError::Unknown`] for the first one, with the list of those that exist.
    pub fn only(&self, owner: &str, known: &[&str]) -> Result<(), OptionError> {
        for (lower, (key, _)) in &self.entries {
            if !known.iter().any(|k| k.eq_ignore_ascii_case(lower)) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(OptionError::Unknown { owner: owner.to_owned(), option: key.clone(), known });
            }
        }
        Ok(())
    }

    /// All options, as written, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.values().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_no_case_and_unknown_ones_are_named() {
        let options = Options::new().with("maxFilesPerTrigger", "5").with("pth", "/tmp");
        assert_eq!(options.get("MAXFILESPERTRIGGER"), Some("5"));
        let error = options.only("source `file`", &["path", "maxFilesPerTrigger"]).unwrap_err();
        assert_eq!(error.to_string(), "option `pth` is unknown to source `file`; it takes path, maxFilesPerTrigger");
    }
}
