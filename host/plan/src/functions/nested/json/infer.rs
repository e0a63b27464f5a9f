//! `schema_of_json`: the schema text of a JSON text.

use std::collections::BTreeMap;

use super::text::{Json, Node, parse};

/// What is known of a value's type.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Unknown,
    Boolean,
    Long,
    Digits(usize),
    Double,
    Text,
    Array(Box<Shape>),
    Record(BTreeMap<String, Shape>),
}

/// The schema of a JSON text; `None` when it is malformed.
pub(in super::super) fn schema_of(text: &str) -> Option<String> {
    let mut schema = String::new();
    write(&shape(&parse(text)?), &mut schema);
    Some(schema)
}

fn shape(json: &Json<'_>) -> Shape {
    match &json.node {
        Node::Null => Shape::Unknown,
        Node::Bool(_) => Shape::Boolean,
        Node::Integer if json.raw.parse::<i64>().is_ok() => Shape::Long,
        Node::Integer => match json.raw.trim_start_matches('-').len() {
            digits @ ..=38 => Shape::Digits(digits),
            _ => Shape::Double,
        },
        Node::Float => Shape::Double,
        Node::Text(_) => Shape::Text,
        Node::Array(elements) => Shape::Array(Box::new(elements.iter().map(shape).fold(Shape::Unknown, merged))),
        Node::Object(fields) => {
            let mut record = BTreeMap::new();
            for (name, value) in fields {
                record.insert(name.to_string(), shape(value));
            }
            Shape::Record(record)
        }
    }
}

fn merged(left: Shape, right: Shape) -> Shape {
    use Shape::{Array, Digits, Double, Long, Record, Text, Unknown};
    match (left, right) {
        (left, right) if left == right => left,
        (Unknown, other) | (other, Unknown) => other,
        (Long | Digits(_) | Double, Double) | (Double, Long | Digits(_)) => Double,
        (Long, Digits(digits)) | (Digits(digits), Long) => Digits(digits.max(20)),
        (Digits(left), Digits(right)) => Digits(left.max(right)),
        (Array(left), Array(right)) => Array(Box::new(merged(*left, *right))),
        (Record(mut left), Record(right)) => {
            for (name, shape) in right {
                let old = left.remove(&name).unwrap_or(Unknown);
                left.insert(name, merged(old, shape));
            }
            Record(left)
        }
        _ => Text,
    }
}

fn write(shape: &Shape, out: &mut String) {
    match shape {
        Shape::Unknown | Shape::Text => out.push_str("STRING"),
        Shape::Boolean => out.push_str("BOOLEAN"),
        Shape::Long => out.push_str("BIGINT"),
        Shape::Digits(digits) => out.push_str(&format!("DECIMAL({digits},0)")),
        Shape::Double => out.push_str("DOUBLE"),
        Shape::Array(element) => {
            out.push_str("ARRAY<");
            write(element, out);
            out.push('>');
        }
        Shape::Record(fields) => {
            out.push_str("STRUCT<");
            for (position, (name, shape)) in fields.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
                if plain {
                    out.push_str(name);
                } else {
                    out.push_str(&format!("`{}`", name.replace('`', "``")));
                }
                out.push_str(": ");
                write(shape, out);
            }
            out.push('>');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_names_every_field_in_alphabetical_order() {
        let schema = schema_of(r#"{"b":[1,2.5],"a":{"c d":null},"e":[{"x":1},{"y":"z"}]}"#).unwrap();
        assert_eq!(
            schema,
            "STRUCT<a: STRUCT<`c d`: STRING>, b: ARRAY<DOUBLE>, e: ARRAY<STRUCT<x: BIGINT, y: STRING>>>"
        );
        assert_eq!(schema_of("{"), None);
    }
}
