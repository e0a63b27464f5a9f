//! `from_json(text, schema[, options])` and `from_json(bytes, subject, address[, options])`: a JSON text as a typed value.
//!
//! Permissive, as Spark is: a field whose value does not fit its type is null and the others stay; a malformed text
//! gives a struct of nulls, or null where the schema is an array or a map; an empty text gives null. With the
//! option `mode` = `FAILFAST`, a text that was not understood in full fails the query. A field `_corrupt_record STRING` in the
//! schema (the option `columnNameOfCorruptRecord` names another) takes each such text. Names are compared with their case.
//! A STRING takes what is no string as JSON that is written anew: `1.10` as `1.1`, `[1, 2]` as `[1,2]`.
//!
//! With a registry the bytes are a text behind the number of its JSON Schema; what is not, or has a number of something else,
//! is malformed. The type is the one in the option `schema`, or that of a version of the subject, settled when the query is
//! planned. Whether a text keeps to its JSON Schema is not looked at.
//!
//! The texts of a batch are read one by one; the columns are then built field by field over all rows.

use super::super::coercion::mismatch;
use super::super::lists::record;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::super::registry::{Meaning, Registry, SUBJECT_OPTIONS, call, failed, groups};
use super::convert::{build, fits_inside, root_fits};
use super::json_schema::type_of;
use super::options::{KNOWN, ReadOptions, check};
use super::text::{Json, Node, parse};
use crate::ddl::parse_type_or_columns;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, exec_err, plan_datafusion_err, plan_err};
use millstream_client::schema_registry::SchemaKind;
use millstream_common::Options;
use std::borrow::Cow;
use std::sync::Arc;

/// What stands for a malformed text; told from others by its address.
static NOTHING: &str = "{}";

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "from_json", arguments: (2, 4), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(DataType::Binary),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Ok(DataType::Utf8),
        other => mismatch(name, "a STRING", other),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let name = asked.name;
    let (meaning, options) = call(asked, &KNOWN, &[&["schema"], &SUBJECT_OPTIONS[..], &KNOWN[..]].concat())?;
    check(name, &options)?;
    let reading = ReadOptions::new(name, &options)?;
    let (schema, registry) = match meaning {
        Meaning::Schema(schema) => (written(name, schema)?, None),
        Meaning::Subject { subject, address } => {
            if asked.value != &DataType::Binary {
                return mismatch(name, "BINARY where a registry says what it is", asked.value);
            }
            let registry = Registry::new(subject, address, &options)?;
            (wanted(name, &registry, &options)?, Some(registry))
        }
    };
    supported(name, &schema)?;
    let output = nullable(&schema);
    let (corrupt, wanted) = match &output {
        DataType::Struct(fields) => {
            let corrupt = fields.iter().position(|field| field.name() == &reading.corrupt_record);
            let wanted: Fields =
                fields.iter().filter(|field| field.name() != &reading.corrupt_record).cloned().collect();
            if let Some(found) =
                corrupt.map(|place| fields[place].data_type()).filter(|found| **found != DataType::Utf8)
            {
                return plan_err!(
                    "[INVALID_CORRUPT_RECORD_TYPE] the field `{}` for corrupt records must be STRING, not {found}",
                    reading.corrupt_record
                );
            }
            (corrupt, DataType::Struct(wanted))
        }
        DataType::List(_) | DataType::Map(..) => (None, output.clone()),
        other => {
            return plan_err!(
                "[DATATYPE_MISMATCH.INVALID_JSON_SCHEMA] `{name}` reads a STRUCT, ARRAY or MAP, not {other}"
            );
        }
    };
    Ok(Arc::new(FromJson { name: name.to_owned(), output, wanted, corrupt, options: reading, registry }))
}

fn written(name: &str, schema: &str) -> Result<DataType> {
    parse_type_or_columns(schema).map_err(|error| plan_datafusion_err!("[INVALID_SCHEMA] `{name}`: {error}"))
}

/// What the values of a subject are read as.
fn wanted(name: &str, registry: &Registry, options: &Options) -> Result<DataType> {
    match (options.get("schema"), options.get("version")) {
        (Some(_), Some(_)) => {
            plan_err!("[INVALID_OPTIONS] `{name}` is given both schema and version; keep one of the two")
        }
        (Some(schema), None) => written(name, schema),
        (None, _) => {
            let found = registry.version(options)?;
            let refuse = |why: &str| {
                plan_datafusion_err!(
                    "[INVALID_SCHEMA] `{name}`: version {} of subject `{}` {why}; the option schema = 'id BIGINT, …' names the columns to read",
                    found.version,
                    registry.subject
                )
            };
            if found.schema.kind != SchemaKind::Json {
                return Err(refuse(&format!("is a schema in {}, not in JSON", found.schema.kind)));
            }
            type_of(&found.schema.text).map_err(|why| refuse(&why))
        }
    }
}

fn supported(name: &str, schema: &DataType) -> Result<()> {
    match schema {
        DataType::Struct(fields) => fields.iter().try_for_each(|field| supported(name, field.data_type())),
        DataType::List(element) => supported(name, element.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && pair[0].data_type() == &DataType::Utf8 => {
                supported(name, pair[1].data_type())
            }
            _ => plan_err!(
                "[DATATYPE_MISMATCH.INVALID_JSON_MAP_KEY_TYPE] `{name}` reads maps with STRING keys, not {schema}"
            ),
        },
        DataType::Interval(_) | DataType::Duration(_) => mismatch(name, "types that JSON has", schema),
        _ => Ok(()),
    }
}

