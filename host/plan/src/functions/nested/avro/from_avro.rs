//! `from_avro(bytes, schema[, options])` and `from_avro(bytes, subject, address[, options])`: a value in Avro's binary form as a
//! typed value.
//!
//! In mode FAILFAST, which is the default as in Spark, bytes that do not fit fail the query; in mode PERMISSIVE they are
//! null, and where the value is a record, a struct of nulls. The option `avroSchema` names the schema to read with, when the
//! bytes were written with an older one.
//!
//! With a registry every value says by number what it was written with. The schema to read with, and so the type, is the
//! one in `avroSchema`, or a version of the subject: that is settled when the query is planned.

use super::super::coercion::mismatch;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::super::registry::{Group, Meaning, Registry, SUBJECT_OPTIONS, call, failed, flag, groups, with_references};
use super::decoding::{Column, Decoding};
use super::schema::{read, sql_type};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow_avro::schema::AvroSchema;
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_datafusion_err, plan_err};
use datafusion::error::DataFusionError;
use millstream_client::schema_registry::SchemaKind;
use millstream_common::Options;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many schemas are kept ready; beyond that all are made anew when they are needed.
const READY: usize = 1_024;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "from_avro", arguments: (2, 4), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null => Ok(DataType::Binary),
        other => mismatch(name, "BINARY", other),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let name = asked.name.to_owned();
    let subject_options = [&["avroSchema"], &SUBJECT_OPTIONS[..]].concat();
    let (meaning, options) = call(asked, &["mode", "avroSchema"], &subject_options)?;
    let fail_fast = flag(&name, &options, true)?;
    let given = options.get("avroSchema").map(|schema| read(&name, schema)).transpose()?;
    let refused = |error: DataFusionError| plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{name}`: {}", error.message());
    Ok(match meaning {
        Meaning::Schema(schema) => {
            let decoding = Decoding::new(read(&name, schema)?, given).map_err(refused)?;
            let output = sql_type(&name, decoding.field()?.data_type())?;
            Arc::new(Plain { name, output, fail_fast, decoding })
        }
        Meaning::Subject { subject, address } => {
            let registry = Registry::new(subject, address, &options)?;
            let wanted = wanted(&name, &registry, &options, given)?;
            let decoding = Decoding::new(wanted.clone(), Some(wanted.clone())).map_err(refused)?;
            let output = sql_type(&name, decoding.field()?.data_type())?;
            Arc::new(Framed { name, output, fail_fast, registry, wanted, ready: Mutex::default() })
        }
    })
}

/// What a query reads with.
fn wanted(name: &str, registry: &Registry, options: &Options, given: Option<AvroSchema>) -> Result<AvroSchema> {
    match (given, options.get("version")) {
        (Some(_), Some(_)) => {
            plan_err!("[INVALID_OPTIONS] `{name}` is given both avroSchema and version; keep one of the two")
        }
        (Some(given), None) => Ok(given),
        (None, _) => {
            let found = registry.version(options)?;
            if found.schema.kind != SchemaKind::Avro {
                return plan_err!(
                    "[INVALID_AVRO_SCHEMA] `{name}`: version {} of subject `{}` is a schema in {}, not in AVRO",
                    found.version,
                    registry.subject,
                    found.schema.kind
                );
            }
            read(name, &with_references(registry.client(), &found.schema)?)
        }
    }
}

/// Values whose schema stands in the query.
struct Plain {
    name: String,
    output: DataType,
    fail_fast: bool,
    decoding: Decoding,
}

impl Work for Plain {
    fn output(&self) -> &DataType {
        &self.output
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let bytes = values.as_binary::<i32>();
        let present = (0..bytes.len()).filter(|&row| bytes.is_valid(row));
        let pieces: Vec<_> = present.map(|row| (row, bytes.value(row))).collect();
        let mut column = Column::new(bytes.len());
        self.decoding.decode(&pieces, &mut column, malformed(&self.name, self.fail_fast))?;
        column.finish(&self.output)
    }
}

/// What becomes of bytes that do not fit.
fn malformed(name: &str, fail_fast: bool) -> impl FnMut(&[u8], DataFusionError) -> Result<()> {
    move |bytes, error| {
        if !fail_fast {
            return Ok(());
        }
        exec_err!(
            "[MALFORMED_AVRO_MESSAGE] `{name}` cannot read {} bytes in mode FAILFAST: {}; with the option mode = PERMISSIVE they are null, or a struct of nulls",
            bytes.len(),
            error.message()
        )
    }
}

/// Values that say by number what they were written with.
struct Framed {
    name: String,
    output: DataType,
    fail_fast: bool,
    registry: Registry,
    wanted: AvroSchema,
    /// By number.
    ready: Mutex<HashMap<u32, Arc<Decoding>>>,
}

impl Framed {
    /// How the values of a number are decoded; inside, what is wrong with values that cannot be.
    fn decoding(&self, id: u32) -> Result<Result<Arc<Decoding>>> {
        if let Some(ready) = self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Ok(Arc::clone(ready)));
        }
        let schema = match self.registry.client().schema(id) {
            Ok(schema) => schema,
            Err(error) if error.is_absence() => return Ok(exec_err!("{error}")),
            Err(error) => return Err(failed(error)),
        };
        if schema.kind != SchemaKind::Avro {
            return Ok(exec_err!("schema {id} is in {}, not in AVRO", schema.kind));
        }
        let text = with_references(self.registry.client(), &schema)?;
        let made =
            read(&self.name, &text).and_then(|written| Decoding::new(written, Some(self.wanted.clone()))).map_err(
                |error| exec_datafusion_err!("schema {id} cannot be read as the query wants it: {}", error.message()),
            );
        Ok(made.map(|made| {
            let made = Arc::new(made);
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            if ready.len() >= READY {
                ready.clear();
            }
            ready.insert(id, Arc::clone(&made));
            made
        }))
    }

    fn decode(&self, group: &Group<'_>, column: &mut Column) -> Result<()> {
        let mut malformed = malformed(&self.name, self.fail_fast);
        let unread = match group.id {
            None => exec_datafusion_err!(
                "they do not begin with a zero and the number of a schema, as values of a registry do"
            ),
            Some(id) => match self.decoding(id)? {
                Ok(decoding) => {
                    return decoding.decode(&group.pieces, column, |bytes, error| {
                        malformed(bytes, exec_datafusion_err!("they are no value of schema {id}: {}", error.message()))
                    });
                }
                Err(error) => error,
            },
        };
        if let Some((_, bytes)) = group.pieces.first() {
            malformed(bytes, unread)?;
        }
        for (row, _) in &group.pieces {
            column.spoil(*row);
        }
        Ok(())
    }
}

impl Work for Framed {
    fn output(&self) -> &DataType {
        &self.output
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let bytes = values.as_binary::<i32>();
        let mut column = Column::new(bytes.len());
        for group in groups(bytes) {
            self.decode(&group, &mut column)?;
        }
        column.finish(&self.output)
    }
}
