//! `to_avro(value[, schema])` and `to_avro(value, subject, address[, options])`: a value in Avro's binary form.
//!
//! Without a schema the value has the one that Spark gives its type. NULL becomes the null of a union, which is bytes and
//! not NULL, as in Spark.
//!
//! With a registry each value begins with the number of its schema, and NULL stays NULL, which in Kafka says that a key is
//! gone. The schema is settled when the query is planned: `avroSchema`, which is looked up and registered if the subject does
//! not have it; else a version of the subject; else, for a subject that is not there, the one of the value's type, which
//! is registered.

use super::super::coercion::with_leaves;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::super::registry::{Meaning, Registry, call, failed, with_references};
use super::schema::{read, written, written_at_top};
use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::filter;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_avro::schema::{AvroSchema, SCHEMA_METADATA_KEY};
use arrow_avro::writer::format::AvroBinaryFormat;
use arrow_avro::writer::{EncodedRows, Encoder, WriterBuilder};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_datafusion_err, plan_err};
use millstream_client::schema_registry::{self as client, HEADER, RegistryError, SchemaKind, header};
use millstream_common::Options;
use std::collections::HashMap;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "to_avro", arguments: (1, 4), coerce, prepare }]
}

fn coerce(_name: &str, value: &DataType) -> Result<DataType> {
    Ok(with_leaves(value, plain))
}

/// What the encoder has no form for is widened: small numbers, other forms of texts and bytes.
fn plain(leaf: &DataType) -> DataType {
    match leaf {
        DataType::Int8 | DataType::Int16 => DataType::Int32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let name = asked.name.to_owned();
    if asked.constants.is_empty() {
        return work(name, asked.value, &written(asked.name, asked.value)?, None);
    }
    let (meaning, options) = call(asked, &[], &["avroSchema", "version", "auto.register.schemas"])?;
    match meaning {
        Meaning::Schema(schema) => work(name, asked.value, &read(asked.name, schema)?, None),
        Meaning::Subject { subject, address } => {
            let registry = Registry::new(subject, address, &options)?;
            let (id, text) = registered(asked, &registry, &options)?;
            work(name, asked.value, &read(asked.name, &text)?, Some(id))
        }
    }
}

/// The number and the text of the schema that values are written with.
fn registered(asked: &Asked<'_>, registry: &Registry, options: &Options) -> Result<(u32, String)> {
    let may_register = options.flag("the schema registry", "auto.register.schemas", true);
    let may_register = may_register.map_err(|error| failed(error.into()))?;
    let own = match (options.get("avroSchema"), options.get("version")) {
        (Some(_), Some(_)) => {
            return plan_err!(
                "[INVALID_OPTIONS] `{}` is given both avroSchema and version; keep one of the two",
                asked.name
            );
        }
        (Some(schema), None) => schema.to_owned(),
        (None, version) => match newest(asked.name, registry, options)? {
            Some(found) => return Ok(found),
            None if version.is_none() => written_at_top(asked.name, asked.value)?,
            None => return Err(failed(missing(registry, options))),
        },
    };
    // Whatever is wrong with it is told before anybody else sees it.
    encoder(asked.value, &read(asked.name, &own)?)
        .map_err(|error| plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{}`: {}", asked.name, error.message()))?;
    let schema = client::Schema::avro(own.clone());
    if let Some(id) = registry.client().find(&registry.subject, &schema).map_err(failed)? {
        return Ok((id, own));
    }
    if !may_register {
        return plan_err!(
            "[INVALID_AVRO_SCHEMA] `{}`: subject `{}` does not have the schema, and auto.register.schemas is false",
            asked.name,
            registry.subject
        );
    }
    let id = registry.client().register(&registry.subject, &schema).map_err(failed)?;
    Ok((id, own))
}

fn missing(registry: &Registry, options: &Options) -> RegistryError {
    RegistryError::UnknownVersion {
        place: registry.client().place().to_owned(),
        subject: registry.subject.clone(),
        version: options.get("version").unwrap_or("latest").to_owned(),
    }
}

/// What the subject has; `None` when it has nothing.
fn newest(name: &str, registry: &Registry, options: &Options) -> Result<Option<(u32, String)>> {
    let found = match registry.find_version(options)? {
        Ok(found) => found,
        Err(error) if error.is_absence() => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if found.schema.kind != SchemaKind::Avro {
        return plan_err!(
            "[INVALID_AVRO_SCHEMA] `{name}`: subject `{}` has schemas in {}, not in AVRO",
            registry.subject,
            found.schema.kind
        );
    }
    Ok(Some((found.id, with_references(registry.client(), &found.schema)?)))
}

fn work(name: String, value: &DataType, schema: &AvroSchema, id: Option<u32>) -> Result<Arc<dyn Work>> {
    encoder(value, schema)
        .map_err(|error| plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{name}`: {}", error.message()))?;
    Ok(Arc::new(ToAvro { name, schema: Arc::new(schema_of(value, schema)), header: id.map(header) }))
}

/// What encodes values of one type with one schema.
struct ToAvro {
    name: String,
    schema: Arc<Schema>,
    /// What stands before each value.
    header: Option<[u8; HEADER]>,
}

impl Work for ToAvro {
    fn output(&self) -> &DataType {
        &DataType::Binary
    }

    fn is_never_null(&self) -> bool {
        self.header.is_none()
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match (&self.header, values.logical_nulls()) {
            (None, _) => self.framed(&self.encode(values)?, b"", None),
            (Some(header), None) => self.framed(&self.encode(values)?, header, None),
            (Some(header), Some(nulls)) => {
                let present = filter(values, &nulls.inner().clone().into())?;
                self.framed(&self.encode(&present)?, header, Some(nulls))
            }
        }
    }
}

impl ToAvro {
    fn encode(&self, values: &ArrayRef) -> Result<EncodedRows> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::clone(values)])?;
        let malformed =
            |error: &dyn std::fmt::Display| exec_datafusion_err!("[MALFORMED_AVRO_VALUE] `{}`: {error}", self.name);
        let mut encoder = WriterBuilder::new(self.schema.as_ref().clone())
            .build_encoder::<AvroBinaryFormat>()
            .map_err(|error| malformed(&error))?;
        encoder.encode(&batch).map_err(|error| malformed(&error))?;
        Ok(encoder.flush())
    }

    /// The rows with what stands before each; those that are null have none.
    fn framed(&self, rows: &EncodedRows, header: &[u8], nulls: Option<arrow::buffer::NullBuffer>) -> Result<ArrayRef> {
        let too_much = |_| exec_datafusion_err!("`{}`: one batch cannot hold more than {} bytes", self.name, i32::MAX);
        let found = rows.offsets();
        if header.is_empty() && nulls.is_none() {
            let offsets = found.iter().map(|&offset| i32::try_from(offset)).collect::<Result<Vec<_>, _>>();
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.map_err(too_much)?));
            return Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from(rows.bytes().clone()), None)?));
        }
        let count = nulls.as_ref().map_or(rows.len(), arrow::buffer::NullBuffer::len);
        let mut bytes = Vec::with_capacity(rows.bytes().len() + rows.len() * header.len());
        let mut offsets = vec![0_i32];
        let mut next = 0;
        for row in 0..count {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                let Some(range) = found.get(next..next + 2) else {
                    return exec_err!("the encoder of `{}` gave other rows than it was given", self.name);
                };
                bytes.extend_from_slice(header);
                bytes.extend_from_slice(&rows.bytes()[range[0]..range[1]]);
                next += 1;
            }
            offsets.push(i32::try_from(bytes.len()).map_err(too_much)?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from(bytes), nulls)?))
    }
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
