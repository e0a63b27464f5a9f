//! The columns of JSON lines: sorted by name; booleans, longs, doubles, strings, arrays and structs.

use crate::decode::{JsonOptions, ParseMode, next_line};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is known of the type of a value.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Null,
    Boolean,
    Long,
    Double,
    Text,
    List(Box<Kind>),
    Struct(BTreeMap<String, Kind>),
}

/// Looks at lines, one text after the other.
#[derive(Debug)]
pub(crate) struct JsonInference {
    options: JsonOptions,
    columns: BTreeMap<String, Kind>,
    has_malformed: bool,
}

impl JsonInference {
    pub(crate) fn new(options: JsonOptions) -> Self {
        Self { options, columns: BTreeMap::new(), has_malformed: false }
    }

    /// Looks at the lines of a text.
    pub(crate) fn see(&mut self, mut text: &[u8]) {
        while let Some((line, taken)) = next_line(text, self.options.line_separator.as_deref()) {
            text = &text[taken..];
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(Value::Object(object)) => self.see_object(&object),
                Ok(Value::Array(rows)) if rows.iter().all(Value::is_object) => {
                    rows.iter().filter_map(Value::as_object).for_each(|object| self.see_object(object));
                }
                _ => self.has_malformed = true,
            }
        }
    }

    fn see_object(&mut self, object: &serde_json::Map<String, Value>) {
        for (name, value) in object {
            let kind = merged(self.columns.remove(name).unwrap_or(Kind::Null), kind(value));
            self.columns.insert(name.clone(), kind);
        }
    }

    /// The columns; with one for malformed records when there were some and they are kept.
    pub(crate) fn schema(mut self) -> Schema {
        if self.has_malformed && self.options.mode == ParseMode::Permissive {
            self.columns.insert(self.options.corrupt_column.clone(), Kind::Text);
        }
        Schema::new(fields(&self.columns))
    }
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_i64() => Kind::Long,
        Value::Number(_) => Kind::Double,
        Value::String(_) => Kind::Text,
        Value::Array(items) => Kind::List(Box::new(items.iter().map(kind).fold(Kind::Null, merged))),
        Value::Object(object) => Kind::Struct(object.iter().map(|(name, value)| (name.clone(), kind(value))).collect()),
    }
}

/// The kind that holds values of both.
fn merged(one: Kind, other: Kind) -> Kind {
    match (one, other) {
        (Kind::Null, kind) | (kind, Kind::Null) => kind,
        (Kind::Long, Kind::Double) | (Kind::Double, Kind::Long) => Kind::Double,
        (Kind::List(one), Kind::List(other)) => Kind::List(Box::new(merged(*one, *other))),
        (Kind::Struct(mut one), Kind::Struct(other)) => {
            for (name, kind) in other {
                let kind = merged(one.remove(&name).unwrap_or(Kind::Null), kind);
                one.insert(name, kind);
            }
            Kind::Struct(one)
        }
        (one, other) if one == other => one,
        _ => Kind::Text,
    }
}

fn fields(columns: &BTreeMap<String, Kind>) -> Fields {
    columns.iter().filter_map(|(name, kind)| Some(Field::new(name, data_type(kind)?, true))).collect()
}

/// The type; none for a struct without fields, which no column can be.
fn data_type(kind: &Kind) -> Option<DataType> {
    Some(match kind {
        Kind::Null | Kind::Text => DataType::Utf8,
        Kind::Boolean => DataType::Boolean,
        Kind::Long => DataType::Int64,
        Kind::Double => DataType::Float64,
        Kind::List(item) => DataType::new_list(data_type(item)?, true),
        Kind::Struct(columns) => {
            let fields = fields(columns);
            if fields.is_empty() {
                return None;
            }
            DataType::Struct(fields)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> String {
        let mut inference = JsonInference::new(JsonOptions::default());
        inference.see(text.as_bytes());
        let schema = inference.schema();
        let fields = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn columns_are_sorted_and_types_widen() {
        assert_eq!(schema("{\"b\":1,\"a\":true}\n{\"b\":2.5,\"c\":null}\n"), "a Boolean, b Float64, c Utf8");
        assert_eq!(schema("{\"a\":1}\n{\"a\":\"x\"}"), "a Utf8");
        assert_eq!(schema("[{\"a\":1},{\"b\":2}]"), "a Int64, b Int64");
        assert_eq!(schema("{\"e\":{},\"n\":{\"x\":1}}\n{\"n\":{\"y\":[1,2.0]}}").matches("Int64").count(), 1);
    }

    #[test]
    fn malformed_lines_ask_for_their_column() {
        assert_eq!(schema("{\"a\":1}\nnot json\n7\n"), "_corrupt_record Utf8, a Int64");
    }
}
