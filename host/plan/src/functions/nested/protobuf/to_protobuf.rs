//! `to_protobuf(struct, message, descriptor set[, options])`: a struct as a message.
//!
//! Columns and fields are matched by name. NULL is NULL; a null field is one that is not there. Options are those of
//! [`from_protobuf`](super::from_protobuf); none of them changes what is written.

use super::super::coercion::{mismatch, with_leaves};
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::descriptor::message;
use super::encoding::Message;
use super::options::Reading;
use arrow::array::{Array, ArrayRef, BinaryBuilder};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "to_protobuf", arguments: (3, 4), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Struct(_) => Ok(with_leaves(value, plain)),
        other => mismatch(name, "a STRUCT", other),
    }
}

/// One form each for texts, bytes and times.
fn plain(leaf: &DataType) -> DataType {
    match leaf {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
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
