//! Steps of migrations.

use super::aggregate::check_state_id;
use super::fields::{fields, shown};
use crate::signature::MigrationStep;
use crate::wire::migration::Step;

/// Steps that one plugin may have.
const STEPS: usize = 256;
/// Bytes that the name of a state may have.
const NAME: usize = 260;

/// Checks all steps.
pub(super) fn steps(told: Vec<Step>) -> Result<Vec<MigrationStep>, String> {
    if told.len() > STEPS {
        return Err(format!("it has {} migration steps, more than {STEPS}", told.len()));
    }
    told.into_iter()
        .enumerate()
        .map(|(number, told)| step(told).map_err(|why| format!("migration step {number}: {why}")))
        .collect()
}

fn step(told: Step) -> Result<MigrationStep, String> {
    if told.state.is_empty() || told.state.len() > NAME || told.state.chars().any(char::is_control) {
        return Err(format!("state `{}` is empty, too long or not printable", shown(&told.state)));
    }
    let from_columns = fields(&told.from_columns).map_err(|why| format!("stored columns: {why}"))?;
    let to_columns = fields(&told.to_columns).map_err(|why| format!("columns that come out: {why}"))?;
    if from_columns.is_empty() || to_columns.is_empty() {
        return Err("it has no columns".into());
    }
    check_state_id(&told.from_id)?;
    check_state_id(&told.to_id)?;
    Ok(MigrationStep { state: told.state, from_id: told.from_id, from_columns, to_id: told.to_id, to_columns })
}
