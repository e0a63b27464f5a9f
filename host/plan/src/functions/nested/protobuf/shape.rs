//! What messages are in SQL: a struct with a field for each of theirs.
//!
//! A field that would put a message into itself more often than allowed is left out; so is one of a message that has no
//! fields, unless such messages are kept. Everything may be null, also where Spark's schema says that it is not.

use super::super::coercion::{list_of, map_of};
use super::options::Reading;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use datafusion::common::{Result, plan_err};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use std::collections::HashMap;

/// The field of a struct that stands for no field.
pub(super) const NO_FIELD: &str = "__dummy_field_in_empty_struct";

/// A message as a struct.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// In the order of the definition; none for a message without fields that is kept.
    pub(super) fields: Vec<Member>,
}

/// A field of a message.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// In the message.
    pub(super) field: FieldDescriptor,
    /// What it holds.
    pub(super) holds: Holds,
    /// Whether it is not null where the message does not have it.
    pub(super) has_default: bool,
}

/// What a field holds.
#[derive(Debug, Clone)]
pub(super) enum Holds {
    /// One value.
    One(Shape),
    /// Any number.
    Many(Shape),
    /// Keys and values.
    Map(Shape, Shape),
}

/// One value.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// What has the same type in SQL.
    Plain(DataType),
    /// An enum by its name.
    Name(EnumDescriptor),
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// Any message, as JSON; with the fields that are zero or without.
    AnyAsJson { defaults: bool },
    /// The one value in a message.
    Wrapped(Box<Shape>, FieldDescriptor),
    /// A message.
    Record(Record),
}

impl Record {
    /// The type.
    pub(super) fn data_type(&self) -> DataType {
        DataType::Struct(self.columns())
    }

    /// The columns of the type.
    pub(super) fn columns(&self) -> Fields {
        if self.fields.is_empty() {
            return Fields::from(vec![Field::new(NO_FIELD, DataType::Utf8, true)]);
        }
        self.fields.iter().map(|member| Field::new(member.field.name(), member.holds.data_type(), true)).collect()
    }
}

impl Holds {
    fn data_type(&self) -> DataType {
        match self {
            Self::One(shape) => shape.data_type(),
            Self::Many(shape) => list_of(shape.data_type()),
            Self::Map(key, value) => map_of(key.data_type(), value.data_type()),
        }
    }
}

impl Shape {
    /// The type.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Plain(data_type) => data_type.clone(),
            Self::Name(_) | Self::AnyAsJson { .. } => DataType::Utf8,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Duration => DataType::Duration(TimeUnit::Microsecond),
            Self::Wrapped(shape, _) => shape.data_type(),
            Self::Record(record) => record.data_type(),
        }
    }
}

/// The struct that a message is.
///
/// # Errors
/// When it contains itself and may not, or has no fields and is not kept.
pub(super) fn record(function: &str, message: &MessageDescriptor, reading: &Reading) -> Result<Record> {
    let shaping = Shaping { function, reading };
    let enclosing = HashMap::from([(message.full_name().to_owned(), 1)]);
    match shaping.fields(message, &enclosing)? {
        Some(record) => Ok(record),
        None => plan_err!(
            "[PROTOBUF_TYPE_NOT_SUPPORT] `{function}`: message `{}` has no field that SQL could show; the option retain.empty.message.types = true keeps such messages",
            message.full_name()
        ),
    }
}

struct Shaping<'a> {
    function: &'a str,
    reading: &'a Reading,
}

/// How often each message encloses the place that is looked at.
type Enclosing = HashMap<String, usize>;