/// The same type with every field nullable: texts promise nothing.
fn nullable(schema: &DataType) -> DataType {
    match schema {
        DataType::Struct(fields) => DataType::Struct(
            fields.iter().map(|field| Field::new(field.name(), nullable(field.data_type()), true)).collect(),
        ),
        DataType::List(element) => super::super::coercion::list_of(nullable(element.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => super::super::coercion::map_of(DataType::Utf8, nullable(pair[1].data_type())),
            other => other.clone(),
        },
        other => other.clone(),
    }
}

/// How the texts of one call are read.
struct FromJson {
    name: String,
    output: DataType,
    /// The output without the field for corrupt records.
    wanted: DataType,
    /// The place of that field.
    corrupt: Option<usize>,
    options: ReadOptions,
    /// Where the values are framed.
    registry: Option<Registry>,
}

impl Work for FromJson {
    fn output(&self) -> &DataType {
        &self.output
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match &self.registry {
            None => self.columns(cast(values, &DataType::Utf8)?.as_string::<i32>(), &[]),
            Some(registry) => {
                let (texts, malformed) = unframed(registry, values)?;
                self.columns(&texts, &malformed)
            }
        }
    }
}

/// The texts of framed values, and which of them are none whatever they say.
fn unframed(registry: &Registry, values: &ArrayRef) -> Result<(StringArray, Vec<bool>)> {
    let bytes = values.as_binary::<i32>();
    let mut texts: Vec<Option<Cow<'_, str>>> = vec![None; bytes.len()];
    let mut malformed = vec![false; bytes.len()];
    for group in groups(bytes) {
        let is_json = match group.id.map(|id| registry.client().schema(id)) {
            None => false,
            Some(Ok(schema)) => schema.kind == SchemaKind::Json,
            Some(Err(error)) if error.is_absence() => false,
            Some(Err(error)) => return Err(failed(error)),
        };
        for (row, payload) in group.pieces {
            let text = String::from_utf8_lossy(if is_json { payload } else { bytes.value(row) });
            malformed[row] = !is_json || matches!(text, Cow::Owned(_));
            texts[row] = Some(text);
        }
    }
    Ok((texts.into_iter().collect(), malformed))
}

impl FromJson {
    /// `malformed` tells of texts that are not looked at; it may be empty.
    fn columns(&self, texts: &StringArray, malformed: &[bool]) -> Result<ArrayRef> {
        let missing = Json { node: Node::Object(Vec::new()), raw: NOTHING };
        let mut parsed = Vec::with_capacity(texts.len());
        for row in 0..texts.len() {
            let is_malformed = malformed.get(row).is_some_and(|&is_malformed| is_malformed);
            if texts.is_null(row) || (!is_malformed && texts.value(row).trim().is_empty()) {
                parsed.push(None);
                continue;
            }
            let json = if is_malformed { None } else { parse(texts.value(row), self.options.leniency) };
            let fitting = json.filter(|json| root_fits(json, &self.output, &self.options));
            if self.options.fail_fast && !fitting.as_ref().is_some_and(|json| self.understands(json)) {
                return self.fail(texts.value(row));
            }
            parsed.push(match (fitting, &self.output) {
                (None, DataType::Struct(_)) => Some(missing.clone()),
                // One object where an array is asked for is an array of one.
                (Some(json), DataType::List(_)) if matches!(json.node, Node::Object(_)) => {
                    let raw = json.raw;
                    Some(Json { node: Node::Array(vec![json]), raw })
                }
                (json, _) => json,
            });
        }
        let cells: Vec<Option<&Json<'_>>> = parsed.iter().map(Option::as_ref).collect();
        let built = build(&cells, &self.output, &self.options)?;
        match self.corrupt {
            Some(place) => self.with_corrupt_records(&built, place, texts, &cells),
            None => Ok(built),
        }
    }

    /// Whether nothing in a value is lost because it does not fit.
    fn understands(&self, json: &Json<'_>) -> bool {
        match (&json.node, &self.wanted) {
            (Node::Object(_), DataType::List(element)) => fits_inside(json, element.data_type(), &self.options),
            _ => fits_inside(json, &self.wanted, &self.options),
        }
    }

    /// The end of a query that must not meet texts that are not understood.
    fn fail(&self, text: &str) -> Result<ArrayRef> {
        let is_array = matches!(self.output, DataType::Struct(_)) && text.trim_start().starts_with('[');
        let class = if is_array { "CANNOT_PARSE_JSON_ARRAYS_AS_STRUCTS" } else { "WITHOUT_SUGGESTION" };
        exec_err!(
            "[MALFORMED_RECORD_IN_PARSING.{class}] `{}` cannot read the JSON text in mode FAILFAST: {}",
            self.name,
            text.chars().take(200).collect::<String>()
        )
    }

    /// Puts each text that was not understood in full into the field at `place`.
    fn with_corrupt_records(
        &self,
        built: &ArrayRef,
        place: usize,
        texts: &StringArray,
        cells: &[Option<&Json<'_>>],
    ) -> Result<ArrayRef> {
        let DataType::Struct(fields) = built.data_type() else { return Ok(Arc::clone(built)) };
        let corrupt = cells.iter().enumerate().map(|(row, cell)| {
            // A malformed text was replaced by an object that is not written in it.
            let is_understood = cell.is_none_or(|json| !std::ptr::eq(json.raw, NOTHING) && self.understands(json));
            (!is_understood).then(|| texts.value(row))
        });
        let records = built.as_struct();
        let mut columns = records.columns().to_vec();
        columns[place] = Arc::new(corrupt.collect::<StringArray>());
        record(fields, columns, records.nulls().cloned(), built.len())
    }
}
