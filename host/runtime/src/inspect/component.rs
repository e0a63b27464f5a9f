//! A component, loaded through the gate that every plugin passes, and what it says of itself.

use crate::{RuntimeError, Session};
use arrow::datatypes::FieldRef;
use millstream_wasm::{FunctionKind, FunctionSignature, Volatility};
use serde::Serialize;

/// A component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentReport {
    /// The SHA-256 of its bytes.
    pub digest: String,
    /// Its size.
    pub size_bytes: usize,
    /// The version of `millstream:plugin` that it was built against.
    pub wit_version: String,
    /// What it asks the host for. Nothing else is granted.
    pub imports: Vec<String>,
    /// What it offers.
    pub exports: Vec<String>,
    /// Its functions.
    pub functions: Vec<FunctionReport>,
}

/// A function of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionReport {
    /// Its name in SQL.
    pub name: String,
    /// `scalar` or `table`.
    pub kind: &'static str,
    /// The whole signature, for people.
    pub signature: String,
    /// Its arguments.
    pub arguments: Vec<ColumnReport>,
    /// Its results.
    pub results: Vec<ColumnReport>,
    /// `immutable` or `volatile`.
    pub volatility: &'static str,
    /// Whether it sees rows with a null argument.
    pub sees_nulls: bool,
}

/// An argument or result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// Its Arrow type.
    pub data_type: String,
    /// Whether it may be null.
    pub nullable: bool,
}

/// Loads a component and asks it for its functions. `name` is what errors call it.
///
/// # Errors
/// When it is no component, or not one of ours.
pub fn component(session: &Session, name: &str, bytes: &[u8]) -> Result<ComponentReport, RuntimeError> {
    let component = session.plugin_host()?.load(name, bytes)?;
    Ok(ComponentReport {
        digest: component.digest().to_string(),
        size_bytes: component.size_bytes(),
        wit_version: component.wit_version().to_owned(),
        imports: component.imports().to_vec(),
        exports: component.exports().to_vec(),
        functions: component.functions().iter().map(function).collect(),
    })
}

fn function(signature: &FunctionSignature) -> FunctionReport {
    FunctionReport {
        name: signature.name.clone(),
        kind: match signature.kind {
            FunctionKind::Scalar => "scalar",
            FunctionKind::Table => "table",
        },
        signature: signature.to_string(),
        arguments: columns(&signature.arguments),
        results: columns(&signature.results),
        volatility: match signature.volatility {
            Volatility::Immutable => "immutable",
            Volatility::Volatile => "volatile",
        },
        sees_nulls: signature.nulls_passed,
    }
}

fn columns(fields: &[FieldRef]) -> Vec<ColumnReport> {
    let column = |field: &FieldRef| ColumnReport {
        name: field.name().clone(),
        data_type: field.data_type().to_string(),
        nullable: field.is_nullable(),
    };
    fields.iter().map(column).collect()
}
