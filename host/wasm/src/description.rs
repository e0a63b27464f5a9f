//! What `describe` answered → checked function signatures.
//!
//! Read once per component, when it is loaded; plans are made from nothing else.
//!
//! Rule of its life: a signature that left here can be planned, encoded and decoded without further questions about
//! names, nesting or types.
//!
//! It compares no two components; [`crate::slot`] does, before a swap.

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use std::collections::HashSet;
use std::sync::Arc;

use crate::layout::format::{self, Format};
use crate::signature::{FunctionKind, FunctionSignature, Volatility};
use crate::wire;

/// Functions that one plugin may have.
const FUNCTIONS: usize = 256;
/// Nodes that the arguments or results of one function may have.
const NODES: usize = 1024;
/// How deep types may nest.
const DEPTH: usize = 16;
/// Bytes that a name may have.
const NAME: usize = 128;

/// Checks all functions. `scalar` and `table` say which interfaces the component exports.
pub(crate) fn signatures(
    functions: Vec<wire::Function>,
    scalar: bool,
    table: bool,
) -> Result<Vec<FunctionSignature>, String> {
    if functions.is_empty() {
        return Err("it has no functions".into());
    }
    if functions.len() > FUNCTIONS {
        return Err(format!("it has {} functions, more than {FUNCTIONS}", functions.len()));
    }
    let mut names = HashSet::new();
    functions
        .into_iter()
        .map(|function| {
            check_identifier(&function.name).map_err(|reason| format!("function {reason}"))?;
            if !names.insert(function.name.clone()) {
                return Err(format!("function `{}` is there twice", function.name));
            }
            let name = function.name.clone();
            signature(function, scalar, table).map_err(|reason| format!("function `{name}`: {reason}"))
        })
        .collect()
}

fn signature(function: wire::Function, scalar: bool, table: bool) -> Result<FunctionSignature, String> {
    let arguments = fields(&function.arguments).map_err(|reason| format!("arguments: {reason}"))?;
    let results = fields(&function.results).map_err(|reason| format!("results: {reason}"))?;
    let kind = match function.kind {
        wire::Kind::Scalar if !scalar => return Err("it is scalar, but `scalar` is not exported".into()),
        wire::Kind::Table if !table => return Err("it is a table function, but `table` is not exported".into()),
        wire::Kind::Scalar if results.len() != 1 => {
            return Err(format!("a scalar has one result, not {}", results.len()));
        }
        wire::Kind::Table if results.is_empty() => return Err("it has no columns".into()),
        wire::Kind::Scalar => FunctionKind::Scalar,
        wire::Kind::Table => FunctionKind::Table,
    };
    let volatility = match function.volatility {
        wire::Volatility::Immutable => Volatility::Immutable,
        wire::Volatility::Volatile => Volatility::Volatile,
    };
    let nulls_passed = function.nulls == wire::Nulls::Passed;
    Ok(FunctionSignature { name: function.name, kind, arguments, results, volatility, nulls_passed })
}

/// Folds the flattened nodes into fields.
fn fields(nodes: &[wire::Field]) -> Result<Vec<FieldRef>, String> {
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

fn check_identifier(name: &str) -> Result<(), String> {
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.len() <= NAME;
    if fits {
        return Ok(());
    }
    Err(format!("name `{}` is not a lower-case identifier", shown(name)))
}

fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, format: &str, children: u32) -> wire::Field {
        wire::Field { name: name.into(), format: format.into(), nullable: true, children }
    }

    fn scalar(name: &str, arguments: Vec<wire::Field>, results: Vec<wire::Field>) -> wire::Function {
        wire::Function {
            name: name.into(),
            kind: wire::Kind::Scalar,
            arguments,
            results,
            volatility: wire::Volatility::Immutable,
            nulls: wire::Nulls::Passed,
        }
    }

    fn reason(function: wire::Function) -> String {
        signatures(vec![function], true, false).unwrap_err()
    }

    #[test]
    fn nested_types_are_folded_from_pre_order() {
        let result = vec![node("r", "+l", 1), node("item", "+s", 2), node("a", "l", 0), node("b", "d:10,2", 0)];
        let described = signatures(vec![scalar("f", vec![node("x", "u", 0), node("y", "b", 0)], result)], true, false);
        let signature = described.unwrap().remove(0);
        assert_eq!(
            signature.to_string(),
            r#"scalar f(x Utf8, y Boolean) -> r List(Struct("a": Int64, "b": Decimal128(10, 2)))"#
        );
    }

    #[test]
    fn lies_are_refused_with_their_place() {
        let ok = || vec![node("r", "l", 0)];
        assert!(reason(scalar("Upper", vec![], ok())).contains("`Upper` is not a lower-case identifier"));
        assert!(reason(scalar("f", vec![node("x", "vu", 0)], ok())).contains("`vu` is not one that plugins can use"));
        assert!(reason(scalar("f", vec![node("x", "+l", 1)], ok())).contains("`x` lacks children"));
        assert!(reason(scalar("f", vec![node("x", "l", 1), node("y", "l", 0)], ok())).contains("has children"));
        assert!(reason(scalar("f", vec![node("x", "d:39,2", 0)], ok())).contains("decimal(39, 2)"));
        assert!(reason(scalar("f", vec![], vec![])).contains("one result, not 0"));
        let twice = scalar("f", vec![node("x", "l", 0), node("x", "l", 0)], ok());
        assert!(reason(twice).contains("name `x` is there twice"));
        let mut deep: Vec<_> = (0..DEPTH).map(|_| node("x", "+l", 1)).collect();
        deep.push(node("x", "l", 0));
        assert!(reason(scalar("f", deep, ok())).contains("deeper"));
        let mut table = scalar("f", vec![], ok());
        table.kind = wire::Kind::Table;
        assert!(reason(table).contains("`table` is not exported"));
    }
}
