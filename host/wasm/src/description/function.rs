//! Scalar and table functions.

use super::fields::fields;
use crate::signature::{FunctionKind, FunctionSignature, Volatility};
use crate::wire;
use crate::wire::function::{Function, Kind};

/// Checks one function. `has` says which interfaces the component exports.
pub(super) fn signature(function: Function, has: &dyn Fn(&str) -> bool) -> Result<FunctionSignature, String> {
    let arguments = fields(&function.arguments).map_err(|reason| format!("arguments: {reason}"))?;
    let results = fields(&function.results).map_err(|reason| format!("results: {reason}"))?;
    let kind = match function.kind {
        Kind::Scalar if !has(wire::SCALAR) => return Err("it is scalar, but `scalar` is not exported".into()),
        Kind::Table if !has(wire::TABLE) => {
            return Err("it is a table function, but `table` is not exported".into());
        }
        Kind::Scalar if results.len() != 1 => {
            return Err(format!("a scalar has one result, not {}", results.len()));
        }
        Kind::Table if results.is_empty() => return Err("it has no columns".into()),
        Kind::Scalar => FunctionKind::Scalar,
        Kind::Table => FunctionKind::Table,
    };
    let volatility = match function.volatility {
        wire::function::Volatility::Immutable => Volatility::Immutable,
        wire::function::Volatility::Volatile => Volatility::Volatile,
    };
    let nulls_passed = function.nulls == wire::Nulls::Passed;
    Ok(FunctionSignature { name: function.name, kind, arguments, results, volatility, nulls_passed })
}
