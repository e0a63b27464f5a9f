//! JSON texts: `from_json`, `to_json`, `get_json_object`, `json_tuple`, `schema_of_json`, …
//!
//! Texts are read into a small tree that keeps the order of names and the written form of numbers. Options are read once, when
//! a query is planned. A text is outside data: its depth is limited and nothing in it can make a query fail, unless the query
//! asks for that with the mode FAILFAST, or asks a text for its schema.

mod convert;
mod from_json;
mod infer;
mod json_schema;
mod options;
mod path;
mod queries;
mod text;
mod to_json;

pub(super) use infer::constant_schema;

use super::function::Definition;
use super::prepared::PreparedDefinition;

/// The functions of this folder.
pub(super) fn definitions() -> Vec<Definition> {
    queries::definitions()
}

/// Those that are prepared when a query is planned.
pub(super) fn prepared_definitions() -> Vec<PreparedDefinition> {
    [from_json::definitions(), queries::prepared_definitions(), to_json::definitions()].concat()
}
