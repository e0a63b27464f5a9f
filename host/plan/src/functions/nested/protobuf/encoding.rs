//! How the columns of a struct become the fields of a message.
//!
//! Planning matches them by name, without regard to case, and checks the types; then each row is written field by field in the
//! order of the numbers. A null is a field that is not there. A field that cannot tell its absence from zero is not written
//! when it is zero, as every implementation does.

use super::shape::{is_time, wrapped};
use super::wire::{WireType, bytes, tag, varint};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Field, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_err};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// How a struct becomes a message.
pub(super) struct Message {
    /// By number.
    fields: Vec<Written>,
}

/// How a column becomes a field.
struct Written {
    /// Among the columns of the struct.
    column: usize,
    number: u32,
    how: How,
    /// Whether zero is not written.
    skips_zero: bool,
    /// Whether the field must be there, with zero when the column is null.
    is_required: bool,
}

/// The values of a field.
enum How {
    One(Value),
    /// One behind the other, each with the tag or all behind one.
    Many {
        value: Value,
        is_packed: bool,
    },
    Map(Value, Value),
}

/// One value.
struct Value {
    kind: Kind,
    form: Form,
}

/// What a value is made of.
enum Form {
    /// A number, a truth, a text, bytes, an enum's name or number.
    Plain,
    /// Microseconds, in a message of seconds and nanoseconds.
    Time,
    /// The one value in a message.
    Wrapped(Box<Value>),
    /// A struct.
    Message(Message),
}

impl Message {
    /// Matches the columns of a struct with the fields of a message.
    ///
    /// # Errors
    /// When a column has no field, a field that must be there has no column, or types do not fit.
    pub(super) fn new(function: &str, columns: &[std::sync::Arc<Field>], message: &MessageDescriptor) -> Result<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        for (column, found) in columns.iter().enumerate() {
            let mut named = message.fields().filter(|field| field.name().eq_ignore_ascii_case(found.name()));
            let field = match (message.get_field_by_name(found.name()), named.next(), named.next()) {
                (Some(exact), _, _) => exact,
                (None, Some(only), None) => only,
                (None, Some(_), Some(_)) => {
                    return plan_err!(
                        "[AMBIGUOUS_COLUMN_OR_FIELD] `{function}`: message `{}` has several fields that are called `{}` but for their case",
                        message.full_name(),
                        found.name()
                    );
                }
                (None, None, _) => {
                    return plan_err!(
                        "[UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE] `{function}`: message `{}` has no field for column `{}`",
                        message.full_name(),
                        found.name()
                    );
                }
            };
            if fields.iter().any(|known: &Written| known.number == field.number()) {
                return plan_err!(
                    "[AMBIGUOUS_COLUMN_OR_FIELD] `{function}`: two columns are called `{}`",
                    field.name()
                );
            }
            fields.push(Written {
                column,
                number: field.number(),
                how: how(function, found.data_type(), &field)?,
                skips_zero: !field.supports_presence() && !field.is_list() && !field.is_map(),
                is_required: field.is_required(),
            });
        }
        let missing = message
            .fields()
            .find(|field| field.is_required() && fields.iter().all(|written| written.number != field.number()));
        if let Some(missing) = missing {
            return plan_err!(
                "[PROTOBUF_FIELD_MISSING] `{function}`: no column is called `{}`, which message `{}` must have",
                missing.name(),
                message.full_name()
            );
        }
        fields.sort_by_key(|written| written.number);
        Ok(Self { fields })
    }

    /// Writes the message of a row.
    ///
    /// # Errors
    /// When a value has no place in its field.
    pub(super) fn write(&self, structs: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let columns = structs.as_struct();
        for field in &self.fields {
            let column = columns.column(field.column);
            if column.is_null(row) || column.data_type() == &DataType::Null {
                if field.is_required
                    && let How::One(value) = &field.how
                {
                    value.write_zero(field.number, out);
                }
                continue;
            }
            field.write(column, row, out)?;
        }
        Ok(())
    }
}

impl Written {
    fn write(&self, column: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.how {
            How::One(value) => value.write(self.number, column, row, self.skips_zero, out),
            How::Many { value, is_packed } => {
                let elements = column.as_list::<i32>().value(row);
                if elements.null_count() > 0 {
                    return exec_err!("an array with a null cannot be a repeated field");
                }
                if !is_packed {
                    return (0..elements.len())
                        .try_for_each(|place| value.write(self.number, &elements, place, false, out));
                }
                if elements.is_empty() {
                    return Ok(());
                }
                let mut packed = Vec::new();
                for place in 0..elements.len() {
                    value.write_plain(&elements, place, &mut packed)?;
                }
                tag(self.number, WireType::Length, out);
                bytes(&packed, out);
                Ok(())
            }
            How::Map(key, value) => {
                let entries = column.as_map().value(row);
                let (keys, values) = (entries.column(0), entries.column(1));
                for place in 0..entries.len() {
                    let mut entry = Vec::new();
                    // Both parts of an entry are always written.
                    key.write(1, keys, place, false, &mut entry)?;
                    if values.is_null(place) {
                        value.write_zero(2, &mut entry);
                    } else {
                        value.write(2, values, place, false, &mut entry)?;
                    }
                    tag(self.number, WireType::Length, out);
                    bytes(&entry, out);
                }
                Ok(())
            }
        }
    }
}

