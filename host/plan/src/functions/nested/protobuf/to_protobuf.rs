//! `to_protobuf(struct, message, descriptor set[, options])`: a struct as a message.
//!
//! Columns and fields are matched by name. NULL is NULL; a null field is one that is not there. Options are those of
//! [`from_protobuf`](super::from_protobuf); none of them changes what is written.

use super::super::coercion::{list_of, map_of, mismatch};
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::descriptor::message;
use super::encoding::Message;
use super::options::Reading;
use arrow::array::{Array, ArrayRef, BinaryBuilder};
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "to_protobuf", arguments: (3, 4), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Struct(_) => Ok(plain(value)),
        other => mismatch(name, "a STRUCT", other),
    }
}

/// The type with one form each for texts, bytes and times.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::List(element) => list_of(plain(element.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => map_of(plain(pair[0].data_type()), plain(pair[1].data_type())),
            _ => data_type.clone(),
        },
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|field| Field::new(field.name(), plain(field.data_type()), field.is_nullable()))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    Reading::new(asked, 2)?;
    let DataType::Struct(columns) = asked.value else { return mismatch(asked.name, "a STRUCT", asked.value) };
    let message = message(asked)?;
    let encoding = Message::new(asked.name, columns, &message)?;
    Ok(Arc::new(ToProtobuf { name: asked.name.to_owned(), message: message.full_name().to_owned(), encoding }))
}

/// How the structs of one call are written.
struct ToProtobuf {
    name: String,
    message: String,
    encoding: Message,
}

impl Work for ToProtobuf {
    fn output(&self) -> &DataType {
        &DataType::Binary
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let mut built = BinaryBuilder::with_capacity(values.len(), 0);
        let mut written = Vec::new();
        let mut total = 0_usize;
        for row in 0..values.len() {
            if values.is_null(row) {
                built.append_null();
                continue;
            }
            written.clear();
            self.encoding.write(values, row, &mut written).map_err(|error| {
                exec_datafusion_err!(
                    "[UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE] `{}` cannot write a `{}`: {}",
                    self.name,
                    self.message,
                    error.message()
                )
            })?;
            total = total.saturating_add(written.len());
            if i32::try_from(total).is_err() {
                return exec_err!("`{}`: one batch cannot hold more than {} bytes", self.name, i32::MAX);
            }
            built.append_value(&written);
        }
        Ok(Arc::new(built.finish()))
    }
}
