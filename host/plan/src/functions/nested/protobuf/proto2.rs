//! What the older syntax demands of a message beyond its bytes: fields that must be there, and enums that have no other values
//! than theirs.
//!
//! The decoder knows neither. As Java's parser does it, a value that such an enum does not have counts as a field that the
//! definition does not have: it is left out. Spark calls a message malformed that has such a field at its top under a number
//! that the definition has (`ProtobufDataToCatalyst`).

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Syntax, Value};
use std::collections::HashSet;

/// Whether messages may break these rules at all.
pub(super) fn has_demands(message: &MessageDescriptor) -> bool {
    let mut seen = HashSet::new();
    let mut next = vec![message.clone()];
    while let Some(message) = next.pop() {
        if !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        for field in message.fields() {
            if field.is_required() || is_closed(&field) {
                return true;
            }
            next.extend(field.kind().as_message().cloned());
        }
    }
    false
}

/// Leaves out the values that enums do not have.
///
/// # Errors
/// In words, when a field is missing, or the message itself has a value that an enum does not have.
pub(super) fn settle(message: &mut DynamicMessage) -> Result<(), String> {
    match settle_within(message)? {
        None => Ok(()),
        Some((field, number)) => Err(format!("`{field}` has no value {number}")),
    }
}

/// As [`settle`], for a message at any depth; answers a field of it and the value that was left out there.
fn settle_within(message: &mut DynamicMessage) -> Result<Option<(String, i32)>, String> {
    if let Some(missing) = message.descriptor().fields().find(|field| field.is_required() && !message.has_field(field))
    {
        return Err(format!("`{}` is missing", missing.full_name()));
    }
    let mut left_out = None;
    let mut empty = Vec::new();
    for (field, value) in message.fields_mut() {
        let mut stays = |field: &FieldDescriptor, value: &Value| {
            let number = unknown(field, value);
            left_out = left_out.take().or(number.map(|number| (field.full_name().to_owned(), number)));
            number.is_none()
        };
        match &mut *value {
            Value::List(values) => values.retain(|value| stays(&field, value)),
            Value::Map(entries) => {
                if let Some(of_values) = field.kind().as_message().map(MessageDescriptor::map_entry_value_field) {
                    entries.retain(|_, value| stays(&of_values, value));
                }
            }
            one if !stays(&field, one) => empty.push(field.clone()),
            _ => {}
        }
        match value {
            Value::Message(inner) => drop(settle_within(inner)?),
            Value::List(values) => values.iter_mut().try_for_each(settle_value)?,
            Value::Map(entries) => entries.values_mut().try_for_each(settle_value)?,
            _ => {}
        }
    }
    empty.iter().for_each(|field| message.clear_field(field));
    Ok(left_out)
}

fn settle_value(value: &mut Value) -> Result<(), String> {
    value.as_message_mut().map_or(Ok(()), |message| settle_within(message).map(drop))
}

/// The number of a value that the enum of its field does not have, and must have.
fn unknown(field: &FieldDescriptor, value: &Value) -> Option<i32> {
    let (Kind::Enum(names), true) = (field.kind(), is_closed(field)) else { return None };
    value.as_enum_number().filter(|number| names.get_value(*number).is_none())
}

/// Whether the field takes only the values that its enum has: where field or enum are of the older syntax.
fn is_closed(field: &FieldDescriptor) -> bool {
    let is_old = |syntax| syntax == Syntax::Proto2;
    match field.kind() {
        Kind::Enum(names) => is_old(field.parent_file().syntax()) || is_old(names.parent_file().syntax()),
        _ => false,
    }
}