fn how(function: &str, data_type: &DataType, field: &FieldDescriptor) -> Result<How> {
    match (data_type, field.kind()) {
        (DataType::Map(entries, _), Kind::Message(entry)) if field.is_map() => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => Ok(How::Map(
                value(function, pair[0].data_type(), &entry.map_entry_key_field())?,
                value(function, pair[1].data_type(), &entry.map_entry_value_field())?,
            )),
            other => misfit(function, other, field),
        },
        (DataType::List(element), _) if field.is_list() => {
            let value = value(function, element.data_type(), field)?;
            Ok(How::Many { value, is_packed: field.is_packed() })
        }
        (DataType::Null, _) => Ok(How::One(Value { kind: field.kind(), form: Form::Plain })),
        _ if field.is_list() || field.is_map() => misfit(function, data_type, field),
        _ => Ok(How::One(value(function, data_type, field)?)),
    }
}

fn misfit<T>(function: &str, data_type: &DataType, field: &FieldDescriptor) -> Result<T> {
    plan_err!(
        "[UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE] `{function}`: a column of type {data_type} cannot be field `{}`, which is {:?}",
        field.full_name(),
        field.cardinality()
    )
}

fn value(function: &str, data_type: &DataType, field: &FieldDescriptor) -> Result<Value> {
    let kind = field.kind();
    let form = match (data_type, &kind) {
        (DataType::Boolean, Kind::Bool)
        | (DataType::Float32, Kind::Float)
        | (DataType::Float64, Kind::Double)
        | (DataType::Utf8, Kind::String)
        | (DataType::Binary, Kind::Bytes)
        | (DataType::Int64 | DataType::Decimal128(20, 0), Kind::Uint64) => Form::Plain,
        (DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32, kind) if is_of_32_bits(kind) => {
            Form::Plain
        }
        (DataType::Int64, Kind::Int64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 | Kind::Uint32) => Form::Plain,
        (DataType::Utf8 | DataType::Int32, Kind::Enum(_)) => Form::Plain,
        (DataType::Timestamp(..), Kind::Message(message)) if is_time(message, "Timestamp") => Form::Time,
        (DataType::Duration(_), Kind::Message(message)) if is_time(message, "Duration") => Form::Time,
        (DataType::Struct(columns), Kind::Message(message)) if !message.is_map_entry() => {
            Form::Message(Message::new(function, columns, message)?)
        }
        (_, Kind::Message(message)) => match wrapped(message) {
            Some(inner) => Form::Wrapped(Box::new(value(function, data_type, &inner)?)),
            None => return misfit(function, data_type, field),
        },
        _ => return misfit(function, data_type, field),
    };
    Ok(Value { kind, form })
}

fn is_of_32_bits(kind: &Kind) -> bool {
    matches!(kind, Kind::Int32 | Kind::Sint32 | Kind::Uint32 | Kind::Fixed32 | Kind::Sfixed32)
}

impl Value {
    fn wire_type(&self) -> WireType {
        match self.kind {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::Eight,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::Four,
            Kind::String | Kind::Bytes | Kind::Message(_) => WireType::Length,
            _ => WireType::Varint,
        }
    }

    /// Writes the tag and the value of a row that is not null.
    fn write(&self, number: u32, column: &ArrayRef, row: usize, skips_zero: bool, out: &mut Vec<u8>) -> Result<()> {
        let mut written = Vec::new();
        match &self.form {
            Form::Message(message) => message.write(column, row, &mut written)?,
            Form::Wrapped(value) => value.write(1, column, row, true, &mut written)?,
            Form::Time => write_time(column, row, &mut written),
            Form::Plain => {
                self.write_plain(column, row, &mut written)?;
                let is_zero = match self.wire_type() {
                    WireType::Length => written.is_empty(),
                    _ => written.iter().all(|&byte| byte == 0),
                };
                if !(skips_zero && is_zero) {
                    tag(number, self.wire_type(), out);
                    if self.wire_type() == WireType::Length {
                        varint(written.len() as u64, out);
                    }
                    out.extend_from_slice(&written);
                }
                return Ok(());
            }
        }
        tag(number, WireType::Length, out);
        bytes(&written, out);
        Ok(())
    }

