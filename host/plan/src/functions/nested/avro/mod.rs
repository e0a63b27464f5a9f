//! Values in Avro's binary form: `from_avro`, `to_avro`.
//!
//! A column of bytes, one value each, without the framing of files or registries; the schema is a constant of the query.
//! Every schema is put into a record of one field, which has the same binary form and lets any type stand at the top.
//! Bytes are outside data: what they do to the decoder ends with their row.

mod from_avro;
mod schema;
mod to_avro;

#[cfg(test)]
mod tests;

use super::function::Definition;

/// All functions of this folder.
pub(super) fn definitions() -> Vec<Definition> {
    [from_avro::definitions(), to_avro::definitions()].concat()
}
