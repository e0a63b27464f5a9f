//! The type that a JSON Schema gives to its texts.
//!
//! Pure functions over its JSON. Objects with named properties are structs, in alphabetical order, since properties have
//! none; objects with `additionalProperties` of one type and no names are maps; texts are STRING whatever their format is;
//! `null` beside one other type says nothing, since everything may be null. References are followed inside of the schema. What
//! says less than one type is refused.

use super::super::coercion::{list_of, map_of};
use arrow::datatypes::{DataType, Field};
use serde_json::{Map, Value};

/// How deep schemas may be nested.
const DEPTH: usize = 64;

/// The type.
///
/// # Errors
/// Why there is none.
pub(super) fn type_of(text: &str) -> Result<DataType, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    Reading { root: &root }.type_of(&root, "", DEPTH)
}

struct Reading<'a> {
    root: &'a Value,
}

impl Reading<'_> {
    /// `at` is the path to the schema, for messages.
    fn type_of(&self, schema: &Value, at: &str, depth: usize) -> Result<DataType, String> {
        let shown = if at.is_empty() { "the value" } else { at };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("nests too deeply or contains itself at `{shown}`"));
        };
        let Value::Object(parts) = schema else { return Err(format!("says nothing of `{shown}`")) };
        if let Some(reference) = parts.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) => self.type_of(target, at, depth),
                None => Err(format!("refers at `{shown}` to `{reference}`, which is not in it")),
            };
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(Value::Array(variants)) = parts.get(key) {
                let mut values = variants.iter().filter(|variant| !is_null(variant));
                return match (values.next(), values.next()) {
                    (Some(only), None) => self.type_of(only, at, depth),
                    _ => Err(format!("gives `{shown}` several types by `{key}`")),
                };
            }
        }
        match kind(parts)?.as_deref() {
            Some("string") => Ok(DataType::Utf8),
            Some("integer") => Ok(DataType::Int64),
            Some("number") => Ok(DataType::Float64),
            Some("boolean") => Ok(DataType::Boolean),
            Some("array") => match parts.get("items") {
                Some(items @ Value::Object(_)) => Ok(list_of(self.type_of(items, &format!("{at}[]"), depth)?)),
                _ => Err(format!("does not say what `{shown}` has elements of")),
            },
            Some("object") => self.object(parts, at, depth),
            Some(other) => Err(format!("gives `{shown}` the type {other}")),
            None => Err(format!("gives `{shown}` no type")),
        }
    }

    fn object(&self, parts: &Map<String, Value>, at: &str, depth: usize) -> Result<DataType, String> {
        let shown = if at.is_empty() { "the value" } else { at };
        if parts.contains_key("allOf") {
            return Err(format!("puts `{shown}` together by `allOf`"));
        }
        match (parts.get("properties"), parts.get("additionalProperties")) {
            (Some(Value::Object(properties)), _) if !properties.is_empty() => {
                let fields = properties.iter().map(|(name, schema)| {
                    let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                    Ok(Field::new(name, self.type_of(schema, &at, depth)?, true))
                });
                Ok(DataType::Struct(fields.collect::<Result<_, String>>()?))
            }
            (_, Some(values @ Value::Object(_))) => {
                Ok(map_of(DataType::Utf8, self.type_of(values, &format!("{at}{{}}"), depth)?))
            }
            _ => Err(format!("does not say what `{shown}` consists of")),
        }
    }
}

/// The one type beside null.
fn kind(parts: &Map<String, Value>) -> Result<Option<String>, String> {
    let named = match parts.get("type") {
        Some(Value::String(kind)) => Some(kind.clone()),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).filter(|&kind| kind != "null").collect();
            match kinds.as_slice() {
                [only] => Some((*only).to_owned()),
                _ => return Err(format!("gives several types: {}", kinds.join(", "))),
            }
        }
        _ => None,
    };
    Ok(named.or_else(|| match parts.get("enum").or_else(|| parts.get("const").filter(|only| only.is_string())) {
        Some(Value::String(_)) => Some("string".to_owned()),
        Some(Value::Array(values)) if values.iter().all(|value| value.is_string() || value.is_null()) => {
            Some("string".to_owned())
        }
        _ => parts.contains_key("properties").then(|| "object".to_owned()),
    }))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl::parse_type_or_columns;

    fn assert_type(schema: &str, ddl: &str) {
        assert_eq!(type_of(schema).unwrap(), parse_type_or_columns(ddl).unwrap(), "{schema}");
    }

    #[test]
    fn objects_arrays_and_plain_types_have_their_counterparts() {
        let schema = r##"{"type":"object","required":["id"],"properties":{
            "id":{"type":"integer"},"at":{"type":"string","format":"date-time"},"price":{"type":["null","number"]},
            "tags":{"type":"array","items":{"enum":["a","b"]}},"who":{"$ref":"#/definitions/User"},
            "more":{"type":"object","additionalProperties":{"type":"boolean"}},
            "note":{"oneOf":[{"type":"null"},{"type":"string"}]}},
            "definitions":{"User":{"type":"object","properties":{"name":{"type":"string"}}}}}"##;
        assert_type(
            schema,
            "at STRING, id BIGINT, more MAP<STRING, BOOLEAN>, note STRING, price DOUBLE, tags ARRAY<STRING>, who STRUCT<name: STRING>",
        );
        assert_type(r#"{"type":"integer"}"#, "BIGINT");
    }

    #[test]
    fn what_has_no_one_type_is_refused_with_its_place() {
        for (schema, place) in [
            (r#"{"properties":{"a":{"type":["string","integer"]}}}"#, "several types"),
            (r#"{"properties":{"a":{"properties":{"b":{}}}}}"#, "`a.b`"),
            (r#"{"properties":{"a":{"type":"array"}}}"#, "`a`"),
            (r##"{"properties":{"a":{"$ref":"#/nowhere"}}}"##, "`a`"),
            (r##"{"properties":{"a":{"$ref":"#"}}}"##, "contains itself"),
            (r#"{"type":"object"}"#, "consists of"),
            ("true", "says nothing"),
        ] {
            let error = type_of(schema).unwrap_err();
            assert!(error.contains(place), "{schema}: {error}");
        }
    }
}