    /// The value of a field that must be there.
    fn write_zero(&self, number: u32, out: &mut Vec<u8>) {
        if matches!(&self.kind, Kind::Message(_)) {
            return;
        }
        tag(number, self.wire_type(), out);
        let zeros = match self.wire_type() {
            WireType::Eight => 8,
            WireType::Four => 4,
            WireType::Varint | WireType::Length => 1,
        };
        out.resize(out.len() + zeros, 0);
    }

    /// Writes a number, or the bytes of a text without their length.
    fn write_plain(&self, column: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match (column.data_type(), &self.kind) {
            (DataType::Boolean, _) => out.push(u8::from(column.as_boolean().value(row))),
            (DataType::Float32, _) => {
                out.extend_from_slice(&column.as_primitive::<Float32Type>().value(row).to_le_bytes());
            }
            (DataType::Float64, _) => {
                out.extend_from_slice(&column.as_primitive::<Float64Type>().value(row).to_le_bytes());
            }
            (DataType::Utf8, Kind::Enum(names)) => {
                let name = column.as_string::<i32>().value(row);
                match names.get_value_by_name(name) {
                    Some(found) => write_enum(found.number(), out),
                    None => return exec_err!("enum `{}` has no value called `{name}`", names.full_name()),
                }
            }
            (DataType::Int32, Kind::Enum(names)) => {
                let number = column.as_primitive::<Int32Type>().value(row);
                match names.get_value(number) {
                    Some(_) => write_enum(number, out),
                    None => return exec_err!("enum `{}` has no value {number}", names.full_name()),
                }
            }
            (DataType::Utf8, _) => out.extend_from_slice(column.as_string::<i32>().value(row).as_bytes()),
            (DataType::Binary, _) => out.extend_from_slice(column.as_binary::<i32>().value(row)),
            (DataType::Decimal128(..), _) => {
                let number = column.as_primitive::<Decimal128Type>().value(row);
                match u64::try_from(number) {
                    Ok(number) => varint(number, out),
                    Err(_) => return exec_err!("{number} is no number of 64 bits without sign"),
                }
            }
            (DataType::Int64, Kind::Uint32) => {
                let number = column.as_primitive::<Int64Type>().value(row);
                match u32::try_from(number) {
                    Ok(number) => varint(u64::from(number), out),
                    Err(_) => return exec_err!("{number} is no number of 32 bits without sign"),
                }
            }
            (DataType::Int64, kind) => {
                let number = column.as_primitive::<Int64Type>().value(row);
                match kind {
                    Kind::Sint64 => varint(((number << 1) ^ (number >> 63)).cast_unsigned(), out),
                    Kind::Fixed64 | Kind::Sfixed64 => out.extend_from_slice(&number.to_le_bytes()),
                    _ => varint(number.cast_unsigned(), out),
                }
            }
            (data_type, kind) => {
                let number = match data_type {
                    DataType::Int8 => i32::from(column.as_primitive::<Int8Type>().value(row)),
                    DataType::Int16 => i32::from(column.as_primitive::<Int16Type>().value(row)),
                    DataType::Int32 => column.as_primitive::<Int32Type>().value(row),
                    DataType::Date32 => column.as_primitive::<Date32Type>().value(row),
                    other => return exec_err!("a value of type {other} has no form in a message"),
                };
                match kind {
                    Kind::Sint32 => varint(u64::from(((number << 1) ^ (number >> 31)).cast_unsigned()), out),
                    Kind::Fixed32 | Kind::Sfixed32 => out.extend_from_slice(&number.to_le_bytes()),
                    Kind::Uint32 => varint(u64::from(number.cast_unsigned()), out),
                    _ => write_enum(number, out),
                }
            }
        }
        Ok(())
    }
}

/// Numbers with sign are written as those of 64 bits.
fn write_enum(number: i32, out: &mut Vec<u8>) {
    varint(i64::from(number).cast_unsigned(), out);
}

/// Seconds and nanoseconds. Of a point in time the nanoseconds count forwards; of a length both have its sign.
fn write_time(column: &ArrayRef, row: usize, out: &mut Vec<u8>) {
    let (seconds, nanos) = match column.data_type() {
        DataType::Duration(_) => {
            let micros = column.as_primitive::<DurationMicrosecondType>().value(row);
            (micros / 1_000_000, micros % 1_000_000 * 1_000)
        }
        _ => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1_000)
        }
    };
    for (number, value) in [(1, seconds), (2, nanos)] {
        if value != 0 {
            tag(number, WireType::Varint, out);
            varint(value.cast_unsigned(), out);
        }
    }
}
