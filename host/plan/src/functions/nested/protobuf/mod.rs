//! Messages of Protocol Buffers: `from_protobuf`, `to_protobuf`.
//!
//! Where it stands: a column of bytes, one message each, without a frame. The definitions come from a descriptor set, as
//! `protoc --include_imports --descriptor_set_out` writes it, by the path of its file or as bytes. It is read when the query
//! is planned, so the type of the column and the meaning of the bytes are fixed for a run; a file that is changed counts from
//! the next start on.
//!
//! 1. `descriptor` finds the message, `options` says how it is read.
//! 2. `proto2` holds decoded messages of the older syntax against its rules.
//! 3. `shape` gives each of its fields a type of SQL, as Spark's guide to Protobuf data has it.
//! 4. `columns` builds columns of many decoded messages, field by field.
//! 5. `encoding` writes messages, field by field, in the order of the fields' numbers: the same value is always the same bytes.
//!
//! Bytes are outside data: the library that decodes them limits how deep they nest.

mod columns;
mod descriptor;
mod encoding;
mod from_protobuf;
mod options;
mod proto2;
mod shape;
mod to_protobuf;
mod wire;

#[cfg(test)]
mod tests;

use super::prepared::PreparedDefinition;

/// All functions of this folder.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    [from_protobuf::definitions(), to_protobuf::definitions()].concat()
}
