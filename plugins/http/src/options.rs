//! The options of the sink.

use millstream_sdk::sink::prelude::*;

/// How rows stand in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// One object per line.
    #[default]
    Lines,
    /// One array of objects.
    Array,
}

impl Format {
    /// What the body is.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::Array => "application/json",
        }
    }

    /// The body of some rows.
    pub(crate) fn body(self, rows: &[String]) -> String {
        match self {
            Self::Lines => rows.iter().flat_map(|row| [row.as_str(), "\n"]).collect(),
            Self::Array => format!("[{}]", rows.join(",")),
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) format: Format,
    pub(crate) rows_per_request: usize,
    pub(crate) attempts: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) headers: Vec<(String, String)>,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Which one does not fit.
    pub(crate) fn of(target: &Target) -> CallResult<Self> {
        let bad = |name: &str, value: &str, expected: &str| {
            CallError::invalid_input(format!("option `{name}` cannot be `{value}`: {expected}"))
        };
        let format = match target.option("format") {
            None | Some("lines") => Format::Lines,
            Some("array") => Format::Array,
            Some(other) => return Err(bad("format", other, "write lines or array")),
        };
        let at_least_one = |name: &str, default: u32| match target.parsed(name, default)? {
            0 => Err(bad(name, "0", "a number from 1 on is expected")),
            number => Ok(number),
        };
        let header = |line: &str| {
            let (name, value) = line.split_once(':').ok_or_else(|| bad("headers", line, "write `Name: value`"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        };
        let lines = target.option("headers").unwrap_or_default().lines();
        let headers = lines.map(str::trim).filter(|line| !line.is_empty()).map(header).collect::<CallResult<_>>()?;
        Ok(Self {
            url: target.option("url").unwrap_or_default().to_owned(),
            method: target.option("method").unwrap_or("POST").to_owned(),
            format,
            rows_per_request: usize::try_from(at_least_one("rows_per_request", 1000)?)?,
            attempts: at_least_one("attempts", 3)?,
            timeout_ms: at_least_one("timeout_ms", 10_000)?,
            headers,
        })
    }
}
