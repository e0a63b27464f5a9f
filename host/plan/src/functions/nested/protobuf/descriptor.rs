//! A message and everything that it consists of, from a descriptor set.

use super::super::prepared::{Asked, Constant};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use std::borrow::Cow;
use std::io::Read;

/// The largest descriptor set.
const BYTES: u64 = 64 << 20;

/// The message that a call names: its first constant is the name, its second the descriptor set.
///
/// # Errors
/// When the set cannot be read, is none, or does not have the message.
pub(super) fn message(asked: &Asked<'_>) -> Result<MessageDescriptor> {
    let wanted = asked.text(0, "the constant name of a message")?;
    let bytes = match asked.constants.get(1) {
        Some(Constant::Bytes(bytes)) => Cow::Borrowed(bytes.as_slice()),
        Some(Constant::Text(path)) => Cow::Owned(file(asked.name, path)?),
        None => return plan_err!("[WRONG_NUM_ARGS] `{}` is not given a descriptor set", asked.name),
    };
    let pool = DescriptorPool::decode(bytes.as_ref()).map_err(|error| {
        plan_datafusion_err!(
            "[CANNOT_PARSE_PROTOBUF_DESCRIPTOR] `{}` cannot use the descriptor set: {error}; make it by `protoc --include_imports --descriptor_set_out=FILE`",
            asked.name
        )
    })?;
    // The name with or without its package, as Spark takes it.
    let found = pool
        .get_message_by_name(wanted)
        .or_else(|| pool.files().find_map(|file| file.messages().find(|message| message.name() == wanted)));
    match found {
        Some(found) => Ok(found),
        None => {
            let mut known: Vec<&str> = Vec::new();
            let all: Vec<MessageDescriptor> = pool.all_messages().collect();
            known.extend(
                all.iter().filter(|message| !message.is_map_entry()).map(MessageDescriptor::full_name).take(20),
            );
            plan_err!(
                "[PROTOBUF_MESSAGE_NOT_FOUND] `{}`: there is no message `{wanted}` in the descriptor set, which has {}",
                asked.name,
                known.join(", ")
            )
        }
    }
}

fn file(name: &str, path: &str) -> Result<Vec<u8>> {
    let failed = |why: &dyn std::fmt::Display| {
        plan_datafusion_err!(
            "[PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND] `{name}` cannot read the descriptor set `{path}`: {why}"
        )
    };
    let place = path.strip_prefix("file://").unwrap_or(path);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(place).map_err(|error| failed(&error))?;
    file.take(BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > BYTES {
        return Err(failed(&format!("it has more than {BYTES} bytes")));
    }
    Ok(bytes)
}
