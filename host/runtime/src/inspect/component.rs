//! A component, loaded through the gate that every plugin passes, and what it says of itself.

use crate::{RuntimeError, Session};
use arrow::datatypes::FieldRef;
use millstream_wasm::{AggregateSignature, FunctionKind, FunctionSignature, Volatility};
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
    /// The signatures of its stateful processors, for people.
    pub processors: Vec<String>,
    /// The signatures of its sources, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The steps by which it migrates state, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<String>,
}

/// A function of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionReport {
    /// Its name in SQL.
    pub name: String,
    /// `scalar`, `table` or `aggregate`.
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
    /// Its state; none but aggregate functions have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReport>,
}

/// What an aggregate function keeps for each group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateReport {
    /// Its columns.
    pub columns: Vec<ColumnReport>,
    /// The author's name for what they mean.
    pub id: String,
    /// Whether rows can be taken back out of it.
    pub retracts: bool,
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
        functions: component
            .functions()
            .iter()
            .map(function)
            .chain(component.aggregates().iter().map(aggregate))
            .collect(),
        processors: component.processors().iter().map(ToString::to_string).collect(),
        sources: component.sources().iter().map(ToString::to_string).collect(),
        migrations: component.migrations().iter().map(ToString::to_string).collect(),
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
        state: None,
    }
}

fn aggregate(signature: &AggregateSignature) -> FunctionReport {
    FunctionReport {
        name: signature.name.clone(),
        kind: "aggregate",
        signature: signature.to_string(),
        arguments: columns(&signature.arguments),
        results: columns(std::slice::from_ref(&signature.result)),
        volatility: "immutable",
        sees_nulls: signature.nulls_passed,
        state: Some(StateReport {
            columns: columns(&signature.state),
            id: signature.state_id.clone(),
            retracts: signature.retracts,
        }),
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
