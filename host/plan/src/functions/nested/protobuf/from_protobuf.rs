//! `from_protobuf(bytes, message, descriptor set[, options])`: a message as a struct.
//!
//! In mode FAILFAST, which is the default as in Spark, bytes that are no such message fail the query; in mode PERMISSIVE they
//! are a struct of nulls. NULL is NULL. The options are Spark's; see the folder's `README.md`.

use super::super::coercion::mismatch;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::columns::{Cell, records};
use super::descriptor::message;
use super::options::Reading;
use super::proto2::{has_demands, settle};
use super::shape::{Record, record};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::error::DataFusionError;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "from_protobuf", arguments: (3, 4), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null => Ok(DataType::Binary),
        other => mismatch(name, "BINARY", other),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let message = message(asked)?;
    let reading = Reading::new(asked, 2)?;
    let shape = record(asked.name, &message, &reading)?;
    let output = shape.data_type();
    let (name, is_demanding) = (asked.name.to_owned(), has_demands(&message));
    Ok(Arc::new(FromProtobuf { name, message, shape, output, fail_fast: reading.fail_fast, is_demanding }))
}

/// How the messages of one call are read.
struct FromProtobuf {
    name: String,
    message: MessageDescriptor,
    shape: Record,
    output: DataType,
    fail_fast: bool,
    /// Whether the older syntax demands more of the messages than that they can be decoded.
    is_demanding: bool,
}

impl Work for FromProtobuf {
    fn output(&self) -> &DataType {
        &self.output
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let bytes = values.as_binary::<i32>();
        let mut decoded = Vec::with_capacity(bytes.len());
        for value in bytes {
            decoded.push(match value.map(|value| self.decode(value)).transpose() {
                Ok(message) => Ok(message),
                Err(reason) if self.fail_fast => return Err(self.malformed(&reason)),
                Err(_) => Err(()),
            });
        }
        let cells: Vec<Cell<'_>> = decoded
            .iter()
            .map(|message| match message {
                Ok(None) => Cell::Null,
                Ok(Some(message)) => Cell::Message(message),
                Err(()) => Cell::Malformed,
            })
            .collect();
        match records(&cells, &self.shape) {
            Ok(built) => Ok(built),
            Err(error) if self.fail_fast => Err(self.malformed(&error.message())),
            Err(_) => self.one_by_one(bytes, &cells),
        }
    }
}

impl FromProtobuf {
    fn decode(&self, value: &[u8]) -> Result<DynamicMessage, String> {
        let mut message = DynamicMessage::decode(self.message.clone(), value).map_err(|error| error.to_string())?;
        if self.is_demanding {
            settle(&mut message)?;
        }
        Ok(message)
    }

    /// Finds those among the rows that have a value without a counterpart.
    fn one_by_one(&self, bytes: &BinaryArray, cells: &[Cell<'_>]) -> Result<ArrayRef> {
        debug_assert_eq!(bytes.len(), cells.len());
        let fitting: Vec<Cell<'_>> = cells
            .iter()
            .map(|cell| if records(&[*cell], &self.shape).is_ok() { *cell } else { Cell::Malformed })
            .collect();
        records(&fitting, &self.shape)
    }

    fn malformed(&self, error: &dyn std::fmt::Display) -> DataFusionError {
        exec_datafusion_err!(
            "[MALFORMED_PROTOBUF_MESSAGE] `{}` cannot read a `{}` in mode FAILFAST: {error}; with the option mode = PERMISSIVE it is a struct of nulls",
            self.name,
            self.message.full_name()
        )
    }
}
