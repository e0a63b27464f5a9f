//! Spark's options for messages.

use super::super::prepared::Asked;
use super::super::registry::{flag, options};
use datafusion::common::{Result, plan_datafusion_err, plan_err};

/// All of them.
const KNOWN: [&str; 8] = [
    "mode",
    "recursive.fields.max.depth",
    "convert.any.fields.to.json",
    "emit.default.values",
    "enums.as.ints",
    "upcast.unsigned.ints",
    "unwrap.primitive.wrapper.types",
    "retain.empty.message.types",
];
/// How deep a message may be put into itself.
const DEEPEST: usize = 10;

/// How messages are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// Whether a malformed message fails the query.
    pub(super) fail_fast: bool,
    /// How often a message may stand inside of itself; `None`: not at all, and the query is refused.
    pub(super) depth: Option<usize>,
    /// Whether a field of any message is text in JSON.
    pub(super) any_as_json: bool,
    /// Whether a field that cannot tell its absence from zero is zero and not null.
    pub(super) defaults: bool,
    /// Whether an enum is its number and not its name.
    pub(super) enums_as_ints: bool,
    /// Whether numbers without sign get a type that has room for all of them.
    pub(super) upcast: bool,
    /// Whether a message that wraps one value is that value.
    pub(super) unwrap: bool,
    /// Whether a message without fields stays, with a field that stands for none.
    pub(super) keep_empty: bool,
}

impl Reading {
    /// As the options say, which stand as a text at a place among the constants.
    ///
    /// # Errors
    /// When an option is unknown or does not fit.
    pub(super) fn new(asked: &Asked<'_>, place: usize) -> Result<Self> {
        let name = asked.name;
        let found = match asked.constants.get(place) {
            Some(_) => options(name, asked.text(place, "a map of constant options")?)?,
            None => options(name, "{}")?,
        };
        let refuse = |error: millstream_common::OptionError| plan_datafusion_err!("[INVALID_OPTIONS] {error}");
        let owner = format!("`{name}`");
        found.only(&owner, &KNOWN).map_err(refuse)?;
        let switch = |key: &str| found.flag(&owner, key, false).map_err(refuse);
        let expected = "write a number from 1 to 10, or -1 for no message inside of itself";
        let depth = match found.parse::<i64>(&owner, "recursive.fields.max.depth", expected).map_err(refuse)? {
            None => None,
            Some(depth) if depth <= 0 => None,
            Some(depth) => match usize::try_from(depth) {
                Ok(depth) if depth <= DEEPEST => Some(depth),
                _ => return plan_err!("[INVALID_OPTIONS] `{name}`: recursive.fields.max.depth is {depth}; {expected}"),
            },
        };
        Ok(Self {
            fail_fast: flag(name, &found, true)?,
            depth,
            any_as_json: switch("convert.any.fields.to.json")?,
            defaults: switch("emit.default.values")?,
            enums_as_ints: switch("enums.as.ints")?,
            upcast: switch("upcast.unsigned.ints")?,
            unwrap: switch("unwrap.primitive.wrapper.types")?,
            keep_empty: switch("retain.empty.message.types")?,
        })
    }
}
