//! Names and flattened schemas, checked.

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use std::collections::HashSet;
use std::sync::Arc;

use crate::layout::format::{self, Format};
use crate::wire;

/// Nodes that one list of fields may have.
const NODES: usize = 1024;
/// How deep types may nest.
pub(super) const DEPTH: usize = 16;
/// Bytes that a name may have.
const NAME: usize = 128;

/// Folds the flattened nodes into fields.
pub(super) fn fields(nodes: &[wire::Field]) -> Result<Vec<FieldRef>, String> {
    if nodes.len() > NODES {
        return Err(format!("{} nodes, more than {NODES}", nodes.len()));
    }
    let mut rest = nodes.iter();
    let mut fields = Vec::new();
    let mut names = HashSet::new();
    while let Some(node) = rest.next() {
        check_identifier(&node.name)?;
        if !names.insert(node.name.as_str()) {
            return Err(format!("name `{}` is there twice", node.name));
        }
        fields.push(fold(node, &mut rest, 1)?);
    }
    Ok(fields)
}

fn fold(node: &wire::Field, rest: &mut std::slice::Iter<'_, wire::Field>, depth: usize) -> Result<FieldRef, String> {
    if depth > DEPTH {
        return Err(format!("types nest deeper than {DEPTH}"));
    }
    if node.name.is_empty() || node.name.len() > NAME || node.name.chars().any(char::is_control) {
        return Err(format!("name `{}` is empty, too long or not printable", shown(&node.name)));
    }
    let parsed = format::parse(&node.format).map_err(|reason| format!("`{}`: {reason}", node.name))?;
    let count = match parsed {
        Format::Leaf(_) if node.children != 0 => Err("has children, but its type has none"),
        Format::List if node.children != 1 => Err("is a list, so it has one child"),
        Format::Struct if node.children == 0 => Err("is a struct without fields"),
        _ => Ok(node.children),
    }
    .map_err(|reason| format!("`{}` {reason}", node.name))?;
    let mut children = Vec::new();
    for _ in 0..count {
        let child = rest.next().ok_or_else(|| format!("`{}` lacks children", node.name))?;
        children.push(fold(child, rest, depth + 1)?);
    }
    let data_type = match (parsed, children.first()) {
        (Format::Leaf(data_type), _) => data_type,
        (Format::List, Some(child)) => DataType::List(Arc::clone(child)),
        (_, _) => DataType::Struct(Fields::from(children)),
    };
    Ok(Arc::new(Field::new(&node.name, data_type, node.nullable)))
}

/// A name of SQL.
pub(super) fn check_identifier(name: &str) -> Result<(), String> {
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.len() <= NAME;
    if fits {
        return Ok(());
    }
    Err(format!("name `{}` is not a lower-case identifier", shown(name)))
}

/// A guest's text, short and printable.
pub(super) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}