impl Shaping<'_> {
    fn fields(&self, message: &MessageDescriptor, enclosing: &Enclosing) -> Result<Option<Record>> {
        let mut fields = Vec::new();
        // By place in the definition, not by number.
        let mut members: Vec<FieldDescriptor> = message.fields().collect();
        members.sort_by_key(|field| field.path().last().copied());
        for field in members {
            let Some(holds) = self.holds(&field, enclosing)? else { continue };
            let has_default = match &holds {
                Holds::Many(_) | Holds::Map(..) => true,
                Holds::One(_) => {
                    field.field_descriptor_proto().default_value.is_some()
                        || (self.reading.defaults && !field.supports_presence())
                }
            };
            fields.push(Member { field, holds, has_default });
        }
        Ok((!fields.is_empty() || self.reading.keep_empty).then_some(Record { fields }))
    }

    /// `None` when the field is left out.
    fn holds(&self, field: &FieldDescriptor, enclosing: &Enclosing) -> Result<Option<Holds>> {
        if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let key = self.shape(&entry.map_entry_key_field(), enclosing)?;
            let value = self.shape(&entry.map_entry_value_field(), enclosing)?;
            return Ok(key.zip(value).map(|(key, value)| Holds::Map(key, value)));
        }
        let shape = self.shape(field, enclosing)?;
        Ok(shape.map(|shape| if field.is_list() { Holds::Many(shape) } else { Holds::One(shape) }))
    }

    fn shape(&self, field: &FieldDescriptor, enclosing: &Enclosing) -> Result<Option<Shape>> {
        let plain = |data_type| Ok(Some(Shape::Plain(data_type)));
        match field.kind() {
            Kind::Bool => plain(DataType::Boolean),
            Kind::Uint32 if self.reading.upcast => plain(DataType::Int64),
            Kind::Uint64 if self.reading.upcast => plain(DataType::Decimal128(20, 0)),
            Kind::Int32 | Kind::Sint32 | Kind::Uint32 | Kind::Fixed32 | Kind::Sfixed32 => plain(DataType::Int32),
            Kind::Int64 | Kind::Sint64 | Kind::Uint64 | Kind::Fixed64 | Kind::Sfixed64 => plain(DataType::Int64),
            Kind::Float => plain(DataType::Float32),
            Kind::Double => plain(DataType::Float64),
            Kind::String => plain(DataType::Utf8),
            Kind::Bytes => plain(DataType::Binary),
            Kind::Enum(_) if self.reading.enums_as_ints => plain(DataType::Int32),
            Kind::Enum(names) => Ok(Some(Shape::Name(names))),
            Kind::Message(message) => self.message(field, &message, enclosing),
        }
    }

    fn message(
        &self,
        field: &FieldDescriptor,
        message: &MessageDescriptor,
        enclosing: &Enclosing,
    ) -> Result<Option<Shape>> {
        if is_time(message, "Duration") {
            return Ok(Some(Shape::Duration));
        }
        if is_time(message, "Timestamp") {
            return Ok(Some(Shape::Timestamp));
        }
        if self.reading.any_as_json && message.full_name() == "google.protobuf.Any" {
            return Ok(Some(Shape::AnyAsJson { defaults: self.reading.defaults }));
        }
        if let Some(value) = wrapped(message).filter(|_| self.reading.unwrap) {
            return Ok(self.shape(&value, enclosing)?.map(|shape| Shape::Wrapped(Box::new(shape), value)));
        }
        let name = message.full_name();
        let already = enclosing.get(name).copied().unwrap_or(0);
        if already > 0 {
            match self.reading.depth {
                None => {
                    return plan_err!(
                        "[RECURSIVE_PROTOBUF_SCHEMA] `{}`: field `{}` puts message `{name}` into itself; the option recursive.fields.max.depth, from 1 to 10, says how often that is shown",
                        self.function,
                        field.full_name()
                    );
                }
                Some(depth) if already >= depth => return Ok(None),
                Some(_) => {}
            }
        }
        let mut enclosing = enclosing.clone();
        enclosing.insert(name.to_owned(), already + 1);
        Ok(self.fields(message, &enclosing)?.map(Shape::Record))
    }
}

/// Whether a message is a point or a length of time, by its form as Spark does.
pub(super) fn is_time(message: &MessageDescriptor, name: &str) -> bool {
    let has = |number, field: &str| message.get_field(number).is_some_and(|found| found.name() == field);
    message.name() == name && message.fields().len() == 2 && has(1, "seconds") && has(2, "nanos")
}

/// The value in a message that wraps one.
pub(super) fn wrapped(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    const WRAPPERS: [&str; 9] = [
        "BoolValue",
        "Int32Value",
        "UInt32Value",
        "Int64Value",
        "UInt64Value",
        "StringValue",
        "BytesValue",
        "FloatValue",
        "DoubleValue",
    ];
    let name = message.full_name().strip_prefix("google.protobuf.")?;
    if WRAPPERS.contains(&name) { message.get_field_by_name("value") } else { None }
}
