//! Schemas of Avro and types of Spark, both ways.
//!
//! Pure functions over the JSON of a schema; which type stands for which is the table in Spark's guide to Avro data.

use super::super::coercion::{list_of, map_of};
use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow_avro::schema::AvroSchema;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use serde_json::{Value, json};

/// The name of the record that is put around every schema.
const ROOT: &str = "millstream_value";
/// How deep schemas may be nested.
const DEPTH: usize = 64;

/// A schema that a query gives, inside of the record of one field.
///
/// # Errors
/// When it is no schema, refers to itself, or has a type without a counterpart.
pub(super) fn read(function: &str, text: &str) -> Result<AvroSchema> {
    let schema = if is_type_name(text) {
        Value::String(text.to_owned())
    } else {
        serde_json::from_str(text).map_err(|error| {
            plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{function}`: the schema is not JSON: {error}")
        })?
    };
    let checked = check(function, &schema, &mut Vec::new(), DEPTH)?;
    Ok(wrap(&checked))
}

/// A bare name of a type, as Avro's own parser takes it too.
fn is_type_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn wrap(schema: &Value) -> AvroSchema {
    let record = json!({"type": "record", "name": ROOT, "fields": [{"name": "value", "type": schema}]});
    AvroSchema::new(record.to_string())
}

/// The schema without logical types that Spark reads as what they stand on.
///
/// What is refused has no type of SQL, or takes no byte: of such values a few bytes could say that there are endlessly many.
fn check(function: &str, schema: &Value, enclosing: &mut Vec<String>, depth: usize) -> Result<Value> {
    let refuse = |what: &str| plan_err!("[INVALID_AVRO_SCHEMA] `{function}`: {what}");
    let Some(depth) = depth.checked_sub(1) else { return refuse("the schema is nested too deeply") };
    match schema {
        Value::String(name) if enclosing.contains(name) => {
            refuse(&format!("`{name}` contains itself, and no type of SQL does that"))
        }
        _ if is_null(schema) => refuse("a value that is always null; only a union may have null beside another type"),
        Value::String(_) => Ok(schema.clone()),
        Value::Array(variants) => {
            let values = variants.iter().filter(|variant| !is_null(variant)).count();
            if values != 1 || variants.len() > 2 {
                return refuse("a union other than of null and one type has no type of SQL");
            }
            let checked = variants.iter().map(|variant| {
                if is_null(variant) { Ok(variant.clone()) } else { check(function, variant, enclosing, depth) }
            });
            checked.collect()
        }
        Value::Object(parts) => {
            let mut parts = parts.clone();
            match parts.get("logicalType").and_then(Value::as_str) {
                Some("decimal" | "date" | "timestamp-millis" | "timestamp-micros") => {}
                Some("local-timestamp-millis" | "local-timestamp-micros") => {}
                _ => {
                    parts.remove("logicalType");
                }
            }
            match parts.get("type").cloned() {
                Some(Value::String(kind)) if matches!(kind.as_str(), "record" | "error") => {
                    let names = names_of(&parts);
                    let known = enclosing.len();
                    enclosing.extend(names);
                    let Some(Value::Array(fields)) = parts.get_mut("fields").filter(|fields| !is_empty(fields)) else {
                        return refuse("a record has no fields");
                    };
                    for field in fields {
                        let Some(inner) = field.get_mut("type") else { return refuse("a field has no type") };
                        *inner = check(function, &inner.clone(), enclosing, depth)?;
                    }
                    enclosing.truncate(known);
                }
                Some(Value::String(kind)) if matches!(kind.as_str(), "array" | "map") => {
                    let key = if kind == "array" { "items" } else { "values" };
                    let Some(inner) = parts.get(key) else { return refuse(&format!("the {kind} has no {key}")) };
                    let inner = check(function, inner, enclosing, depth)?;
                    parts.insert(key.to_owned(), inner);
                }
                Some(Value::String(kind))
                    if kind == "fixed" && parts.get("size").and_then(Value::as_u64) == Some(0) =>
                {
                    return refuse("bytes of fixed length 0");
                }
                Some(Value::String(_)) => {}
                Some(inner) => {
                    let inner = check(function, &inner, enclosing, depth)?;
                    parts.insert("type".to_owned(), inner);
                }
                None => return refuse("a type has no `type`"),
            }
            Ok(Value::Object(parts))
        }
        other => refuse(&format!("`{other}` is no type")),
    }
}

fn is_empty(fields: &Value) -> bool {
    fields.as_array().is_some_and(Vec::is_empty)
}

fn is_null(schema: &Value) -> bool {
    schema.as_str() == Some("null") || schema.get("type").and_then(Value::as_str) == Some("null")
}

/// The name of a named type, alone and in its namespace.
fn names_of(parts: &serde_json::Map<String, Value>) -> Vec<String> {
    let text = |key: &str| parts.get(key).and_then(Value::as_str);
    match (text("namespace"), text("name")) {
        (Some(space), Some(name)) => vec![name.to_owned(), format!("{space}.{name}")],
        (None, Some(name)) => vec![name.to_owned()],
        _ => Vec::new(),
    }
}

/// The type that stands for what the decoder gives; every part of it may be null.
///
/// # Errors
/// When there is none.
pub(super) fn sql_type(function: &str, decoded: &DataType) -> Result<DataType> {
    Ok(match decoded {
        DataType::Boolean | DataType::Int32 | DataType::Int64 | DataType::Float32 | DataType::Float64 => {
            decoded.clone()
        }
        DataType::Utf8 | DataType::Binary | DataType::Date32 | DataType::Null => decoded.clone(),
        DataType::Dictionary(..) | DataType::Utf8View => DataType::Utf8,
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Decimal128(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into())),
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|field| Ok(Field::new(field.name(), sql_type(function, field.data_type())?, true)));
            DataType::Struct(fields.collect::<Result<_>>()?)
        }
        DataType::List(element) => list_of(sql_type(function, element.data_type())?),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                map_of(DataType::Utf8, sql_type(function, pair[1].data_type())?)
            }
            other => return plan_err!("[INVALID_AVRO_SCHEMA] `{function}`: a map of {other} has no type of SQL"),
        },
        other => return plan_err!("[INVALID_AVRO_SCHEMA] `{function}`: {other} has no type of SQL"),
    })
}

/// The schema that Spark gives a column's type: null stands second in a union.
///
/// # Errors
/// When there is none.
pub(super) fn written(function: &str, data_type: &DataType) -> Result<AvroSchema> {
    let mut records = 0;
    let value = avro_type(function, data_type, true, &mut records)?;
    Ok(wrap(&value))
}

/// The schema of a column's type for a registry: what stands at the top is never null.
///
/// # Errors
/// When there is none.
pub(super) fn written_at_top(function: &str, data_type: &DataType) -> Result<String> {
    Ok(avro_type(function, data_type, false, &mut 0)?.to_string())
}

fn avro_type(function: &str, data_type: &DataType, nullable: bool, named: &mut usize) -> Result<Value> {
    let mut name = |kind: &str| {
        *named += 1;
        format!("{kind}{named}")
    };
    let schema = match data_type {
        DataType::Boolean => json!("boolean"),
        DataType::Int8 | DataType::Int16 | DataType::Int32 => json!("int"),
        DataType::Int64 => json!("long"),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Utf8 => json!("string"),
        DataType::Binary => json!("bytes"),
        DataType::Null => return Ok(json!("null")),
        DataType::Date32 => json!({"type": "int", "logicalType": "date"}),
        DataType::Timestamp(_, Some(_)) => json!({"type": "long", "logicalType": "timestamp-micros"}),
        DataType::Timestamp(_, None) => json!({"type": "long", "logicalType": "local-timestamp-micros"}),
        DataType::Decimal128(precision, scale) => json!({
            "type": "fixed", "name": name("fixed"), "size": bytes_of(*precision),
            "logicalType": "decimal", "precision": precision, "scale": scale,
        }),
        DataType::Struct(fields) => {
            let name = name("record");
            let fields = fields.iter().map(|field| {
                let schema = avro_type(function, field.data_type(), field.is_nullable(), named)?;
                Ok(json!({"name": field.name(), "type": schema}))
            });
            json!({"type": "record", "name": name, "fields": fields.collect::<Result<Vec<_>>>()?})
        }
        DataType::List(element) => json!({
            "type": "array", "items": avro_type(function, element.data_type(), element.is_nullable(), named)?,
        }),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && pair[0].data_type() == &DataType::Utf8 => json!({
                "type": "map", "values": avro_type(function, pair[1].data_type(), pair[1].is_nullable(), named)?,
            }),
            _ => return plan_err!("[DATATYPE_MISMATCH] `{function}`: Avro's maps have STRING keys, not {data_type}"),
        },
        other => return plan_err!("[DATATYPE_MISMATCH] `{function}`: Avro has no type for {other}"),
    };
    Ok(if nullable { json!([schema, "null"]) } else { schema })
}

/// The bytes that a number of so many digits and its sign need.
fn bytes_of(precision: u8) -> u32 {
    let bits = f64::from(precision) * std::f64::consts::LOG2_10 + 1.0;
    (bits / 8.0).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(schema: &str) -> String {
        read("from_avro", schema).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_bare_name_is_a_schema() {
        assert!(read("from_avro", "string").is_ok());
        assert!(read("from_avro", r#""long""#).is_ok());
    }

    #[test]
    fn a_schema_that_contains_itself_is_refused() {
        let list = r#"{"type":"record","name":"Node","fields":[{"name":"next","type":["null","Node"]}]}"#;
        assert!(refusal(list).contains("contains itself"), "{}", refusal(list));
    }

    #[test]
    fn values_that_take_no_byte_are_refused() {
        assert!(refusal("null").contains("always null"));
        assert!(refusal(r#"{"type":"array","items":"null"}"#).contains("always null"));
        assert!(refusal(r#"{"type":"array","items":{"type":"record","name":"E","fields":[]}}"#).contains("no fields"));
        assert!(refusal(r#"{"type":"fixed","name":"F","size":0}"#).contains("length 0"));
    }

    #[test]
    fn a_union_of_several_types_is_refused() {
        assert!(refusal(r#"["int","string"]"#).contains("union"));
    }

    #[test]
    fn a_decimal_takes_as_many_bytes_as_its_digits_need() {
        assert_eq!([1, 2, 9, 18, 38].map(bytes_of), [1, 1, 4, 8, 16]);
    }
}
