//! Options that say how long a file is to be.

use millstream_common::{OptionError, Options};

/// A number of bytes, or one with `kb`, `mb` or `gb` behind it.
pub(crate) fn byte_length(owner: &str, options: &Options, name: &str) -> Result<Option<usize>, OptionError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix("kb").or(lower.strip_suffix('k')) {
        Some(digits) => (digits, 1_usize << 10),
        None => match lower.strip_suffix("mb").or(lower.strip_suffix('m')) {
            Some(digits) => (digits, 1 << 20),
            None => match lower.strip_suffix("gb").or(lower.strip_suffix('g')) {
                Some(digits) => (digits, 1 << 30),
                None => (lower.as_str(), 1),
            },
        },
    };
    let bytes = digits.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    match bytes.filter(|bytes| *bytes > 0) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Options::invalid(owner, name, text, "write a number of bytes, or one such as 128mb")),
    }
}
