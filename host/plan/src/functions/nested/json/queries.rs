//! Questions to a JSON text: `get_json_object`, `json_tuple`, `json_array_length`, `json_object_keys`,
//! `schema_of_json`. A malformed text gives null, but no schema: there it fails the query.

use std::sync::Arc;

use super::super::coercion::{int, list_of, string};
use super::super::function::{Call, Definition};
use super::super::lists::{Picks, record};
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::infer::schema_of;
use super::options::{InferOptions, KNOWN, options};
use super::path::{Step, find, parse as parse_path};
use super::text::{Json, Leniency, Node, write};
use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};

/// The functions of this file.
///
/// `json_tuple(json, name, …)` answers a struct `c0, c1, …` of texts; the front end makes columns of it.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, result, run| Definition {
        name,
        aliases: &[],
        arguments,
        coerce: texts,
        result,
        may_be_null: true,
        never_null: false,
        run,
    };
    vec![
        definition("get_json_object", (2, 2), string, get),
        Definition {
            coerce: only_texts,
            never_null: true,
            ..definition("json_tuple", (2, usize::MAX), tuple_type, tuple)
        },
        definition("json_array_length", (1, 1), int, array_length),
        definition("json_object_keys", (1, 1), keys_type, object_keys),
    ]
}

/// Those that are prepared when a query is planned.
pub(super) fn prepared_definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "schema_of_json", arguments: (1, 2), coerce: one_text, prepare }]
}

/// A JSON text, as the functions without options read it.
fn parse(text: &str) -> Option<Json<'_>> {
    super::text::parse(text, Leniency::ASKING)
}

fn texts(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![DataType::Utf8; types.len()])
}

/// For what Spark casts nothing for.
fn only_texts(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    match types.iter().find(|t| !matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)) {
        None => Ok(vec![DataType::Utf8; types.len()]),
        Some(other) => {
            plan_err!("[DATATYPE_MISMATCH.NON_STRING_TYPE] all arguments of `{name}` must be STRING, not {other}")
        }
    }
}

fn one_text(_name: &str, _value: &DataType) -> Result<DataType> {
    Ok(DataType::Utf8)
}

fn tuple_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let fields = (0..types.len().saturating_sub(1)).map(|i| Field::new(format!("c{i}"), DataType::Utf8, true));
    Ok(DataType::Struct(fields.collect()))
}

fn keys_type(_name: &str, _types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(DataType::Utf8))
}

/// The text in a row, unless it is null.
fn text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

fn get(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let (texts, paths) = (args[0].as_string::<i32>(), args[1].as_string::<i32>());
    let mut known: Option<(&str, Option<Vec<Step>>)> = None;
    let mut result = StringBuilder::new();
    for row in 0..call.rows {
        let (Some(json), Some(path)) = (text(texts, row), text(paths, row)) else {
            result.append_null();
            continue;
        };
        if known.as_ref().is_none_or(|(last, _)| *last != path) {
            known = Some((path, parse_path(path)));
        }
        let steps = known.as_ref().and_then(|(_, steps)| steps.as_deref());
        result.append_option(steps.and_then(|steps| find(&parse(json)?, steps)));
    }
    Ok(Arc::new(result.finish()))
}

fn tuple(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.output else { return exec_err!("`{}` gives a struct", call.name) };
    let texts = args[0].as_string::<i32>();
    let names: Vec<_> = args[1..].iter().map(|array| array.as_string::<i32>()).collect();
    let mut columns: Vec<_> = names.iter().map(|_| StringBuilder::new()).collect();
    let mut shown = String::new();
    for row in 0..call.rows {
        let json = text(texts, row).and_then(parse);
        for (column, names) in columns.iter_mut().zip(&names) {
            let value = match (json.as_ref().map(|json| &json.node), text(names, row)) {
                // A name that repeats has the last value that is not null.
                (Some(Node::Object(found)), Some(wanted)) => found
                    .iter()
                    .rev()
                    .find(|(name, value)| name == wanted && value.node != Node::Null)
                    .map(|(_, value)| value),
                _ => None,
            };
            match value.map(|value| (&value.node, value)) {
                None => column.append_null(),
                Some((Node::Text(value), _)) => column.append_value(value),
                Some((_, value)) => {
                    shown.clear();
                    write(value, &mut shown);
                    column.append_value(&shown);
                }
            }
        }
    }
    let columns = columns.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef).collect();
    record(fields, columns, None, call.rows)
}

fn array_length(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = args[0].as_string::<i32>();
    let lengths = (0..call.rows).map(|row| match parse(text(texts, row)?)?.node {
        Node::Array(elements) => i32::try_from(elements.len()).ok(),
        _ => None,
    });
    Ok(Arc::new(lengths.collect::<Int32Array>()))
}

fn object_keys(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = args[0].as_string::<i32>();
    let mut names = StringBuilder::new();
    let mut count = 0;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match text(texts, row).and_then(parse).map(|json| json.node) {
            Some(Node::Object(fields)) => {
                for (name, _) in fields {
                    names.append_value(name);
                    picks.push(count);
                    count += 1;
                }
                picks.end()?;
            }
            _ => picks.end_null()?,
        }
    }
    let names: ArrayRef = Arc::new(names.finish());
    picks.finish(&names, call.output)
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let constants = if asked.constants.is_empty() { None } else { Some(asked.text(0, "a map of constant options")?) };
    let options = options(asked.name, constants)?;
    if let Err(error) = options.only(&format!("`{}`", asked.name), &KNOWN) {
        return plan_err!("[INVALID_OPTIONS] {error}");
    }
    Ok(Arc::new(SchemaOfJson { options: InferOptions::new(asked.name, &options)? }))
}

/// How the schemas of one call are guessed.
struct SchemaOfJson {
    options: InferOptions,
}

impl Work for SchemaOfJson {
    fn output(&self) -> &DataType {
        &DataType::Utf8
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string::<i32>();
        let schemas =
            (0..texts.len()).map(|row| text(texts, row).map(|text| schema_of(text, &self.options)).transpose());
        Ok(Arc::new(schemas.collect::<Result<StringArray>>()?))
    }
}
