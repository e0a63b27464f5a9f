//! Values in Avro's binary form: `from_avro`, `to_avro`.
//!
//! A column of bytes, one value each, without the framing of files. The schema is a constant of the query, or that of a subject
//! in a registry; then values are framed with the number of the schema that they were written with.
//! Every schema is put into a record of one field, which has the same binary form and lets any type stand at the top.
//! Bytes are outside data: what they do to the decoder ends with their row.

mod decoding;
mod from_avro;
mod schema;
mod to_avro;

#[cfg(test)]
mod tests;

use super::prepared::PreparedDefinition;

/// All functions of this folder.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    [from_avro::definitions(), to_avro::definitions()].concat()
}
