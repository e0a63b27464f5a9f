//! `to_avro(value[, schema])`: a value in Avro's binary form.
//!
//! Without a schema the value has the one that Spark gives its type. NULL becomes the null of a union, which is bytes and
//! not NULL, as in Spark.

use super::super::coercion::{list_of, map_of, mismatch};
use super::super::function::{Call, Definition};
use super::schema::{read, written};
use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch, new_empty_array};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_avro::schema::{AvroSchema, SCHEMA_METADATA_KEY};
use arrow_avro::writer::format::AvroBinaryFormat;
use arrow_avro::writer::{Encoder, WriterBuilder};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_datafusion_err};
use std::collections::HashMap;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "to_avro",
        aliases: &[],
        arguments: (1, 2),
        coerce,
        result,
        may_be_null: false,
        never_null: true,
        run,
    }]
}

fn coerce(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let mut coerced = vec![plain(&types[0])];
    coerced.extend(types.get(1).map(|_| DataType::Utf8));
    Ok(coerced)
}

/// The type with what the encoder has no form for widened: small numbers, other forms of texts and bytes.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 | DataType::Int16 => DataType::Int32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
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

fn result(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let schema = match (types.get(1), constants.get(1).copied().flatten()) {
        (None, _) => written(name, &types[0])?,
        (Some(_), Some(constant)) if constant.try_as_str().flatten().is_some() => {
            read(name, constant.try_as_str().flatten().unwrap_or_default())?
        }
        (Some(other), _) => return mismatch(name, "a constant schema", other),
    };
    encoder(&types[0], &schema).map_err(|error| plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{name}`: {error}"))?;
    Ok(DataType::Binary)
}

fn schema_of(data_type: &DataType, schema: &AvroSchema) -> Schema {
    let metadata = HashMap::from([(SCHEMA_METADATA_KEY.to_owned(), schema.json_string.clone())]);
    Schema::new_with_metadata(vec![Field::new("value", data_type.clone(), true)], metadata)
}

fn encoder(data_type: &DataType, schema: &AvroSchema) -> Result<Encoder> {
    WriterBuilder::new(schema_of(data_type, schema))
        .build_encoder::<AvroBinaryFormat>()
        .map_err(|error| exec_datafusion_err!("{error}"))
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    if call.rows == 0 {
        return Ok(new_empty_array(call.output));
    }
    let data_type = args[0].data_type();
    let schema = match args.get(1) {
        Some(schema) => read(call.name, schema.as_string::<i32>().value(0))?,
        None => written(call.name, data_type)?,
    };
    let batch = RecordBatch::try_new(Arc::new(schema_of(data_type, &schema)), vec![ArrayRef::clone(&args[0])])?;
    let mut encoder = encoder(data_type, &schema)?;
    encoder.encode(&batch).map_err(|error| exec_datafusion_err!("[MALFORMED_AVRO_VALUE] `{}`: {error}", call.name))?;
    let rows = encoder.flush();
    let offsets = rows.offsets().iter().map(|&offset| i32::try_from(offset)).collect::<Result<Vec<_>, _>>();
    let offsets = offsets.map_err(|_| exec_datafusion_err!("one batch cannot hold more than {} bytes", i32::MAX))?;
    let bytes = Buffer::from(rows.bytes().clone());
    Ok(Arc::new(BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), bytes, None)?))
}
