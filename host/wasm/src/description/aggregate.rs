//! Aggregate functions.

use std::sync::Arc;

use super::fields::{fields, shown};
use crate::signature::AggregateSignature;
use crate::wire;
use crate::wire::aggregate::AggregateFunction;

/// Bytes that a state id may have.
const STATE_ID: usize = 128;

/// Checks one aggregate function.
pub(super) fn signature(function: AggregateFunction) -> Result<AggregateSignature, String> {
    let arguments = fields(&function.arguments).map_err(|reason| format!("arguments: {reason}"))?;
    let results = fields(&function.result).map_err(|reason| format!("result: {reason}"))?;
    let state = fields(&function.state).map_err(|reason| format!("state: {reason}"))?;
    if arguments.is_empty() {
        return Err("an aggregate function has at least one argument".into());
    }
    let [result] = results.as_slice() else {
        return Err(format!("an aggregate function has one result, not {}", results.len()));
    };
    if state.is_empty() {
        return Err("its state has no columns".into());
    }
    let result = Arc::clone(result);
    check_state_id(&function.state_id)?;
    Ok(AggregateSignature {
        name: function.name,
        arguments,
        result,
        state,
        state_id: function.state_id,
        nulls_passed: function.nulls == wire::Nulls::Passed,
        retracts: function.retracts,
    })
}

/// The author's name for what state columns mean: any printable text that is not too long.
pub(super) fn check_state_id(id: &str) -> Result<(), String> {
    if id.len() > STATE_ID || id.chars().any(|c| c.is_control() || c == '`') {
        return Err(format!("state id `{}` is too long or not printable", shown(id)));
    }
    Ok(())
}
