//! Values of options and settings: text, number or truth; all become text, as Spark's options are.

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// One value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar(pub(super) String);

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true or false")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar(value.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// A table of named values. `a.b.c = 1` and `"a.b.c" = 1` are the same name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DottedScalars(pub(super) Vec<(String, Spanned<Scalar>)>);

enum Node {
    Leaf(Scalar),
    Table(Vec<(String, Spanned<Node>)>),
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true or false")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        ScalarVisitor.visit_str(value).map(Node::Leaf)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        ScalarVisitor.visit_i64(value).map(Node::Leaf)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        ScalarVisitor.visit_u64(value).map(Node::Leaf)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        ScalarVisitor.visit_f64(value).map(Node::Leaf)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        ScalarVisitor.visit_bool(value).map(Node::Leaf)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Table(entries))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

impl<'de> Deserialize<'de> for DottedScalars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut flat = Vec::new();
        match Node::deserialize(deserializer)? {
            Node::Table(entries) => flatten("", entries, &mut flat),
            Node::Leaf(_) => return Err(de::Error::custom("a table of names and values is expected")),
        }
        Ok(Self(flat))
    }
}

fn flatten(prefix: &str, entries: Vec<(String, Spanned<Node>)>, flat: &mut Vec<(String, Spanned<Scalar>)>) {
    for (key, node) in entries {
        let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        let span = node.span();
        match node.into_inner() {
            Node::Leaf(scalar) => flat.push((name, Spanned::new(span, scalar))),
            Node::Table(entries) => flatten(&name, entries, flat),
        }
    }
}
